/* Neighbours exchange halos in every way that MPI has, mixed: `mpi_exchange [SEED [THREADS]]`. Ends
 * with "done". */
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 40000
static int rank, size;
static unsigned seed;
static unsigned draw(unsigned n) { /* the same numbers on all ranks */
  seed = seed * 1103515245u + 12345u;
  return (seed >> 16) % n;
}

/* As LAMMPS does it: a receive that is begun, a send that blocks, a wait; and now and then
 * Sendrecv. */
static void swap_blocking(MPI_Comm comm, int from, int to, char* in, char* out) {
  static int swaps = 100;
  const int count = 1 + (int)draw(3000), tag = (int)draw(3), any = (int)draw(2);
  MPI_Request request;
  switch (draw(6)) {
    case 0:
    case 1:
      MPI_Irecv(in, MOST, MPI_CHAR, from, tag, comm, &request);
      MPI_Send(out, count, MPI_DOUBLE, to, tag, comm);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case 2:
      MPI_Sendrecv(
          out, count, MPI_INT, to, tag, in, MOST, MPI_CHAR, from, tag, comm, MPI_STATUS_IGNORE);
      break;
    case 3:
      MPI_Sendrecv_replace(in, count, MPI_INT, to, tag, from, tag, comm, MPI_STATUS_IGNORE);
      break;
    case 4: {
      MPI_Message message;
      MPI_Status status;
      MPI_Isend(out, count, MPI_FLOAT, to, ++swaps, comm, &request);
      if (from != MPI_PROC_NULL) {
        MPI_Mprobe(any ? MPI_ANY_SOURCE : from, swaps, comm, &message, &status);
        MPI_Mrecv(in, MOST, MPI_CHAR, &message, &status);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    }
    default: {
      MPI_Status status;
      MPI_Issend(out, count, MPI_CHAR, to, tag, comm, &request);
      if (from != MPI_PROC_NULL) {
        MPI_Probe(from, tag, comm, &status);
        MPI_Recv(in, MOST, MPI_CHAR, from, MPI_ANY_TAG, comm, &status);
      }
      for (int flag = 0; !flag;)
        MPI_Test(&request, &flag, &status);
    }
  }
}

/* All neighbours at once; completed by one of the six ways. */
static void swap_begun(MPI_Comm comm, const int* peers, int n, char* in, char* out) {
  MPI_Request all[32];
  MPI_Status statuses[32];
  int indexes[32], begun = 0, index, known, flag;
  const int tag = 10 + (int)draw(3), any = (int)draw(3) == 0, count = 1 + (int)draw(900);
  for (int i = 0; i < n; ++i)
    MPI_Irecv(in + i * 4000,
              4000,
              MPI_CHAR,
              any && peers[i] >= 0 ? MPI_ANY_SOURCE : peers[i],
              tag,
              comm,
              &all[begun++]);
  for (int i = 0; i < n; ++i) {
    if ((i + rank) % 3 == 0)
      MPI_Send(out, count, MPI_INT, peers[i], tag, comm);
    else
      MPI_Isend(out, count, MPI_INT, peers[i], tag, comm, &all[begun++]);
  }
  switch (draw(6)) {
    case 0: MPI_Waitall(begun, all, MPI_STATUSES_IGNORE); break;
    case 1:
      for (int i = 0; i < begun; ++i)
        MPI_Waitany(begun, all, &index, &statuses[0]);
      break;
    case 2:
      for (int left = begun; left > 0; left -= known) {
        MPI_Waitsome(begun, all, &known, indexes, statuses);
        if (known == MPI_UNDEFINED)
          break;
      }
      break;
    case 3:
      for (int left = begun; left > 0; left -= known) {
        MPI_Testsome(begun, all, &known, indexes, MPI_STATUSES_IGNORE);
        if (known == MPI_UNDEFINED)
          break;
      }
      break;
    case 4:
      do
        MPI_Testall(begun, all, &flag, statuses);
      while (!flag);
      break;
    default:
      do
        MPI_Testany(begun, all, &index, &flag, MPI_STATUS_IGNORE);
      while (!flag || index != MPI_UNDEFINED);
  }
}

static void swap_persistent(MPI_Comm comm, const int* peers, int n, char* in, char* out) {
  MPI_Request all[32];
  const int rounds = 1 + (int)draw(3), together = (int)draw(2);
  for (int i = 0; i < n; ++i)
    MPI_Recv_init(in + i * 4000, 4000, MPI_CHAR, peers[i], 20, comm, &all[i]);
  for (int i = 0; i < n; ++i)
    MPI_Send_init(out, 100 * (i + 1), MPI_CHAR, peers[i], 20, comm, &all[n + i]);
  for (int round = 0; round < rounds; ++round) {
    if (together)
      MPI_Startall(2 * n, all);
    for (int i = 0; i < 2 * n && !together; ++i)
      MPI_Start(&all[i]);
    MPI_Waitall(2 * n, all, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2 * n; ++i)
    MPI_Request_free(&all[i]);
}

static void swap_odd(MPI_Comm comm, int from, int to, char* in, char* out) {
  static MPI_Request many[3000];
  MPI_Request request;
  MPI_Status status;
  MPI_Message message;
  int flag = 0;
  switch (draw(5)) {
    case 0: /* never comes */
      MPI_Irecv(in, 10, MPI_CHAR, MPI_ANY_SOURCE, 77, comm, &request);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      break;
    case 1: /* more at once than a page of them */
      for (int i = 0; i < 1500; ++i)
        MPI_Irecv(in + i, 1, MPI_CHAR, from, 30, comm, &many[i]);
      for (int i = 0; i < 1500; ++i)
        MPI_Isend(out, 1, MPI_CHAR, to, 30, comm, &many[1500 + i]);
      MPI_Waitall(3000, many, MPI_STATUSES_IGNORE);
      break;
    case 2: /* to itself */
      MPI_Isend(out, 7, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
      MPI_Recv(in, 7, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case 3: /* taken when it is there */
      MPI_Isend(out, 99, MPI_CHAR, to, 40, comm, &request);
      while (!flag && from != MPI_PROC_NULL)
        MPI_Improbe(MPI_ANY_SOURCE, 40, comm, &flag, &message, MPI_STATUS_IGNORE);
      if (flag) {
        MPI_Imrecv(in, 99, MPI_CHAR, &message, &many[0]);
        MPI_Wait(&many[0], MPI_STATUS_IGNORE);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    default: /* a collective beside messages */
      MPI_Irecv(in, 100, MPI_CHAR, from, 50, comm, &many[0]);
      MPI_Isend(out, 100, MPI_CHAR, to, 50, comm, &many[1]);
      MPI_Iallreduce(MPI_IN_PLACE, out + 1024, 4, MPI_INT, MPI_SUM, comm, &many[2]);
      MPI_Ibarrier(comm, &many[3]);
      MPI_Waitall(4, many, MPI_STATUSES_IGNORE);
  }
}

static void* of_thread(void* argument) {
  const MPI_Comm comm = *(MPI_Comm*)argument;
  static __thread char in[4096], out[4096];
  for (int i = 0; i < 50; ++i) {
    MPI_Request all[2];
    MPI_Irecv(in, sizeof in, MPI_CHAR, (rank + size - 1) % size, i % 3, comm, &all[0]);
    MPI_Isend(out, 10 + i, MPI_CHAR, (rank + 1) % size, i % 3, comm, &all[1]);
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
  }
  return NULL;
}

/* Collectives of communicators of every making, with derived types and in place; some of one rank
 * alone, which waits for nobody. */
static void collect(void) {
  static const int first[1] = {0};
  int numbers[64] = {0};
  struct {
    double value;
    int rank;
  } mine = {1.0 / (rank + 1), rank}, least;
  MPI_Group world, rest;
  MPI_Comm created, grouped, shared, alone;
  MPI_Datatype columns;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_excl(world, 1, first, &rest);
  MPI_Comm_create(MPI_COMM_WORLD, rest, &created);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &shared);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? 1 : MPI_UNDEFINED, 0, &alone);
  MPI_Type_vector(4, 2, 8, MPI_INT, &columns);
  MPI_Type_commit(&columns);
  MPI_Bcast(numbers, 2, columns, 0, shared);
  MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, shared);
  if (created != MPI_COMM_NULL) {
    MPI_Comm_create_group(created, rest, 7, &grouped);
    MPI_Allreduce(MPI_IN_PLACE, numbers, 5, MPI_INT, MPI_SUM, grouped);
    MPI_Barrier(created);
    MPI_Comm_free(&grouped);
    MPI_Comm_free(&created);
  }
  for (int i = 0; i < 5 && rank == 1; ++i) {
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Allreduce(MPI_IN_PLACE, numbers, 7, MPI_INT, MPI_SUM, alone);
  }
  if (alone != MPI_COMM_NULL)
    MPI_Comm_free(&alone);
  MPI_Barrier(shared);
  MPI_Comm_free(&shared);
  MPI_Type_free(&columns);
  MPI_Group_free(&rest);
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  static char in[40 * MOST], out[8 * MOST];
  int level = 0, dimensions[3] = {0, 0, 0}, periods[3] = {1, 0, 1};
  seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  const int threads = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Init_thread(&argc, &argv, threads > 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm grid, half, copy;
  MPI_Dims_create(size, 3, dimensions);
  MPI_Cart_create(MPI_COMM_WORLD, 3, dimensions, periods, 1, &grid);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_dup(grid, &copy);
  int peers[6], half_rank, half_size;
  for (int i = 0; i < 3; ++i)
    MPI_Cart_shift(grid, i, 1, &peers[2 * i], &peers[2 * i + 1]);
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  for (int step = 0; step < 40; ++step) {
    nvtxRangePushA("step");
    MPI_Barrier(grid);
    switch (draw(5)) {
      case 0:
        for (int i = 0; i < 3; ++i) {
          swap_blocking(grid, peers[2 * i], peers[2 * i + 1], in, out);
          swap_blocking(grid, peers[2 * i + 1], peers[2 * i], in, out);
        }
        break;
      case 1: swap_begun(copy, peers, 6, in, out); break;
      case 2: swap_persistent(grid, peers, 6, in, out); break;
      case 3:
        swap_blocking(
            half, (half_rank + half_size - 1) % half_size, (half_rank + 1) % half_size, in, out);
        break;
      default: swap_odd(MPI_COMM_WORLD, (rank + size - 1) % size, (rank + 1) % size, in, out);
    }
    nvtxRangePop();
  }
  for (int i = 0; i < 3; ++i)
    collect();
  if (threads > 0) {
    pthread_t running[16];
    MPI_Comm own[16];
    for (int i = 0; i < threads; ++i)
      MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    for (int i = 0; i < threads; ++i)
      pthread_create(&running[i], NULL, of_thread, &own[i]);
    for (int i = 0; i < threads; ++i)
      pthread_join(running[i], NULL);
    for (int i = 0; i < threads; ++i)
      MPI_Comm_free(&own[i]);
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  puts("done");
  return 0;
}
