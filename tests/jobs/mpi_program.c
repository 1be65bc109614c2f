/* A parallel program of ten steps: compute, reduce over all, reduce over half of them. The last
 * rank sleeps in every step. `late`: so long that nothing else delays the ranks as much, however
 * busy the machine is. `die`: rank 2 kills itself in the fifth step. `hang`: rank 1 sleeps
 * for ever in the third. `messages`: a ring and a master with workers, of which rank 1 always comes
 * late: 20 ms after those that wait for it have begun to
 * ($MEETING, see arrive()). `requests`: messages that are begun. `moments`:
 * 500 barriers, after each a range whose payload is the kernel's monotonic clock, whatever the C
 * library says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Where a rank is, in memory that all share: the file $MEETING. */
struct place {
  atomic_int arrivals; /* at calls in which it will wait for rank 1 */
  atomic_int readings; /* of the clock by its main thread since then: the call has begun, as a
                          recorder of calls has it */
};
enum { kRanks = 16 };
static struct place* places;
static struct place* mine;

/* In front of the C library's. */
int clock_gettime(clockid_t clock, struct timespec* out) {
  static int (*next)(clockid_t, struct timespec*);
  if (next == NULL)
    next = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int done = next(clock, out);
  if (mine != NULL && syscall(SYS_gettid) == getpid())
    atomic_fetch_add(&mine->readings, 1);
  return done;
}

static void meet(int rank) {
  const char* path = getenv("MEETING");
  const int file = path == NULL || rank >= kRanks ? -1 : open(path, O_RDWR);
  if (file < 0)
    return;
  places = mmap(NULL, kRanks * sizeof *places, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  mine = &places[rank];
}

/* Right before a call: rank 1 may wait until it has begun. */
static void arrive(void) {
  if (mine == NULL)
    return;
  atomic_store(&mine->readings, 0);
  atomic_fetch_add(&mine->arrivals, 1);
}

/* Until the call has begun before which `rank` arrived for the n-th time. */
static void begun(int rank, int n) {
  while (places != NULL) {
    const int arrivals = atomic_load(&places[rank].arrivals);
    if (arrivals > n || (arrivals == n && atomic_load(&places[rank].readings) > 0))
      return;
    usleep(500);
  }
}

static void late(int rank) {
  if (rank != 1)
    return;
  nvtxRangePushA("straggle");
  usleep(20000);
  nvtxRangePop();
}

/* Rank 1 comes 20 ms after all others have begun the call before which they arrived for the n-th
 * time. */
static void last(int rank, int size, int n) {
  for (int other = 0; other < size && rank == 1; ++other)
    if (other != 1)
      begun(other, n);
  late(rank);
}

/* Each rank passes 256 KiB on; then rank 0 takes a number from each other one as they come, and
 * answers. The tag of an answer is the rank's in a communicator whose ranks are the other way
 * round. */
static void messages(int rank, int size) {
  static char out[262144], in[262144];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  int number = rank;
  MPI_Comm turned;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
  for (int step = 0; step < 5; ++step) {
    MPI_Barrier(MPI_COMM_WORLD);
    late(rank);
    nvtxRangePushA("ring");
    MPI_Sendrecv(out,
                 sizeof out,
                 MPI_CHAR,
                 next,
                 3,
                 in,
                 sizeof in,
                 MPI_CHAR,
                 before,
                 3,
                 MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    nvtxRangePop();
    nvtxRangePushA("ask");
    for (int i = 1; i < size && rank == 0; ++i) {
      MPI_Status status;
      MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      MPI_Send(&number, 1, MPI_INT, size - 1 - status.MPI_SOURCE, 9, turned);
    }
    if (rank > 0) {
      MPI_Send(&number, 1, MPI_INT, 0, 100 + rank, MPI_COMM_WORLD);
      MPI_Recv(&number, 1, MPI_INT, size - 1, 9, turned, MPI_STATUS_IGNORE);
    }
    nvtxRangePop();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
      begun(0, 2 * step + 1);
    late(rank);
    nvtxRangePushA("pass");
    if (rank == 0)
      arrive();
    if (rank == 1)
      MPI_Send(out, sizeof out, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    if (rank == 0)
      MPI_Recv(in, sizeof in, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
      arrive();
    if (rank == 0)
      MPI_Send(out, sizeof out, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
    if (rank == 1)
      begun(0, 2 * step + 2);
    if (rank == 1)
      usleep(20000);
    if (rank == 1)
      MPI_Recv(in, sizeof in, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    nvtxRangePop();
  }
  MPI_Comm_free(&turned);
}

/* What is begun and completed later. Rank 1 comes late to `halo` and `poll`. */
static void requests(int rank, int size) {
  static char out[262144], in[262144], room[16][1024];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request all[64];
  for (int step = 0; step < 5; ++step) {
    MPI_Barrier(MPI_COMM_WORLD);
    last(rank, size, step + 1);
    nvtxRangePushA("halo");
    MPI_Irecv(in, sizeof in, MPI_CHAR, before, 3, MPI_COMM_WORLD, &all[0]);
    MPI_Isend(out, sizeof out, MPI_CHAR, next, 3, MPI_COMM_WORLD, &all[1]);
    arrive();
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    nvtxRangePop();
    nvtxRangePushA(
        "any"); /* as many bytes as the sender's rank, into 1 KiB; and one that never comes */
    if (rank == 0) {
      int index;
      for (int i = 0; i < size - 1; ++i)
        MPI_Irecv(room[i], 1024, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &all[i]);
      for (int i = 0; i < size - 1; ++i)
        MPI_Waitany(size - 1, all, &index, MPI_STATUS_IGNORE);
      MPI_Irecv(room[0], 1024, MPI_CHAR, 1, 77, MPI_COMM_WORLD, &all[0]);
      MPI_Cancel(&all[0]);
      MPI_Wait(&all[0], MPI_STATUS_IGNORE);
    } else {
      MPI_Isend(out, rank, MPI_CHAR, 0, 100 + rank, MPI_COMM_WORLD, &all[0]);
      MPI_Wait(&all[0], MPI_STATUS_IGNORE);
    }
    nvtxRangePop();
    MPI_Barrier(MPI_COMM_WORLD);
    late(rank);
    nvtxRangePushA("poll");
    if (rank == 0) {
      MPI_Irecv(in, sizeof in, MPI_CHAR, 1, 5, MPI_COMM_WORLD, &all[0]);
      for (int flag = 0; !flag; usleep(100))
        MPI_Test(&all[0], &flag, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
      MPI_Issend(out, 512, MPI_CHAR, 0, 5, MPI_COMM_WORLD, &all[0]);
      for (int known = 0, index; known == 0;)
        MPI_Testsome(1, all, &known, &index, MPI_STATUSES_IGNORE);
    }
    nvtxRangePop();
    nvtxRangePushA("many");
    for (int i = 0; i < 12; ++i)
      MPI_Irecv(room[i], 1024, MPI_CHAR, before, i, MPI_COMM_WORLD, &all[i]);
    for (int i = 0; i < 12; ++i)
      MPI_Isend(out, 64 * (i + 1), MPI_CHAR, next, i, MPI_COMM_WORLD, &all[12 + i]);
    MPI_Waitall(24, all, MPI_STATUSES_IGNORE);
    nvtxRangePop();
  }
}

/* The same messages over and over: requests that are made once and started in each step; one ends
   in MPI_Wait, one in a test. Rank 1 comes late. */
static void persistent(int rank, int size) {
  static char out[4096], in[4096];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request all[2];
  MPI_Recv_init(in, sizeof in, MPI_CHAR, before, 9, MPI_COMM_WORLD, &all[0]);
  MPI_Send_init(out, 1000, MPI_CHAR, next, 9, MPI_COMM_WORLD, &all[1]);
  for (int step = 0; step < 6; ++step) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
      begun(2, step + 1);
    late(rank);
    nvtxRangePushA("started");
    if (step % 2 == 0) {
      MPI_Startall(2, all);
      arrive();
      MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    } else {
      MPI_Start(&all[0]);
      MPI_Start(&all[1]);
      for (int flag = 0; !flag; usleep(100))
        MPI_Test(&all[1], &flag, MPI_STATUS_IGNORE);
      arrive();
      MPI_Wait(&all[0], MPI_STATUS_IGNORE);
      MPI_Wait(&all[0], MPI_STATUS_IGNORE); /* of one that is not under way: nothing */
    }
    nvtxRangePop();
  }
  MPI_Request_free(&all[0]);
  MPI_Request_free(&all[1]);
}

static void moments(void) {
  for (int step = 0; step < 500; ++step) {
    usleep(2000);
    MPI_Barrier(MPI_COMM_WORLD);
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    event.payload.ullValue = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "moment";
    nvtxRangePushEx(&event);
    nvtxRangePop();
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  static double in[1024], out[1024];
  int rank = 0, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  meet(rank);
  if (strcmp(how, "messages") == 0) {
    messages(rank, size);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(how, "requests") == 0) {
    requests(rank, size);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(how, "persistent") == 0) {
    persistent(rank, size);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(how, "moments") == 0) {
    moments();
    MPI_Finalize();
    return 0;
  }
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
      usleep(strcmp(how, "late") == 0 ? 500000 : 20000);
      nvtxRangePop();
    }
    if (strcmp(how, "die") == 0 && rank == 2 && step == 4)
      raise(SIGKILL);
    if (strcmp(how, "hang") == 0 && rank == 1 && step == 2)
      sleep(600);
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
