// Distribution of integers that lie in several pieces: minimum, median, 95th percentile, maximum,
// mean, deviation.
//
// Exact and independent of order: sums and sums of squares are integers. Quantiles are R-7 (linear
// interpolation, as numpy's default); their order statistics are selected with one histogram of at
// most 65,536 bins and a look into the bins that hold them, O(n) with two sequential passes (Floyd
// and Rivest's idea of narrowing first, "Algorithm 489", CACM 18, 1975), or with std::nth_element
// where there are few values.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "model/report.hpp"
#include "model/sketch.hpp"

namespace rangescope::analyze {

/// Pieces of one sample; T is std::uint32_t or std::int64_t. `scratch` is reused between calls.
template <class T>
[[nodiscard]] model::Spread spread_of(std::span<const std::span<const T>> pieces,
                                      std::vector<T>& scratch);

template <class T>
[[nodiscard]] model::Spread spread_of(std::span<const T> values, std::vector<T>& scratch) {
  const std::span<const T> pieces[] = {values};
  return spread_of<T>(std::span<const std::span<const T>>(pieces), scratch);
}

/// Of a sketch: median and 95th percentile are within model::kRelativeError of the exact ones, the
/// rest is exact.
[[nodiscard]] model::Spread spread_of(const model::Distribution& values);
/// Of values and of those that only a sketch has; exact where it has none.
[[nodiscard]] model::Spread spread_of(std::span<const std::int64_t> values,
                                      model::Distribution sketched,
                                      std::vector<std::int64_t>& scratch);

/// Sample standard deviation of n integers by their sum and sum of squares; 0 of fewer than two.
[[nodiscard]] double deviation_of(std::size_t n, __int128 sum, __int128 squares);

/// a quantile lies between two order statistics, at (n - 1) * numerator / denominator.
struct Position {
  std::size_t low, high;
  double part;
};
[[nodiscard]] Position position_of(std::size_t n, std::size_t numerator, std::size_t denominator);

/// The larger of the two in the middle: a value that was seen; 0 when there are none.
template <class T>
[[nodiscard]] T upper_median(std::vector<T> values) {
  if (values.empty())
    return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median of a few values; the vector is reordered. 0 when there are none.
[[nodiscard]] double median_of(std::vector<double>& values);

}  // namespace rangescope::analyze
