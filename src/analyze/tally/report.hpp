// The report of a job from its merged digest.
#pragma once

#include <map>

#include "analyze/analyze.hpp"
#include "analyze/ranks/communication.hpp"
#include "analyze/tally/digest.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::tally {

struct Reported {
  model::Session session;  ///< processes and threads only: what happened when is in the captures
  model::Report report;
};

/// The report that analyze() makes of all ranks' captures, less what digests lack: its notes list
/// that. Counts, sums, means, extremes, deviations, statistics over ranks and collectives are the
/// same; medians and percentiles within kRelativeError. O(regions * ranks + calls log calls).
/// `options`: only top_kernels and device are looked at.
[[nodiscard]] Reported report_of(Digest digest,
                                 const analyze::Options& options,
                                 const analyze::Reference& reference,
                                 analyze::RunFacts facts = {});

/// A moment of a digest from its begin on.
[[nodiscard]] inline std::int64_t since(std::int64_t at, const Digest& digest) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(at) -
                                   static_cast<std::uint64_t>(digest.begin_ns));
}

/// Report::collectives and outside, clocks of hosts and the duration by them, and what is lost.
/// Before regions, after processes. `whole`: also Report::messages, and returns the communication
/// of each region.
std::map<std::uint32_t, analyze::CommunicationSum> add_collectives(const Digest& digest,
                                                                   bool whole,
                                                                   Reported& into);
/// Calls of a job that are joined; of more every second, fourth ... of each communicator.
inline constexpr std::size_t kMostJoined = 1 << 20;

}  // namespace rangescope::analyze::tally
