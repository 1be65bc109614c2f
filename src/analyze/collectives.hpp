// Collective calls of a parallel job, joined over its ranks.
//
// A call is a range of NCCL (domain `NCCL`) or MPI (domain `MPI`) whose payload says communicator and bytes. The n-th
// call of a communicator on one rank is the n-th on every other: all must make them in one order. A call of NCCL takes
// as long as its kernels, which the same thread launched next; else as long as its range.
//
// The last rank to arrive waits for nobody: the shortest time of a call is its transfer, what the others took longer
// they waited. That needs no common clock. O(calls log calls).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/tree.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

enum class Operation : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kBarrier,
  kOther
};

struct CollectiveCall {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t range = kNone;  ///< index into Session::ranges
  std::uint32_t process = 0;
  std::uint32_t communicator = 0;  ///< index into CollectiveCalls::communicators
  std::uint32_t name = 0;          ///< string of its range
  Operation operation = Operation::kOther;
  double bytes = 0;  ///< NaN where the call does not say
};

struct Communicator {
  bool nccl = false;
  std::uint64_t id = 0;     ///< 0: the library does not say
  std::uint32_t ranks = 0;  ///< as it was made, 0 where unknown
};

/// The calls of several ranks that are one.
struct JoinedCall {
  std::vector<std::uint32_t> calls;  ///< one a rank, ascending ranks
};

struct CollectiveCalls {
  std::vector<Communicator> communicators;
  std::vector<CollectiveCall> calls;
  std::vector<JoinedCall> joined;  ///< communicator by communicator, in order
  std::uint64_t unjoined = 0;      ///< calls of which the ranks do not agree
};

/// kOther for a name that is none of a collective.
[[nodiscard]] Operation operation_of(std::string_view name);

/// Of processes whose rank is known; nothing where there are fewer than two ranks.
[[nodiscard]] CollectiveCalls find_collectives(const model::Session& session);

/// Is this range one of a communication library, whose time may be waiting?
[[nodiscard]] bool is_communication(const model::Session& session, const model::Range& range);

/// The node of the innermost range of the program around a call, kNone for none.
[[nodiscard]] std::uint32_t node_around(const model::Session& session, const Tree& tree, const model::Range& call);

/// Report::collectives, at most kMostCollectives of them.
void add_collectives(const model::Session& session, const Tree& tree, const CollectiveCalls& found,
                     model::Report& report);
inline constexpr std::size_t kMostCollectives = 200;

/// Bytes per second that nccl-tests calls algorithm bandwidth and what it multiplies it by for bus bandwidth
/// (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): `bytes` of one rank's message, n ranks. False where there is no
/// such formula.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
[[nodiscard]] bool bandwidth_of(Operation operation, double bytes, double ranks, double ns, Bandwidth& out);

}  // namespace rangescope::analyze
