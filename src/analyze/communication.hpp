// Where the time of communication goes: Report::collectives, messages and activity, and Region::communication.
//
// The time of a call is waiting first, then its transfer: all leave together. What of either lies beside other kernels
// of the process on the same GPU (on any of its GPUs for a call that is timed by its range) is overlap; transfer and
// wait of a region are the rest, so that the three add up to its time. Of a group of messages, which share a kernel,
// the longest wait counts. Waits in messages of MPI are differences of moments and need clocks that agree: of one host,
// or aligned. O((calls + kernels) log) and one context a call.
#pragma once

#include "analyze/analyze.hpp"
#include "analyze/collectives.hpp"
#include "analyze/regions.hpp"

namespace rangescope::analyze {

inline constexpr std::size_t kMostCollectives = 200, kMostMessages = 200;
inline constexpr std::size_t kActivityBins = 256;

/// Of a job of two ranks or more, after the rows are there.
void add_communication(const model::Session& session, const Options& options, const Tree& tree,
                       const CollectiveCalls& found, const std::vector<RegionKey>& keys, model::Report& report);

/// Only Report::collectives, of calls whose ranges are all that `session` has: without what lies beside other kernels.
void add_collectives(const model::Session& session, const Options& options, const Tree& tree,
                     const CollectiveCalls& found, model::Report& report);

/// Where each of `found.calls` stands.
struct Around {
  std::uint32_t node = kNone;  ///< of the innermost range of the program, kNone for none
  double hidden_ns = 0;        ///< of its time, beside other kernels
};
[[nodiscard]] std::vector<Around> around_calls(const model::Session& session, const Options& options, const Tree& tree,
                                               const CollectiveCalls& found);

}  // namespace rangescope::analyze
