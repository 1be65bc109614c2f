// Collective calls of a parallel job, joined over its ranks.
//
// A call is a range of NCCL (domain `NCCL`) or MPI (domain `MPI`) whose payload has communicator
// and bytes. The n-th call of a communicator on one rank is the n-th on every other: all must make
// them in one order. A call of NCCL takes as long as its kernels, which the same thread launched
// next; else as long as its range.
//
// The last rank to arrive does not wait: the shortest time of a call is its transfer, what the
// others took longer they waited. That needs no common clock. O(calls log calls).
//
// Messages are matched likewise: on a communicator the n-th send of a tag from one rank to another
// is the n-th receive there. Calls of a group (ncclGroupStart ... End) share the kernel that does
// all of them. What began with a request (MPI_Irecv) ends in the call that completed it, which has
// its number. A collective that is only begun (MPI_Iallreduce) takes as long as the call that
// completes it and no message; of several that one call completes, the last has its time, and the
// others take none.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/tree/tree.hpp"
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
  kOther,
  kSend,
  kReceive,
  kSendLater,     ///< only begun: MPI_Isend
  kReceiveLater,  ///< MPI_Irecv
  kExchange,      ///< a send and a receive: MPI_Sendrecv
  kExchangeLater,
  kWait,  ///< completes what was begun: MPI_Waitall
};

struct CollectiveCall {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t range = kNone;  ///< index into Session::ranges
  std::uint32_t process = 0;
  std::uint32_t communicator = 0;  ///< index into CollectiveCalls::communicators
  std::uint32_t name = 0;          ///< string of its range
  Operation operation = Operation::kOther;
  double bytes = 0;              ///< NaN where the call does not say
  std::uint32_t stream = kNone;  ///< of its kernels; kNone: it is timed by its range
  struct End {
    std::int32_t rank = kNobody, tag = 0;
  };
  End to, from;                 ///< of messages, ranks of the communicator
  std::int32_t self = kNobody;  ///< own rank in the communicator, where it or another call tells
  std::uint32_t done = kNone;   ///< index into `messaging` of the call that completed it
  std::uint32_t received = 0;   ///< kWait: receives that it completed
  bool later = false;           ///< a collective that is only begun: MPI_Iallreduce
  std::uint32_t stood = kNone;  ///< the range in which it was waited for, where that is not its own
  static constexpr std::int32_t kNobody = -2;
};

/// A send and its receive.
struct MatchedMessage {
  std::uint32_t send = 0, receive = 0;  ///< indexes into CollectiveCalls::messaging
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
  std::vector<CollectiveCall>
      standing;  ///< collectives that had not ended when recording did, which is their end here
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>>
      made;                               ///< calls by communicator and rank
  std::vector<CollectiveCall> messaging;  ///< point to point
  std::vector<MatchedMessage> messages;
  std::uint64_t unmatched = 0;  ///< ends of messages without the other one
  std::map<std::pair<bool, std::uint64_t>, std::uint32_t>
      numbers;  ///< of communicators, by Communicator::nccl and id

  /// The number of a communicator, which is added where it is new.
  std::uint32_t communicator(bool nccl, std::uint64_t id) {
    const auto [at, added] =
        numbers.try_emplace({nccl, id}, static_cast<std::uint32_t>(communicators.size()));
    if (added)
      communicators.push_back({nccl, id, 0});
    return at->second;
  }
};

/// Fills in what the name of a call tells.
void classify(std::string_view name, CollectiveCall& call);

/// Of processes whose rank is known; nothing where there are fewer than two ranks.
[[nodiscard]] CollectiveCalls find_collectives(const model::Session& session);

/// Calls of one rank on one communicator, in order: [first, last) of CollectiveCalls::calls.
struct RankCalls {
  std::size_t first, last;
};
/// Joins the n-th call of each of `ranks` as long as all of them made the same. They hold every
/// 2^shift-th of the calls that a rank made, `fewest` to `most`. The number of calls that were
/// joined.
std::size_t join_calls(const model::Session& session,
                       const std::vector<RankCalls>& ranks,
                       std::uint32_t shift,
                       std::uint64_t fewest,
                       std::uint64_t most,
                       CollectiveCalls& found);

/// Ranks of the job that made calls of each communicator.
using Members = std::map<std::uint32_t, std::set<std::uint32_t>>;
/// Matches sends with receives of `found.messaging`, where those of a rank are in the order of
/// their starts.
void match_messages(const model::Session& session, const Members& members, CollectiveCalls& found);

/// Of each kernel name, whether it is NCCL's.
[[nodiscard]] std::vector<char> nccl_kernels(const model::Session& session);
/// Is this range one of a communication library, whose time may be waiting?
[[nodiscard]] bool is_communication(const model::Session& session, const model::Range& range);
/// Is this the domain of one?
[[nodiscard]] bool is_communication(std::string_view domain);

/// Bytes per second that nccl-tests calls algorithm bandwidth and what it multiplies it by for bus
/// bandwidth (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): `bytes` of one rank's message, n
/// ranks. False where there is no such formula.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
[[nodiscard]] bool bandwidth_of(
    Operation operation, double bytes, double ranks, double ns, Bandwidth& out);

}  // namespace rangescope::analyze
