// Long stretches of the launching thread between the same two calls, one or a few of each instance.
//
// A stretch is often shorter than the time between two CPU samples. What it is shows only when all
// stretches at the same place of the step are judged by all their samples.
#pragma once

#include <set>
#include <string>
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

/// Stretches most of whose samples are in one function or library.
struct SampledStretches {
  Ids ids;
  std::set<std::size_t> instances;
  StackSamples::Share share;

  void add(const AlikeStretches& group, const StackSamples::Share& share_of_group);
  /// Sampled often enough to tell, in three instances or more, also in the second half of the loop.
  [[nodiscard]] bool go_on(const Recording& recording) const;
  /// What is left of them without it: the other samples' share, within a tenth.
  [[nodiscard]] replay::Parameter rest() const;
  /// How long they were in it.
  [[nodiscard]] double duration_ns(const Recording& recording) const;
};

/// Claims the stretches, and adds a cure that shortens them to their rest.
void add_shortened(const Recording& recording,
                   Findings& findings,
                   const char* cure,
                   std::string text,
                   SampledStretches work);

}  // namespace rangescope::analyze::cures
