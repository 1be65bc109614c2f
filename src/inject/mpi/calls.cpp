// librangescope_mpi.so: MPI's calls as NVTX ranges of domain `MPI`, through the standard's
// profiling interface.
//
// Preloaded into a program, before the MPI library: each call below opens a range with a
// payload (communicator, peer), calls the PMPI_ function, and closes the range with the outcome
// (bytes, sender). It links no MPI and needs no mpi.h: a program without MPI that inherits
// LD_PRELOAD loads it without effect. The kind of MPI is found at the first call (abi.hpp). The
// only argument that is changed is an ignored status. MPI is never asked about arguments that it
// has not accepted.
//
// Each function is defined for C, for C with large counts (MPI_Send_c), and for Fortran: mpi_send_
// of mpif.h and module mpi, ompi_send_f behind Open MPI's mpi_f08, and mpi_barrier_f08_ of MPICH's.
//
// A call that begins a message gives its request a number. The call that completes it (MPI_Wait,
// MPI_Testsome, ...) reports the number again when it ends, and for a receive sender, tag and
// bytes. A test that completes nothing makes no range. A persistent request begins a message each
// time it is started: a range such as `MPI_Start (MPI_Send_init)` inside that of MPI_Start or
// MPI_Startall.
#include "inject/mpi/run.hpp"

#define SHOWN extern "C" __attribute__((visibility("default")))

#define PARAMETERS_1 Word a
#define PARAMETERS_2 PARAMETERS_1, Word b
#define PARAMETERS_3 PARAMETERS_2, Word c
#define PARAMETERS_4 PARAMETERS_3, Word d
#define PARAMETERS_5 PARAMETERS_4, Word e
#define PARAMETERS_6 PARAMETERS_5, Word f
#define PARAMETERS_7 PARAMETERS_6, Word g
#define PARAMETERS_8 PARAMETERS_7, Word h
#define PARAMETERS_9 PARAMETERS_8, Word i
#define PARAMETERS_10 PARAMETERS_9, Word j
#define PARAMETERS_11 PARAMETERS_10, Word k
#define PARAMETERS_12 PARAMETERS_11, Word l
#define PARAMETERS_13 PARAMETERS_12, Word m
#define WORDS_1 a
#define WORDS_2 WORDS_1, b
#define WORDS_3 WORDS_2, c
#define WORDS_4 WORDS_3, d
#define WORDS_5 WORDS_4, e
#define WORDS_6 WORDS_5, f
#define WORDS_7 WORDS_6, g
#define WORDS_8 WORDS_7, h
#define WORDS_9 WORDS_8, i
#define WORDS_10 WORDS_9, j
#define WORDS_11 WORDS_10, k
#define WORDS_12 WORDS_11, l
#define WORDS_13 WORDS_12, m

#define RUN(n, name, arity, language, ...) \
  Word words[] = {__VA_ARGS__};            \
  return run(k##name, Language::language, words, n, invoke<arity>, __builtin_return_address(0))
#define IN_C(n, name, lower, ...)                               \
  static constinit Function k##name{"MPI_" #name, __VA_ARGS__}; \
  SHOWN int MPI_##name(PARAMETERS_##n) {                        \
    RUN(n, name, n, kC, WORDS_##n);                             \
  }                                                             \
  SHOWN int mpi_##lower##_(PARAMETERS_##n, Word error) {        \
    RUN(n, name, n + 1, kFortran, WORDS_##n, error);            \
  }                                                             \
  SHOWN int mpi_##lower##_f08_(PARAMETERS_##n, Word error) {    \
    RUN(n, name, n + 1, kFortran08, WORDS_##n, error);          \
  }                                                             \
  SHOWN int ompi_##lower##_f(PARAMETERS_##n, Word error) __attribute__((alias("mpi_" #lower "_")));
// Calls with counts.
#define COUNTS(n, name, lower, ...)          \
  IN_C(n, name, lower, __VA_ARGS__)          \
  SHOWN int MPI_##name##_c(PARAMETERS_##n) { \
    RUN(n, name, n, kLarge, WORDS_##n);      \
  }

namespace rangescope::inject::mpi {

// Messages.
COUNTS(6, Send, send, Act::kCall, "-ntpgc")
COUNTS(6, Ssend, ssend, Act::kCall, "-ntpgc")
COUNTS(6, Rsend, rsend, Act::kCall, "-ntpgc")
COUNTS(6, Bsend, bsend, Act::kCall, "-ntpgc")
COUNTS(7, Recv, recv, Act::kReceive, "-ntpgcS")
COUNTS(12, Sendrecv, sendrecv, Act::kReceive, "-ntpg---qhcS")
COUNTS(9, Sendrecv_replace, sendrecv_replace, Act::kReceive, "-ntpgqhcS")
COUNTS(7, Isend, isend, Act::kBegin, "-ntpgcR")
COUNTS(7, Issend, issend, Act::kBegin, "-ntpgcR")
COUNTS(7, Irsend, irsend, Act::kBegin, "-ntpgcR")
COUNTS(7, Ibsend, ibsend, Act::kBegin, "-ntpgcR")
COUNTS(7, Irecv, irecv, Act::kBegin, "-ntpgcR", true)
COUNTS(12, Isendrecv, isendrecv, Act::kBegin, "-ntpg---qhcR", true)
COUNTS(9, Isendrecv_replace, isendrecv_replace, Act::kBegin, "-ntpgqhcR", true)
COUNTS(7, Send_init, send_init, Act::kPrepare, "-ntpgcR")
COUNTS(7, Ssend_init, ssend_init, Act::kPrepare, "-ntpgcR")
COUNTS(7, Rsend_init, rsend_init, Act::kPrepare, "-ntpgcR")
COUNTS(7, Bsend_init, bsend_init, Act::kPrepare, "-ntpgcR")
COUNTS(7, Recv_init, recv_init, Act::kPrepare, "-ntpgcR", true)
IN_C(9, Psend_init, psend_init, Act::kPrepare, "-mntpgc-R")
IN_C(9, Precv_init, precv_init, Act::kPrepare, "-mntpgc-R", true)
IN_C(1, Start, start, Act::kStart, "R")
IN_C(2, Startall, startall, Act::kStart, "nR")
IN_C(4, Probe, probe, Act::kCall, "p-c-")
IN_C(5, Mprobe, mprobe, Act::kProbe, "pgcM-", true)
IN_C(6, Improbe, improbe, Act::kLook, "pgcfM-", true)
COUNTS(5, Mrecv, mrecv, Act::kTake, "-ntMS")
COUNTS(5, Imrecv, imrecv, Act::kTakeLater, "-ntMR")

// Requests.
IN_C(2, Wait, wait, Act::kComplete, "RS")
IN_C(3, Waitall, waitall, Act::kComplete, "nRS")
IN_C(4, Waitany, waitany, Act::kComplete, "nRiS")
IN_C(5, Waitsome, waitsome, Act::kComplete, "nRkxS")
IN_C(3, Test, test, Act::kTest, "RfS")
IN_C(4, Testall, testall, Act::kTest, "nRfS")
IN_C(5, Testany, testany, Act::kTest, "nRifS")
IN_C(5, Testsome, testsome, Act::kTest, "nRkxS")
IN_C(1, Request_free, request_free, Act::kFree, "R")

// Collectives. The bytes are those of one rank's message, counted for each operation as nccl-tests
// does. They are unknown for operations with a size for each rank.
#define BOTH(n, more, name, lower, roles)   \
  COUNTS(n, name, lower, Act::kCall, roles) \
  COUNTS(more, I##lower, i##lower, Act::kBegin, roles "R")
IN_C(1, Barrier, barrier, Act::kCall, "c")
IN_C(2, Ibarrier, ibarrier, Act::kBegin, "cR")
BOTH(5, 6, Bcast, bcast, "-ntpc")
BOTH(7, 8, Reduce, reduce, "--nt-pc")
BOTH(6, 7, Allreduce, allreduce, "--nt-c")
BOTH(6, 7, Reduce_scatter_block, reduce_scatter_block, "--nt-c")
BOTH(6, 7, Reduce_scatter, reduce_scatter, "-----c")
BOTH(6, 7, Scan, scan, "--nt-c")
BOTH(6, 7, Exscan, exscan, "--nt-c")
// The received count: with MPI_IN_PLACE, the sender's is ignored.
BOTH(7, 8, Allgather, allgather, "----ntc")
BOTH(7, 8, Alltoall, alltoall, "----ntc")
BOTH(8, 9, Gather, gather, "Int-NTpc")
BOTH(8, 9, Scatter, scatter, "-NTIntpc")
BOTH(8, 9, Allgatherv, allgatherv, "Int-A-Tc")
BOTH(9, 10, Gatherv, gatherv, "Int-A-Tpc")
BOTH(9, 10, Scatterv, scatterv, "-A-TIntpc")
BOTH(9, 10, Alltoallv, alltoallv, "--------c")
BOTH(9, 10, Alltoallw, alltoallw, "--------c")
BOTH(7, 8, Neighbor_allgather, neighbor_allgather, "-nt---c")
BOTH(8, 9, Neighbor_allgatherv, neighbor_allgatherv, "-nt----c")
BOTH(7, 8, Neighbor_alltoall, neighbor_alltoall, "-nt---c")
BOTH(9, 10, Neighbor_alltoallv, neighbor_alltoallv, "--------c")
BOTH(9, 10, Neighbor_alltoallw, neighbor_alltoallw, "--------c")

// One-sided calls. A window counts as a communicator of its own.
COUNTS(6, Win_create, win_create, Act::kCall, "----cW")
COUNTS(6, Win_allocate, win_allocate, Act::kCall, "---c-W")
COUNTS(6, Win_allocate_shared, win_allocate_shared, Act::kCall, "---c-W")
IN_C(3, Win_create_dynamic, win_create_dynamic, Act::kCall, "-cW")
IN_C(1, Win_free, win_free, Act::kForget, "W")
IN_C(2, Win_fence, win_fence, Act::kCall, "-w")
IN_C(3, Win_post, win_post, Act::kCall, "--w")
IN_C(3, Win_start, win_start, Act::kCall, "--w")
IN_C(1, Win_complete, win_complete, Act::kCall, "w")
IN_C(1, Win_wait, win_wait, Act::kCall, "w")
IN_C(4, Win_lock, win_lock, Act::kCall, "-p-w")
IN_C(2, Win_unlock, win_unlock, Act::kCall, "pw")
IN_C(2, Win_lock_all, win_lock_all, Act::kCall, "-w")
IN_C(1, Win_unlock_all, win_unlock_all, Act::kCall, "w")
IN_C(2, Win_flush, win_flush, Act::kCall, "pw")
IN_C(1, Win_flush_all, win_flush_all, Act::kCall, "w")
IN_C(2, Win_flush_local, win_flush_local, Act::kCall, "pw")
IN_C(1, Win_flush_local_all, win_flush_local_all, Act::kCall, "w")
#define ONE_SIDED(n, more, name, lower, roles) \
  COUNTS(n, name, lower, Act::kCall, roles)    \
  COUNTS(more, R##lower, r##lower, Act::kBegin, roles "R")
ONE_SIDED(8, 9, Put, put, "-ntp---w")
ONE_SIDED(8, 9, Get, get, "-ntp---w")
ONE_SIDED(9, 10, Accumulate, accumulate, "-ntp----w")
ONE_SIDED(12, 13, Get_accumulate, get_accumulate, "-nt---p----w")
IN_C(7, Fetch_and_op, fetch_and_op, Act::kCall, "--tp--w")
IN_C(7, Compare_and_swap, compare_and_swap, Act::kCall, "---tp-w")

// Calls that make a communicator from another.
IN_C(2, Comm_dup, comm_dup, Act::kCall, "cC")
IN_C(3, Comm_dup_with_info, comm_dup_with_info, Act::kCall, "c-C")
IN_C(3, Comm_idup, comm_idup, Act::kBegin, "cCR")
IN_C(4, Comm_split, comm_split, Act::kCall, "c--C")
IN_C(5, Comm_split_type, comm_split_type, Act::kCall, "c---C")
IN_C(3, Comm_create, comm_create, Act::kCall, "c-C")
IN_C(4, Comm_create_group, comm_create_group, Act::kCall, "c-aC")
IN_C(6, Cart_create, cart_create, Act::kCall, "c----C")
IN_C(3, Cart_sub, cart_sub, Act::kCall, "c-C")
IN_C(6, Graph_create, graph_create, Act::kCall, "c----C")
IN_C(9, Dist_graph_create, dist_graph_create, Act::kCall, "c-------C")
IN_C(10, Dist_graph_create_adjacent, dist_graph_create_adjacent, Act::kCall, "c--------C")
IN_C(1, Comm_free, comm_free, Act::kForget, "C")
IN_C(1, Comm_disconnect, comm_disconnect, Act::kForget, "C")

}  // namespace rangescope::inject::mpi
