/* What the MPI library is asked to send: preloaded behind librangescope_mpi.so it stands in the
 * place of PMPI_ functions, and counts messages, bytes and collectives of C and Fortran alike.
 * Written to $MPI_COUNTS/RANK when the program finalizes: "messages N", "bytes N", and a line a
 * collective. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long messages, sent;
static struct {
  MPI_Request request;
  long long bytes;
} prepared[4096];
static int prepared_count;
static __thread int inside; /* of Open MPI's MPI_Sendrecv_replace, which calls PMPI_Sendrecv */
static struct {
  const char* name;
  long long calls, bytes;
} collectives[64];

#define NEXT(name)                      \
  static __typeof__(&PMPI_##name) real; \
  if (!real)                            \
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_" #name)

static long long size_of(int count, MPI_Datatype type, int peer) {
  int size = 0;
  if (peer == MPI_PROC_NULL)
    return -1;
  PMPI_Type_size(type, &size);
  return (long long)count * size;
}
static void add(long long bytes) {
  if (bytes < 0 || inside)
    return;
  pthread_mutex_lock(&lock);
  ++messages;
  sent += bytes;
  pthread_mutex_unlock(&lock);
}
/* Of several ranks: a call on a communicator of one has nothing to be joined with. */
static void called(const char* name, MPI_Comm comm, long long bytes) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  if (size < 2)
    return;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (collectives[i].name && strcmp(collectives[i].name, name) != 0)
    ++i;
  collectives[i].name = name;
  ++collectives[i].calls;
  collectives[i].bytes += bytes;
  pthread_mutex_unlock(&lock);
}
static void started(MPI_Request request) {
  for (int i = prepared_count; i-- > 0;) {
    if (prepared[i].request != request)
      continue;
    add(prepared[i].bytes);
    return;
  }
}

#define SEND(name)                                                                          \
  int PMPI_##name(                                                                          \
      const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) { \
    NEXT(name);                                                                             \
    add(size_of(count, type, peer));                                                        \
    return real(buffer, count, type, peer, tag, comm);                                      \
  }
SEND(Send)
SEND(Ssend)
SEND(Rsend)
SEND(Bsend)
#define BEGIN(name)                                             \
  int PMPI_##name(const void* buffer,                           \
                  int count,                                    \
                  MPI_Datatype type,                            \
                  int peer,                                     \
                  int tag,                                      \
                  MPI_Comm comm,                                \
                  MPI_Request* request) {                       \
    NEXT(name);                                                 \
    add(size_of(count, type, peer));                            \
    return real(buffer, count, type, peer, tag, comm, request); \
  }
BEGIN(Isend)
BEGIN(Issend)
BEGIN(Irsend)
BEGIN(Ibsend)
#define PREPARE(name)                                                       \
  int PMPI_##name(const void* buffer,                                       \
                  int count,                                                \
                  MPI_Datatype type,                                        \
                  int peer,                                                 \
                  int tag,                                                  \
                  MPI_Comm comm,                                            \
                  MPI_Request* request) {                                   \
    NEXT(name);                                                             \
    const int result = real(buffer, count, type, peer, tag, comm, request); \
    prepared[prepared_count].request = *request;                            \
    prepared[prepared_count++].bytes = size_of(count, type, peer);          \
    return result;                                                          \
  }
PREPARE(Send_init)
PREPARE(Ssend_init)
int PMPI_Recv_init(void* buffer,
                   int count,
                   MPI_Datatype type,
                   int peer,
                   int tag,
                   MPI_Comm comm,
                   MPI_Request* request) {
  NEXT(Recv_init);
  const int result = real(buffer, count, type, peer, tag, comm, request);
  prepared[prepared_count].request = *request;
  prepared[prepared_count++].bytes = -1;
  return result;
}
int PMPI_Start(MPI_Request* request) {
  NEXT(Start);
  started(*request);
  return real(request);
}
int PMPI_Startall(int count, MPI_Request* requests) {
  NEXT(Startall);
  for (int i = 0; i < count; ++i)
    started(requests[i]);
  return real(count, requests);
}
int PMPI_Sendrecv(const void* in,
                  int in_count,
                  MPI_Datatype in_type,
                  int to,
                  int in_tag,
                  void* out,
                  int out_count,
                  MPI_Datatype out_type,
                  int from,
                  int out_tag,
                  MPI_Comm comm,
                  MPI_Status* status) {
  NEXT(Sendrecv);
  add(size_of(in_count, in_type, to));
  return real(
      in, in_count, in_type, to, in_tag, out, out_count, out_type, from, out_tag, comm, status);
}
int PMPI_Sendrecv_replace(void* buffer,
                          int count,
                          MPI_Datatype type,
                          int to,
                          int in_tag,
                          int from,
                          int out_tag,
                          MPI_Comm comm,
                          MPI_Status* status) {
  NEXT(Sendrecv_replace);
  add(size_of(count, type, to));
  inside = 1;
  const int result = real(buffer, count, type, to, in_tag, from, out_tag, comm, status);
  inside = 0;
  return result;
}

#define COUNTED(name, bytes, parameters, arguments) \
  int PMPI_##name parameters {                      \
    NEXT(name);                                     \
    called("MPI_" #name, comm, bytes);              \
    return real arguments;                          \
  }
COUNTED(Barrier, 0, (MPI_Comm comm), (comm))
COUNTED(Bcast,
        size_of(n, t, 0),
        (void* b, int n, MPI_Datatype t, int root, MPI_Comm comm),
        (b, n, t, root, comm))
COUNTED(Reduce,
        size_of(n, t, 0),
        (const void* a, void* b, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm),
        (a, b, n, t, op, root, comm))
COUNTED(Allreduce,
        size_of(n, t, 0),
        (const void* a, void* b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
        (a, b, n, t, op, comm))
COUNTED(Iallreduce,
        size_of(n, t, 0),
        (const void* a, void* b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm, MPI_Request* r),
        (a, b, n, t, op, comm, r))
COUNTED(Ibarrier, 0, (MPI_Comm comm, MPI_Request* r), (comm, r))
COUNTED(Alltoall,
        size_of(m, u, 0),
        (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm comm),
        (a, n, t, b, m, u, comm))
COUNTED(Allgather,
        size_of(m, u, 0),
        (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm comm),
        (a, n, t, b, m, u, comm))
int PMPI_Win_fence(int assertion, MPI_Win window) {
  NEXT(Win_fence);
  called("MPI_Win_fence", MPI_COMM_WORLD, 0);
  return real(assertion, window);
}

int PMPI_Finalize(void) {
  NEXT(Finalize);
  int rank = 0;
  char name[4096];
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "%s/%d", getenv("MPI_COUNTS"), rank);
  FILE* out = fopen(name, "w");
  if (out) {
    fprintf(out, "messages %lld\nbytes %lld\n", messages, sent);
    for (int i = 0; i < 64 && collectives[i].name; ++i)
      fprintf(out,
              "%s %lld\n%s_bytes %lld\n",
              collectives[i].name,
              collectives[i].calls,
              collectives[i].name,
              collectives[i].bytes);
    fclose(out);
  }
  return real();
}
int MPI_Finalize(void) {
  return PMPI_Finalize();
}
