// What recording the ranges of a program added to their own wall time.
//
// Each process image measures, as it begins, the least that a push and pop of an empty range take
// on it (native captures, model::Process): a part of that is inside the range, all of it inside the
// range around. Where this is more than 5 % of the wall time of a region, it is taken out of that
// one and of all others of its tree, so that times still add up; elsewhere times are as recorded.
// Children of the same domain count; calls through CUPTI, whose cost is unknown, do not.
// Start/end ranges were not measured and stay as they are. What a trace of PyTorch says of its
// profiler's own time (read/kineto/overhead.hpp) is taken out in the same way. O(occurrences).
#pragma once

#include "analyze/tree/tree.hpp"

namespace rangescope::analyze {

/// Of a wall time: below it the estimate's own error is as large.
inline constexpr double kWorthTaking = 0.05;

/// Fills Tree::recorded_ns and takes it out of the wall sums of the cells. After link_nodes().
void take_out_recording(const model::Session& session, Tree& tree);

/// What recording the ranges at the top took outside of them. Of several domains that of the
/// largest: ranges of the others lie inside it, or overlap it.
[[nodiscard]] double recorded_outside_ns(const model::Session& session, const Tree& tree);

/// Wall time of a closed occurrence, without what recording added.
[[nodiscard]] inline std::int64_t wall_of(const model::Session& session,
                                          const Tree& tree,
                                          std::uint32_t occurrence) {
  const model::Range& range = session.ranges[tree.range_of[occurrence]];
  return length_ns(range.start_ns, range.end_ns) -
         (tree.recorded_ns.empty() ? 0 : std::int64_t{tree.recorded_ns[occurrence]});
}

}  // namespace rangescope::analyze
