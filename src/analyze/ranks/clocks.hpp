// Clocks of the hosts of a parallel job, brought together by what all ranks do together.
//
// Readers lay recordings of several hosts side by side by UTC, which is as good as the hosts' time
// synchronization: often half a millisecond. All ranks leave a collective within the jitter of its
// transfer, so that the differences between the ends of one joined call tell the rest. Per host and
// stretch of the run the median of the differences is taken (robust against calls that one rank
// left late), and between the middles of stretches a straight line: offset and drift. Processes of
// one host share a clock. Hosts that share no call with the first one go through others that do.
//
// O(calls log calls). Accuracy: the jitter of the ends, over the square root of the calls in a
// stretch; the residual is stated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/ranks/collectives.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

struct HostClock {
  std::string host;
  std::vector<std::uint32_t> processes;  ///< indexes into Session::processes
  /// What is added to its times, at those times; straight lines between, the first and last lines
  /// go on.
  struct Knot {
    double at_ns, add_ns;
  };
  std::vector<Knot> knots;  ///< empty: nothing is known, or it is the reference
  double residual_ns = 0;   ///< 95th percentile of what is left of the differences
  std::size_t calls = 0;    ///< that it rests on

  [[nodiscard]] double add_at(double at_ns) const;
};

/// One for each host, the reference (that of the lowest rank) first; fewer than two: nothing is to
/// be aligned.
[[nodiscard]] std::vector<HostClock> find_clocks(const model::Session& session,
                                                 const CollectiveCalls& found);

/// Moves everything that was recorded on each host's clock onto that of the reference, and those
/// calls.
std::vector<HostClock> align_hosts(model::Session& session, CollectiveCalls& found);

/// What was done, in Report::ranks, notes and losses.
void describe_clocks(const std::vector<HostClock>& clocks,
                     const model::Session& session,
                     model::Report& report);

}  // namespace rangescope::analyze
