// librangescope_mpi.so: MPI's calls as NVTX ranges of domain `MPI`, through the standard's profiling interface.
//
// Preloaded into an MPI program it stands before the MPI library: each call below opens a range with a payload
// (communicator, bytes, peer), calls the PMPI_ function and closes it. It links no MPI: a program without MPI that
// inherits LD_PRELOAD loads it and nothing happens. Built for Open MPI's binary interface; under another MPI the ranges
// have no payload. The Fortran bindings of Open MPI call PMPI_ functions themselves and are not seen.
//
// A call that begins a message gives its request a number; the call that completes it (MPI_Wait, MPI_Testsome, ...)
// says the number again when it ends, and of a receive the sender, the tag and the bytes. A test that completes nothing
// leaves no range. A persistent request begins a message each time it is started: a range `MPI_Start (MPI_Send_init)`
// and its like, inside that of MPI_Start or MPI_Startall.
#include <mpi.h>

#include "inject/mpi/communicators.hpp"
#include "inject/mpi/next.hpp"
#include "inject/mpi/range.hpp"
#include "inject/mpi/requests.hpp"

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace rangescope::inject::mpi {

// Collectives. The bytes are those of one rank's message, as nccl-tests counts them for each operation.
SHOWN int MPI_Barrier(MPI_Comm comm) {
  NEXT(Barrier);
  RANGE(Barrier, comm, 0);
  return real(comm);
}
SHOWN int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  NEXT(Bcast);
  RANGE(Bcast, comm, bytes_of(count, type), root);
  return real(buffer, count, type, root, comm);
}
SHOWN int MPI_Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  NEXT(Reduce);
  RANGE(Reduce, comm, bytes_of(count, type), root);
  return real(in, out, count, type, op, root, comm);
}
SHOWN int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Allreduce);
  RANGE(Allreduce, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
SHOWN int MPI_Reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Reduce_scatter_block);
  RANGE(Reduce_scatter_block, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
SHOWN int MPI_Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  NEXT(Reduce_scatter);
  RANGE(Reduce_scatter, comm, 0);
  return real(in, out, counts, type, op, comm);
}
SHOWN int MPI_Scan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Scan);
  RANGE(Scan, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
SHOWN int MPI_Exscan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Exscan);
  RANGE(Exscan, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
#define EXCHANGE(name, count, type)                                                                  \
  SHOWN int MPI_##name(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, \
                       MPI_Datatype out_type, MPI_Comm comm) {                                       \
    NEXT(name);                                                                                      \
    RANGE(name, comm, bytes_of(count, type));                                                        \
    return real(in, in_count, in_type, out, out_count, out_type, comm);                              \
  }
// What arrives from each rank: the sender's count may be MPI_IN_PLACE's.
EXCHANGE(Allgather, out_count, out_type)
EXCHANGE(Alltoall, out_count, out_type)
#define ROOTED(name, count, type)                                                                    \
  SHOWN int MPI_##name(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, \
                       MPI_Datatype out_type, int root, MPI_Comm comm) {                             \
    NEXT(name);                                                                                      \
    RANGE(name, comm, bytes_of(count, type), root);                                                  \
    return real(in, in_count, in_type, out, out_count, out_type, root, comm);                        \
  }
ROOTED(Gather, in_count, in_type)
ROOTED(Scatter, out_count, out_type)
SHOWN int MPI_Allgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int* out_counts,
                         const int* places, MPI_Datatype out_type, MPI_Comm comm) {
  NEXT(Allgatherv);
  RANGE(Allgatherv, comm, bytes_of(in_count, in_type));
  return real(in, in_count, in_type, out, out_counts, places, out_type, comm);
}
SHOWN int MPI_Gatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int* out_counts,
                      const int* places, MPI_Datatype out_type, int root, MPI_Comm comm) {
  NEXT(Gatherv);
  RANGE(Gatherv, comm, bytes_of(in_count, in_type), root);
  return real(in, in_count, in_type, out, out_counts, places, out_type, root, comm);
}
SHOWN int MPI_Scatterv(const void* in, const int* in_counts, const int* places, MPI_Datatype in_type, void* out,
                       int out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
  NEXT(Scatterv);
  RANGE(Scatterv, comm, bytes_of(out_count, out_type), root);
  return real(in, in_counts, places, in_type, out, out_count, out_type, root, comm);
}
SHOWN int MPI_Alltoallv(const void* in, const int* in_counts, const int* in_places, MPI_Datatype in_type, void* out,
                        const int* out_counts, const int* out_places, MPI_Datatype out_type, MPI_Comm comm) {
  NEXT(Alltoallv);
  RANGE(Alltoallv, comm, 0);
  return real(in, in_counts, in_places, in_type, out, out_counts, out_places, out_type, comm);
}

// Point to point.
#define SEND(name)                                                                                           \
  SHOWN int MPI_##name(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) { \
    NEXT(name);                                                                                              \
    RANGE(name, comm, bytes_of(count, type), peer, tag);                                                     \
    return real(buffer, count, type, peer, tag, comm);                                                       \
  }
SEND(Send)
SEND(Ssend)
SEND(Rsend)
SEND(Bsend)
#define BEGIN(name, buffer_type, receives)                                                                 \
  SHOWN int MPI_##name(buffer_type buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
                       MPI_Request* request) {                                                             \
    NEXT(name);                                                                                            \
    const Posted posted{++posted_count, bytes_of(count, type), peer, tag, receives, nullptr, nullptr};     \
    RANGE(name, comm, posted.bytes, peer, tag, posted.number);                                             \
    const int result = real(buffer, count, type, peer, tag, comm, request);                                \
    if (result == MPI_SUCCESS && range.is_followed()) requests_under_way.put(*request, posted);            \
    return result;                                                                                         \
  }
BEGIN(Isend, const void*, false)
BEGIN(Issend, const void*, false)
BEGIN(Irsend, const void*, false)
BEGIN(Ibsend, const void*, false)
BEGIN(Irecv, void*, true)
#define PREPARE(name, buffer_type, receives)                                                                 \
  SHOWN int MPI_##name(buffer_type buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,   \
                       MPI_Request* request) {                                                               \
    NEXT(name);                                                                                              \
    static const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain(), "MPI_Start (MPI_" #name ")"); \
    const int result = real(buffer, count, type, peer, tag, comm, request);                                  \
    if (result == MPI_SUCCESS)                                                                               \
      requests_under_way.put(*request, {0, bytes_of(count, type), peer, tag, receives, text, comm});         \
    return result;                                                                                           \
  }
PREPARE(Send_init, const void*, false)
PREPARE(Ssend_init, const void*, false)
PREPARE(Rsend_init, const void*, false)
PREPARE(Bsend_init, const void*, false)
PREPARE(Recv_init, void*, true)
SHOWN int MPI_Start(MPI_Request* request) {
  NEXT(Start);
  RANGE(Start);
  if (request != nullptr) begin(*request);
  return real(request);
}
SHOWN int MPI_Startall(int count, MPI_Request* requests) {
  NEXT(Startall);
  RANGE(Startall);
  for (int i = 0; i < count && requests != nullptr; ++i) begin(requests[i]);
  return real(count, requests);
}
SHOWN int MPI_Recv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  NEXT(Recv);
  RANGE(Recv, comm, bytes_of(count, type), peer, tag);
  MPI_Status mine;
  MPI_Status* const known_status = status == MPI_STATUS_IGNORE ? &mine : status;
  const int result = real(buffer, count, type, peer, tag, comm, known_status);
  if (result == MPI_SUCCESS) range.came(*known_status);
  return result;
}
SHOWN int MPI_Sendrecv(const void* in, int in_count, MPI_Datatype in_type, int to, int in_tag, void* out, int out_count,
                       MPI_Datatype out_type, int from, int out_tag, MPI_Comm comm, MPI_Status* status) {
  NEXT(Sendrecv);
  RANGE(Sendrecv, comm, bytes_of(in_count, in_type), to, in_tag, from, out_tag);
  MPI_Status mine;
  MPI_Status* const known_status = status == MPI_STATUS_IGNORE ? &mine : status;
  const int result =
      real(in, in_count, in_type, to, in_tag, out, out_count, out_type, from, out_tag, comm, known_status);
  if (result == MPI_SUCCESS) range.came(*known_status);
  return result;
}

// Requests. Those that wait:
SHOWN int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  NEXT(Wait);
  Completing completing(1, request, status);
  RANGE(Wait);
  const int result = real(request, completing.statuses());
  completing.done(result, nullptr, 1);
  completing.tell(range);
  return result;
}
SHOWN int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  NEXT(Waitall);
  Completing completing(count, requests, statuses);
  RANGE(Waitall);
  const int result = real(count, requests, completing.statuses());
  completing.done(result, nullptr, count);
  completing.tell(range);
  return result;
}
SHOWN int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  NEXT(Waitany);
  Completing completing(count, requests, status);
  RANGE(Waitany);
  const int result = real(count, requests, index, completing.statuses());
  completing.done(result, index, 1);
  completing.tell(range);
  return result;
}
SHOWN int MPI_Waitsome(int count, MPI_Request* requests, int* known, int* indexes, MPI_Status* statuses) {
  NEXT(Waitsome);
  Completing completing(count, requests, statuses);
  RANGE(Waitsome);
  const int result = real(count, requests, known, indexes, completing.statuses());
  completing.done(result, indexes, *known);
  completing.tell(range);
  return result;
}
// Those that look: a range where they found something.
#define FOUND(name)         \
  if (completing.any()) {   \
    RANGE(name);            \
    completing.tell(range); \
  }                         \
  return result
SHOWN int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  NEXT(Test);
  Completing completing(1, request, status);
  const int result = real(request, flag, completing.statuses());
  completing.done(result, nullptr, *flag);
  FOUND(Test);
}
SHOWN int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  NEXT(Testall);
  Completing completing(count, requests, statuses);
  const int result = real(count, requests, flag, completing.statuses());
  completing.done(result, nullptr, *flag == 0 ? 0 : count);
  FOUND(Testall);
}
SHOWN int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  NEXT(Testany);
  Completing completing(count, requests, status);
  const int result = real(count, requests, index, flag, completing.statuses());
  completing.done(result, index, *flag);
  FOUND(Testany);
}
SHOWN int MPI_Testsome(int count, MPI_Request* requests, int* known, int* indexes, MPI_Status* statuses) {
  NEXT(Testsome);
  Completing completing(count, requests, statuses);
  const int result = real(count, requests, known, indexes, completing.statuses());
  completing.done(result, indexes, *known);
  FOUND(Testsome);
}
SHOWN int MPI_Request_free(MPI_Request* request) {
  NEXT(Request_free);
  if (request != nullptr) requests_under_way.take(*request);
  return real(request);
}

// Communicators that come of others.
SHOWN int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  NEXT(Comm_dup);
  return note(real(comm, made), comm, made);
}
SHOWN int MPI_Comm_split(MPI_Comm comm, int color, int order, MPI_Comm* made) {
  NEXT(Comm_split);
  return note(real(comm, color, order, made), comm, made);
}
SHOWN int MPI_Comm_split_type(MPI_Comm comm, int type, int order, MPI_Info info, MPI_Comm* made) {
  NEXT(Comm_split_type);
  return note(real(comm, type, order, info, made), comm, made);
}
SHOWN int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  NEXT(Comm_create);
  return note(real(comm, group, made), comm, made);
}
SHOWN int MPI_Cart_create(MPI_Comm comm, int dimensions, const int* sizes, const int* periods, int reorder,
                          MPI_Comm* made) {
  NEXT(Cart_create);
  return note(real(comm, dimensions, sizes, periods, reorder, made), comm, made);
}

}  // namespace rangescope::inject::mpi
