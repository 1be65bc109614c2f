// Where the time of communication goes: Report::collectives, messages and activity, and Region::communication.
//
// The time of a call is waiting first, then its transfer: all leave together. What of either lies beside other kernels
// of the process on the same GPU (on any of its GPUs for a call that is timed by its range) is overlap; transfer and
// wait of a region are the rest, so that the three add up to its time. Of a group of messages, which share a kernel,
// the longest wait counts. Waits in messages of MPI are differences of moments and need clocks that agree: of one host,
// or aligned. O((calls + kernels) log) and one context a call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/options.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

/// Kind of the verdicts that are found here, of ranks that never came to a call: judge() keeps them.
inline constexpr std::string_view kHung = "hung";
inline constexpr std::size_t kMostCollectives = 200, kMostMessages = 200;
inline constexpr std::size_t kActivityBins = 256;

/// What calls add up to in a region.
class CommunicationSum {
 public:
  /// Of `calls` calls as long as this one, a rank's, which waited for rank `cause` (kNone: for none) first. Beside:
  /// what of the wait and of the rest lies beside other kernels.
  void add(double time_ns, double wait_ns, double wait_beside_ns, double beside_ns, std::uint32_t cause,
           double calls = 1);
  void add(const CommunicationSum& other);
  [[nodiscard]] std::optional<model::Communication> row() const;  ///< nothing of no calls

 private:
  struct Cause {
    double calls = 0, ns = 0;
  };
  model::Communication sums_;
  double calls_ = 0;
  std::map<std::uint32_t, Cause> causes_;
};

/// Of a job of two ranks or more, after the rows are there.
void add_communication(const model::Session& session, const Options& options, const Tree& tree,
                       const CollectiveCalls& found, const std::vector<RegionKey>& keys, model::Report& report);

/// A call of one rank with what it did in it.
struct Timed {
  const CollectiveCall* call = nullptr;
  double wait_ns = 0;
  std::uint32_t cause = kNone;  ///< the rank that it waited for
};
/// Only Report::collectives and messages, of calls whose ranges are all that `session` has: without what lies beside
/// other kernels. Returns their calls, joined ones only.
std::vector<Timed> add_collectives(const model::Session& session, const Options& options, const Tree& tree,
                                   const CollectiveCalls& found, model::Report& report);

/// Where each of `found.calls` stands, and behind them each of `found.messaging` and `found.standing`.
struct Around {
  std::uint32_t node = kNone;        ///< of the innermost range of the program, kNone for none
  double hidden_ns = 0;              ///< of its time, beside other kernels
  std::vector<std::uint32_t> nodes;  ///< in which it counts, with all above them; ascending
  /// When other kernels ran, from its begin on. Of more than kMostBeside the shortest gaps are closed.
  std::vector<std::pair<std::int64_t, std::int64_t>> beside;
};
inline constexpr std::size_t kMostBeside = 8;
[[nodiscard]] std::vector<Around> around_calls(const model::Session& session, const Options& options, const Tree& tree,
                                               const CollectiveCalls& found);

}  // namespace rangescope::analyze
