// Judges a comparison: a regression is significant and may be as large as the limit.
//
// With repeated runs a value has regressed when its increase is significant (analyze/statistics/permutation.hpp,
// one-sided) and the upper end of its interval reaches the limit. So a slowdown of exactly the limit is found, not
// found half the time; the price is that one somewhat below the limit may be refused too where the noise is wide. With
// single runs, whose noise from run to run is unknown, the measured ratio itself must be above the limit.
#pragma once

#include "analyze/compare/compare.hpp"
#include "base/result.hpp"
#include "model/gate.hpp"

namespace rangescope::analyze {

/// What the gate compares and how: increases alone, with a chance of false alarms of 2.5 % over all values (half of
/// what compare() gives to both directions), and without --metric also the fastest occurrence, which is the quietest
/// number of a busy machine (J. Chen and J. Revels, "Robust benchmarking in noisy environments", 2016).
[[nodiscard]] CompareOptions gate_comparison();

struct GateOptions {
  double max_regression = 0.05;
  bool any_machine = false;  ///< judge although GPU or CPU differ
};

/// kNotComparable where the sides ran on different machines, where the judged program failed, or, with
/// `regions_required` (regions were named), where the judged side does not have a region of the baseline.
[[nodiscard]] base::Result<model::Gate> gate(model::Comparison comparison, const GateOptions& options,
                                             bool regions_required);

/// Do so many runs of one program show a change of `limit` against as many others? For every region of 1 % of the run
/// or more, the values of gate_comparison() must vary so little from run to run that an interval of a ratio is
/// narrower.
[[nodiscard]] bool enough_runs(std::span<const model::Digest> runs, double limit);

}  // namespace rangescope::analyze
