/* A parallel program of ten steps: compute, reduce over all, reduce over half of them. The last rank sleeps in every
 * step. `die`: rank 2 kills itself in the fifth step. `finalize`: only what MPI itself does. */
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  static double in[1024], out[1024];
  int rank = 0, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm half, copy;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_dup(half, &copy);
  for (int step = 0; step < 10; ++step) {
    nvtxRangePushA("step");
    nvtxRangePushA("compute");
    usleep(1000);
    nvtxRangePop();
    if (rank == size - 1) {
      nvtxRangePushA("straggle");
      usleep(20000);
      nvtxRangePop();
    }
    if (strcmp(how, "die") == 0 && rank == 2 && step == 4) raise(SIGKILL);
    nvtxRangePushA("reduce");
    MPI_Allreduce(in, out, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    nvtxRangePop();
    MPI_Allreduce(in, out, 256, MPI_DOUBLE, MPI_SUM, copy);
    nvtxRangePop();
  }
  MPI_Bcast(in, 1024, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Allgather(in, 8, MPI_DOUBLE, out, 8, MPI_DOUBLE, half);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d of %d\n", rank, size);
  fflush(stdout);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
