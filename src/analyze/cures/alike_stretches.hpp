// Long stretches of the launching thread between the same two calls, one or a few of each instance.
//
// A stretch is often shorter than the time between two CPU samples. What it is shows only when all
// stretches at the same place of the step are judged by all their samples.
#pragma once

#include <set>
#include <vector>

#include "analyze/cures/candidate.hpp"

namespace rangescope::analyze::cures {

struct AlikeStretches {
  Ids ids;
  std::set<std::size_t> instances;
};

/// Those that no cure has claimed, behind the start of the loop. O(n log n) in calls.
[[nodiscard]] std::vector<AlikeStretches> alike_stretches(const Recording& recording,
                                                          const Findings& findings);

/// In three instances or more, also in the second half of the loop.
[[nodiscard]] bool goes_on(const Recording& recording, const std::set<std::size_t>& instances);

/// What is left of stretches of whose samples so many are in what goes: the others, within a tenth.
[[nodiscard]] replay::Parameter rest_of(const StackSamples::Share& share);

}  // namespace rangescope::analyze::cures
