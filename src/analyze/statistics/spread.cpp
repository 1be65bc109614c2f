#include "analyze/statistics/spread.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace rangescope::analyze {
namespace {

using Wide = __int128;

constexpr std::size_t kFew = 4096;

template <class T>
struct Moments {
  std::size_t n = 0;
  T min = 0, max = 0;
  std::int64_t sum = 0;
  Wide squares = 0;
};

template <class T>
Moments<T> moments_of(std::span<const std::span<const T>> pieces) {
  Moments<T> m;
  std::uint64_t sum = 0;
  for (const std::span<const T> piece : pieces) {
    if (piece.empty())
      continue;
    if (m.n == 0)
      m.min = m.max = piece.front();
    m.n += piece.size();
    for (const T value : piece) {
      m.min = std::min(m.min, value);
      m.max = std::max(m.max, value);
      sum += static_cast<std::uint64_t>(value);
      m.squares += static_cast<Wide>(value) * value;
    }
  }
  m.sum = static_cast<std::int64_t>(sum);
  return m;
}

/// The values at ascending `ranks` of a sample of few values.
template <class T, std::size_t K>
std::array<T, K> select_of_few(std::span<const std::span<const T>> pieces,
                               const std::array<std::size_t, K>& ranks,
                               std::vector<T>& scratch) {
  std::array<T, K> found{};
  scratch.clear();
  for (const auto piece : pieces)
    scratch.insert(scratch.end(), piece.begin(), piece.end());
  std::size_t first_unsorted = 0;
  for (std::size_t k = 0; k < K; ++k) {
    if (k > 0 && ranks[k] == ranks[k - 1]) {
      found[k] = found[k - 1];
      continue;
    }
    std::nth_element(scratch.begin() + static_cast<std::ptrdiff_t>(first_unsorted),
                     scratch.begin() + static_cast<std::ptrdiff_t>(ranks[k]),
                     scratch.end());
    found[k] = scratch[ranks[k]];
    first_unsorted = ranks[k] + 1;
  }
  return found;
}

/// The values at ascending `ranks` of the sorted sample.
template <class T, std::size_t K>
std::array<T, K> select(std::span<const std::span<const T>> pieces,
                        const Moments<T>& m,
                        const std::array<std::size_t, K>& ranks,
                        std::vector<T>& scratch) {
  if (m.n <= kFew)
    return select_of_few(pieces, ranks, scratch);
  std::array<T, K> found{};
  const auto base = static_cast<std::uint64_t>(m.min);
  const std::uint64_t range = static_cast<std::uint64_t>(m.max) - base;
  const int shift = std::max(0, static_cast<int>(std::bit_width(range)) - 16);
  const auto bin_of = [&](T value) {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(value) - base) >> shift);
  };
  std::vector<std::uint32_t> bins((range >> shift) + 1, 0);
  for (const auto piece : pieces) {
    for (const T value : piece)
      ++bins[bin_of(value)];
  }
  std::array<std::size_t, K> bin{}, before{};
  std::size_t current_bin = 0, count_before = 0;
  for (std::size_t k = 0; k < K; ++k) {
    while (count_before + bins[current_bin] <= ranks[k])
      count_before += bins[current_bin++];
    bin[k] = current_bin;
    before[k] = count_before;
  }
  for (std::size_t k = 0; k < K; ++k) {
    if (shift == 0) {
      found[k] = static_cast<T>(base + bin[k]);
      continue;
    }
    if (k == 0 || bin[k] != bin[k - 1]) {
      scratch.clear();
      for (const auto piece : pieces) {
        for (const T value : piece) {
          if (bin_of(value) == bin[k])
            scratch.push_back(value);
        }
      }
    }
    const auto nth = scratch.begin() + static_cast<std::ptrdiff_t>(ranks[k] - before[k]);
    std::nth_element(scratch.begin(), nth, scratch.end());
    found[k] = *nth;
  }
  return found;
}

template <class T>
double between(T low, T high, double part) {
  return static_cast<double>(low) + part * (static_cast<double>(high) - static_cast<double>(low));
}

}  // namespace

// n * sum of squares - square of the sum, exact while it fits 127 bits.
double deviation_of(std::size_t count, Wide sum, Wide squares) {
  if (count < 2)
    return 0;
  const auto n = static_cast<long double>(count);
  Wide scaled = 0, square = 0;
  if (!__builtin_mul_overflow(static_cast<Wide>(count), squares, &scaled) &&
      !__builtin_mul_overflow(sum, sum, &square))
    return static_cast<double>(
        std::sqrt(std::max(0.0L, static_cast<long double>(scaled - square)) / n / (n - 1)));
  const auto total = static_cast<long double>(sum);
  return static_cast<double>(
      std::sqrt(std::max(0.0L, (static_cast<long double>(squares) - total / n * total) / (n - 1))));
}

Position position_of(std::size_t n, std::size_t numerator, std::size_t denominator) {
  const std::size_t scaled = (n - 1) * numerator;
  const std::size_t low = scaled / denominator;
  return {low,
          std::min(low + 1, n - 1),
          static_cast<double>(scaled % denominator) / static_cast<double>(denominator)};
}

template <class T>
model::Spread spread_of(std::span<const std::span<const T>> pieces, std::vector<T>& scratch) {
  const Moments<T> m = moments_of(pieces);
  model::Spread spread;
  if (m.n == 0)
    return spread;
  const Position median = position_of(m.n, 1, 2);
  const Position p95 = position_of(m.n, 19, 20);
  const auto values = select<T, 4>(
      pieces, m, {median.low, median.high, std::max(p95.low, median.high), p95.high}, scratch);
  spread.min = static_cast<double>(m.min);
  spread.max = static_cast<double>(m.max);
  spread.median = between(values[0], values[1], median.part);
  // With two values p95.low lies below median.high; it is median.low then.
  spread.p95 = between(p95.low < median.high ? values[0] : values[2], values[3], p95.part);
  spread.mean =
      static_cast<double>(static_cast<long double>(m.sum) / static_cast<long double>(m.n));
  spread.stddev = deviation_of(m.n, m.sum, m.squares);
  return spread;
}

template model::Spread spread_of<std::uint32_t>(std::span<const std::span<const std::uint32_t>>,
                                                std::vector<std::uint32_t>&);
template model::Spread spread_of<std::int64_t>(std::span<const std::span<const std::int64_t>>,
                                               std::vector<std::int64_t>&);

namespace {

double quantile(const model::Distribution& values, std::size_t numerator, std::size_t denominator) {
  const Position position = position_of(values.moments.n, numerator, denominator);
  const double low = values.value_at(position.low);
  const double high = position.part > 0 ? values.value_at(position.high) : low;
  return low + position.part * (high - low);
}

}  // namespace

model::Spread spread_of(const model::Distribution& values) {
  model::Spread out;
  const model::Moments& moments = values.moments;
  if (moments.n == 0)
    return out;
  out.min = static_cast<double>(moments.min);
  out.max = static_cast<double>(moments.max);
  out.median = quantile(values, 1, 2);
  out.p95 = quantile(values, 19, 20);
  out.mean = moments.mean();
  out.stddev = deviation_of(moments.n, moments.sum, static_cast<Wide>(moments.squares));
  return out;
}

model::Spread spread_of(std::span<const std::int64_t> values,
                        model::Distribution sketched,
                        std::vector<std::int64_t>& scratch) {
  if (sketched.moments.n == 0)
    return spread_of<std::int64_t>(values, scratch);
  for (const std::int64_t value : values)
    sketched.add(value);
  return spread_of(sketched);
}

double median_of(std::vector<double>& values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const Position middle = position_of(values.size(), 1, 2);
  return values[middle.low] + middle.part * (values[middle.high] - values[middle.low]);
}

}  // namespace rangescope::analyze
