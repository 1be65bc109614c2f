// A job without ranges, of which the last rank does nearly all the work, in a function of its own:
// so much that it is late on a machine with other work, too.
#include <mpi.h>
#include <stdio.h>

static double sum_of_inverses(long count) {
  double sum = 0;
  for (long i = 1; i < count; ++i)
    sum += 1.0 / (double)i;
  return sum;
}

static double work_on_own_cells(void) {
  return sum_of_inverses(1000000);
}

static double work_on_cells_of_all(void) {
  double sum = 0;  // of counts that differ, or the compiler computes one and multiplies
  for (int repetition = 0; repetition < 60; ++repetition)
    sum += sum_of_inverses(1000000 + repetition);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double all = 0;
  for (int step = 0; step < 10; ++step) {
    double own = work_on_own_cells();
    if (rank == ranks - 1)
      own += work_on_cells_of_all();
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0)
    printf("%.6f\n", all);
  MPI_Finalize();
  return 0;
}
