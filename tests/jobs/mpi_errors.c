/* Legal calls whose ignored arguments are garbage, and wrong calls on communicators whose error
 * handler counts: prints what each call answered and how often the handler ran. Bare and under a
 * profiler it is the same text. */
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int handled, rank, size;
static MPI_Comm freed;
static void count_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}
static void told(const char* name, int result) {
  printf("%d %s %d errors %d\n", rank, name, result, handled);
}

static int* volatile nowhere = (int*)16;
static MPI_Datatype garbage(void) {
  return (MPI_Datatype)(size_t)0x10; /* never looked at by who follows the standard */
}

static void in_place(void) {
  int all[64] = {0}, one[4] = {rank, 1, 2, 3}, counts[16], places[16];
  for (int i = 0; i < size; ++i) {
    counts[i] = 4;
    places[i] = 4 * i;
  }
  const int root = rank == 0;
  told("allgather", MPI_Allgather(MPI_IN_PLACE, 4, garbage(), all, 4, MPI_INT, MPI_COMM_WORLD));
  told("allgatherv",
       MPI_Allgatherv(
           MPI_IN_PLACE, 4, MPI_DATATYPE_NULL, all, counts, places, MPI_INT, MPI_COMM_WORLD));
  told("allgatherv garbage",
       MPI_Allgatherv(MPI_IN_PLACE, 4, garbage(), all, counts, places, MPI_INT, MPI_COMM_WORLD));
  told("gather",
       root ? MPI_Gather(MPI_IN_PLACE, 4, MPI_DATATYPE_NULL, all, 4, MPI_INT, 0, MPI_COMM_WORLD)
            : MPI_Gather(one, 4, MPI_INT, NULL, 9, garbage(), 0, MPI_COMM_WORLD));
  told("gatherv",
       root ? MPI_Gatherv(
                  MPI_IN_PLACE, 4, garbage(), all, counts, places, MPI_INT, 0, MPI_COMM_WORLD)
            : MPI_Gatherv(one, 4, MPI_INT, NULL, nowhere, nowhere, garbage(), 0, MPI_COMM_WORLD));
  told("scatter",
       root ? MPI_Scatter(all, 4, MPI_INT, MPI_IN_PLACE, 4, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD)
            : MPI_Scatter(NULL, 9, garbage(), one, 4, MPI_INT, 0, MPI_COMM_WORLD));
  told("scatterv",
       root ? MPI_Scatterv(
                  all, counts, places, MPI_INT, MPI_IN_PLACE, 4, garbage(), 0, MPI_COMM_WORLD)
            : MPI_Scatterv(NULL, nowhere, nowhere, garbage(), one, 4, MPI_INT, 0, MPI_COMM_WORLD));
  told("alltoall", MPI_Alltoall(MPI_IN_PLACE, 1, garbage(), all, 1, MPI_INT, MPI_COMM_WORLD));
  told(
      "alltoallv",
      MPI_Alltoallv(
          MPI_IN_PLACE, nowhere, nowhere, garbage(), all, counts, places, MPI_INT, MPI_COMM_WORLD));
  told("reduce",
       MPI_Reduce(
           root ? MPI_IN_PLACE : one, root ? one : NULL, 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
}

/* Calls whose sizes stand elsewhere: a type for each rank, neighbours, requests that persist, that
 * nobody waits for. */
static void further(void) {
  int all[64] = {0}, counts[16], places[16], bytes[16];
  MPI_Aint far[16];
  MPI_Datatype types[16];
  for (int i = 0; i < size; ++i) {
    counts[i] = 1;
    places[i] = i;
    bytes[i] = 4 * i;
    far[i] = 4 * i;
    types[i] = MPI_INT;
  }
  MPI_Request request, other;
  told("alltoallw",
       MPI_Alltoallw(
           MPI_IN_PLACE, nowhere, nowhere, NULL, all, counts, bytes, types, MPI_COMM_WORLD));
  told("ialltoallv",
       MPI_Ialltoallv(MPI_IN_PLACE,
                      nowhere,
                      nowhere,
                      garbage(),
                      all,
                      counts,
                      places,
                      MPI_INT,
                      MPI_COMM_WORLD,
                      &request));
  told("wait ialltoallv", MPI_Wait(&request, MPI_STATUS_IGNORE));
  told("reduce_scatter",
       MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  told("reduce_scatter_block",
       MPI_Reduce_scatter_block(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  told("scan", MPI_Scan(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  told("exscan", MPI_Exscan(MPI_IN_PLACE, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  const int once = 1, next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &once, 0, &ring);
  told("neighbor_alltoall", MPI_Neighbor_alltoall(all, 1, MPI_INT, all + 32, 1, MPI_INT, ring));
  told("neighbor_alltoallw",
       MPI_Neighbor_alltoallw(all, counts, far, types, all + 32, counts, far, types, ring));
  MPI_Comm_free(&ring);
  MPI_Send_init(all, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &request);
  MPI_Recv_init(all + 32, 1, MPI_INT, before, 5, MPI_COMM_WORLD, &other);
  for (int i = 0; i < 3; ++i) {
    told("start", MPI_Start(&other) + MPI_Start(&request));
    told("wait started",
         MPI_Wait(&request, MPI_STATUS_IGNORE) + MPI_Wait(&other, MPI_STATUS_IGNORE));
  }
  told("free persistent", MPI_Request_free(&request) + MPI_Request_free(&other));
  MPI_Isend(all, 1, MPI_INT, next, 6, MPI_COMM_WORLD, &request);
  told("free on its way", MPI_Request_free(&request));
  told("recv",
       MPI_Recv(
           all + 32, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI_Message message;
  MPI_Isend(all, 1, MPI_INT, next, 7, MPI_COMM_WORLD, &request);
  told("mprobe", MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
  told("mrecv", MPI_Mrecv(all + 32, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Ranks of two groups: of those of the root's group that are not the root, everything but the
 * communicator is ignored.
 */
static void between_groups(void) {
  MPI_Comm half, both;
  int one[4] = {0}, all[64];
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
  const int root = rank == 0 ? MPI_ROOT : rank % 2 == 0 ? MPI_PROC_NULL : 0;
  told("bcast between", MPI_Bcast(one, 4, MPI_INT, root, both));
  told("gather between",
       MPI_Gather(one,
                  4,
                  root == 0 ? MPI_INT : garbage(),
                  all,
                  4,
                  root == MPI_ROOT ? MPI_INT : garbage(),
                  root,
                  both));
  told("scatter between",
       MPI_Scatter(all,
                   4,
                   root == MPI_ROOT ? MPI_INT : garbage(),
                   one,
                   4,
                   root == 0 ? MPI_INT : garbage(),
                   root,
                   both));
  MPI_Comm again;
  told("dup between", MPI_Comm_dup(both, &again));
  told("barrier between", MPI_Barrier(again));
  MPI_Comm_free(&again);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

static void wrong(MPI_Comm comm) {
  int one[4] = {0}, flag = 0, index = 0;
  MPI_Request request = MPI_REQUEST_NULL, two[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  told("send null type", MPI_Send(one, 4, MPI_DATATYPE_NULL, rank, 0, comm));
  told("send to nobody", MPI_Send(one, 4, MPI_INT, MPI_PROC_NULL, 0, comm));
  told("send far", MPI_Send(one, 4, MPI_INT, size + 5, 0, comm));
  told("send less than nothing", MPI_Send(one, -4, MPI_INT, rank, 0, comm));
  told("recv null type", MPI_Recv(one, 4, MPI_DATATYPE_NULL, rank, 0, comm, MPI_STATUS_IGNORE));
  told("isend null type", MPI_Isend(one, 4, MPI_DATATYPE_NULL, rank, 0, comm, &request));
  told("isend no request", MPI_Isend(one, 4, MPI_INT, rank, 0, comm, NULL));
  told("send_init null type", MPI_Send_init(one, 4, MPI_DATATYPE_NULL, rank, 0, comm, &request));
  told("allreduce null type", MPI_Allreduce(one, one + 2, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
  told("bcast null type", MPI_Bcast(one, 4, MPI_DATATYPE_NULL, 0, comm));
  told("bcast far", MPI_Bcast(one, 4, MPI_INT, size + 5, comm));
  request = MPI_REQUEST_NULL;
  told("test no flag", MPI_Test(&request, NULL, MPI_STATUS_IGNORE));
  told("test no request", MPI_Test(NULL, &flag, MPI_STATUS_IGNORE));
  told("testall no flag", MPI_Testall(2, two, NULL, MPI_STATUSES_IGNORE));
  told("testany no flag", MPI_Testany(2, two, &index, NULL, MPI_STATUS_IGNORE));
  told("testany no index", MPI_Testany(2, two, NULL, &flag, MPI_STATUS_IGNORE));
  told("testsome no count", MPI_Testsome(2, two, NULL, &index, MPI_STATUSES_IGNORE));
  told("waitsome no count", MPI_Waitsome(2, two, NULL, &index, MPI_STATUSES_IGNORE));
  told("waitany no index", MPI_Waitany(2, two, NULL, MPI_STATUS_IGNORE));
  told("waitany nothing", MPI_Waitany(2, two, &index, MPI_STATUS_IGNORE));
  told("waitall less than nothing", MPI_Waitall(-1, two, MPI_STATUSES_IGNORE));
  told("wait no request", MPI_Wait(NULL, MPI_STATUS_IGNORE));
  told("wait nothing", MPI_Wait(&request, MPI_STATUS_IGNORE));
  told("start nothing", MPI_Start(&request));
  told("startall no requests", MPI_Startall(2, NULL));
  told("free nothing", MPI_Request_free(&request));
  told("dup nothing", MPI_Comm_dup(MPI_COMM_NULL, &freed));
  told("dup into nowhere", MPI_Comm_dup(comm, NULL));
  told("split wrong color", MPI_Comm_split(comm, -5, 0, &freed));
  told("barrier of nothing", MPI_Barrier(MPI_COMM_NULL));
}

/* A message that is longer than its room, and one that fits. */
static void begin_two(MPI_Request* two) {
  static int out[8], in[8];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Irecv(in, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &two[0]);
  MPI_Irecv(in + 4, 2, MPI_INT, before, 2, MPI_COMM_WORLD, &two[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(out, 4, MPI_INT, next, 1, MPI_COMM_WORLD);
  MPI_Send(out, 2, MPI_INT, next, 2, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}
static void too_long(int with_statuses) {
  MPI_Request two[2];
  MPI_Status kept[2], *statuses = with_statuses ? kept : MPI_STATUSES_IGNORE;
  MPI_Status* status = with_statuses ? kept : MPI_STATUS_IGNORE;
  int known = 0, flag = 0, indexes[2];
  begin_two(two);
  told("waitall too long", MPI_Waitall(2, two, statuses));
  begin_two(two);
  told("wait too long", MPI_Wait(&two[0], status));
  told("wait", MPI_Wait(&two[1], status));
  begin_two(two);
  told("waitany too long", MPI_Waitany(2, two, indexes, status));
  told("waitany", MPI_Waitany(2, two, indexes, status));
  begin_two(two);
  told("waitsome too long", MPI_Waitsome(2, two, &known, indexes, statuses));
  printf("%d known %d\n", rank, known);
  begin_two(two);
  while (two[0] != MPI_REQUEST_NULL && MPI_Testall(2, two, &flag, statuses) == MPI_SUCCESS && !flag)
    ;
  told("testall too long", flag);
  begin_two(two);
  while (two[0] != MPI_REQUEST_NULL && MPI_Test(&two[0], &flag, status) == MPI_SUCCESS && !flag)
    ;
  told("test too long", flag);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  nvtxRangePushA("all");
  in_place(); /* under the fatal handler */
  further();
  between_groups();
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_error, &counting);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  wrong(MPI_COMM_WORLD);
  wrong(own);
  too_long(0);
  too_long(1);
  nvtxRangePop();
  MPI_Comm_free(&own);
  MPI_Errhandler_free(&counting);
  MPI_Finalize();
  return 0;
}
