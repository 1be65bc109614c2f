// Judges a comparison: a regression is significant and may be as large as the limit.
//
// What is significant, of which values, is what compare() found: the two never disagree on the same
// runs. A function has regressed like a region; one that did not change significantly is not asked
// for more runs.
//
// With repeated runs a value has regressed when its increase is significant and the upper end of
// its interval reaches the limit. So a slowdown of exactly the limit is found, not found half the
// time; the price is that one somewhat below the limit may be refused too where the noise is wide.
// With single runs, whose noise from run to run is unknown, the measured ratio itself must be above
// the limit.
#pragma once

#include "analyze/compare/compare.hpp"
#include "base/result.hpp"
#include "model/gate.hpp"

namespace rangescope::analyze {

struct GateOptions {
  double max_regression = 0.05;
  bool any_machine = false;  ///< judge although GPU or CPU differ
  bool strict = false;       ///< the largest range of the baseline must be there
};

/// kNotComparable where the sides ran on different machines, where the judged program failed, where
/// the judged side does not have a region of the baseline with `regions_required` (regions were
/// named), or its largest with `strict`.
[[nodiscard]] base::Result<model::Gate> gate(model::Comparison comparison,
                                             const GateOptions& options,
                                             bool regions_required);

/// Do so many runs of one program show a change of `limit` against as many others? For every region
/// of 1 % of the run or more, the values that are compared must vary so little from run to run that
/// an interval of a ratio is narrower.
[[nodiscard]] bool enough_runs(std::span<const model::Digest> runs, double limit);

}  // namespace rangescope::analyze
