// Does a value differ between two groups of runs? Sound for a handful of runs and for many values
// at once.
//
// Test: permutation of whole runs, with the step-down maxT adjustment (P. H. Westfall and S. S.
// Young, "Resampling-Based Multiple Testing", 1993, algorithm 4.1; Ge, Dudoit and Speed, TEST 12,
// 2003). The runs are dealt out to the two groups in every possible way (or in `most` random ways,
// where there are more); a value's p is the share of deals in which the largest |t| of all values
// not yet decided is as large as its own. It assumes no distribution, keeps what regions have in
// common (nested regions move together), and holds the chance of one or more false alarms over all
// values below alpha, however many there are. What it assumes is that runs are exchangeable where
// nothing changed.
//   t = (mean of B - mean of A) / (mean distance from the own group's mean * sqrt(1/nA + 1/nB) +
//   floor)
// on logarithms where all values are positive, with means trimmed by a fifth at each end (K. K.
// Yuen, Biometrika 61, 1974): from 5 runs on, one that something else disturbed does not move them.
// The distances are of all values, the trimmed ones too. Yuen's own deviation, which trims them as
// well, does not see that a deal exchanged one run of A for one of B. With 5 runs a side, 25 of the
// 252 deals exchange one, and each had a t about as large as that of the true groups: p stayed
// above alpha in a third of all cases, however large the change. The floor, 0.1 % of the value,
// keeps a value that happens to be constant from deciding everything (Tusher, Tibshirani and Chu,
// PNAS 98, 2001). O(deals x values x units).
//
// Interval: Hodges and Lehmann's shift between two samples with the exact distribution of the
// Mann-Whitney U (Hollander and Wolfe, "Nonparametric Statistical Methods", section 4.3), as ratio;
// it is of one value, without adjustment.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace rangescope::analyze {

/// The units (runs, or stretches of one run) of one value in two groups. All values of a test have
/// the same units.
struct TwoGroups {
  std::vector<double> a, b;
};

/// Adjusted two-sided p of each value, in their order; at least 1 / deals(nA, nB), or 1 / `most`
/// where there are more deals. All groups A are of one size, so are all B, neither is empty.
/// Deterministic: the random deals come from a fixed seed.
[[nodiscard]] std::vector<double> permutation_test(std::span<const TwoGroups> values,
                                                   std::size_t most);

/// In how many ways na + nb units can be dealt to groups of na and nb; at most 1e18.
[[nodiscard]] double deals(std::size_t na, std::size_t nb);

/// The smallest p that so many units can give.
[[nodiscard]] double smallest_p(std::size_t na, std::size_t nb);

struct RatioInterval {
  double low = 0, high = 0;
  double confidence = 0;  ///< attained: at least `wanted`, or the most that so few units can give
};
/// Interval of b / a; nothing where a value is not positive or a group is empty.
[[nodiscard]] std::optional<RatioInterval> ratio_interval(const TwoGroups& value,
                                                          double wanted = 0.95);

}  // namespace rangescope::analyze
