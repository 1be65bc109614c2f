#include "analyze/statistics/spread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analyze/statistics/order.hpp"

namespace rangescope::analyze {
namespace spread_test {

/// By sorting, R-7.
double quantile(std::vector<std::int64_t> sorted, double p) {
  std::sort(sorted.begin(), sorted.end());
  const double h = static_cast<double>(sorted.size() - 1) * p;
  const auto low = static_cast<std::size_t>(h + 1e-9);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return static_cast<double>(sorted[low]) +
         (h - static_cast<double>(low)) * static_cast<double>(sorted[high] - sorted[low]);
}

TEST(Spread, AgreesWithSortingForEverySizeAndShape) {
  std::mt19937_64 random(3);
  std::vector<std::int64_t> scratch;
  for (const std::size_t n : {1u, 2u, 3u, 4u, 19u, 20u, 21u, 4096u, 4097u, 20001u}) {
    for (int shape = 0; shape < 6; ++shape) {
      std::vector<std::int64_t> values(n);
      for (auto& v : values) {
        const auto r = static_cast<std::int64_t>(random() >> 1);
        switch (shape) {
          case 0: v = r % 1000; break;
          case 1: v = r % 3'000'000'000; break;
          case 2: v = 42; break;
          case 3: v = r % 100 == 0 ? r % 1'000'000'000'000 : r % 50; break;  // a long tail
          case 4: v = r % 2'000'000 - 1'000'000; break;
          default: v = std::int64_t{1} << (r % 40); break;
        }
      }
      const std::size_t cut = n / 3;
      const std::span<const std::int64_t> pieces[] = {
          {values.data(), cut}, {}, {values.data() + cut, n - cut}};
      const model::Spread s =
          spread_of<std::int64_t>(std::span<const std::span<const std::int64_t>>(pieces), scratch);
      EXPECT_DOUBLE_EQ(s.median, quantile(values, 0.5)) << n << " " << shape;
      EXPECT_NEAR(s.p95, quantile(values, 0.95), 1e-6 * std::abs(s.p95)) << n << " " << shape;
      EXPECT_EQ(s.min, static_cast<double>(*std::min_element(values.begin(), values.end())));
      EXPECT_EQ(s.max, static_cast<double>(*std::max_element(values.begin(), values.end())));
      long double mean = 0, squares = 0;
      for (const auto v : values)
        mean += static_cast<long double>(v) / static_cast<long double>(n);
      for (const auto v : values)
        squares += (static_cast<long double>(v) - mean) * (static_cast<long double>(v) - mean);
      EXPECT_NEAR(s.mean, static_cast<double>(mean), 1e-9 * (1 + std::abs(s.mean)));
      const double deviation =
          n < 2 ? 0 : static_cast<double>(std::sqrt(squares / static_cast<long double>(n - 1)));
      EXPECT_NEAR(s.stddev, deviation, 1e-9 * (1 + deviation)) << n << " " << shape;
    }
  }
}

TEST(Spread, OfNothingIsZero) {
  std::vector<std::uint32_t> scratch;
  const model::Spread s = spread_of<std::uint32_t>(std::span<const std::uint32_t>{}, scratch);
  EXPECT_EQ(s.max, 0);
  EXPECT_EQ(s.stddev, 0);
}

TEST(SortNearly, SortsWhateverTheDisorder) {
  std::mt19937 random(5);
  for (const std::uint32_t n : {0u, 1u, 2u, 100u, 5000u}) {
    for (const int swaps : {0, 1, 5, 100, 100000}) {
      std::vector<std::int64_t> keys(n);
      for (std::uint32_t i = 0; i < n; ++i)
        keys[i] = static_cast<std::int64_t>(i / 2);
      for (int s = 0; s < swaps && n > 1; ++s)
        std::swap(keys[random() % n], keys[random() % n]);
      std::vector<std::uint32_t> index(n), expected(n);
      for (std::uint32_t i = 0; i < n; ++i)
        index[i] = expected[i] = i;
      const auto less = [&](std::uint32_t a, std::uint32_t b) {
        return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
      };
      sort_nearly(index, less);
      std::sort(expected.begin(), expected.end(), less);
      EXPECT_EQ(index, expected) << n << " " << swaps;
    }
  }
}

}  // namespace spread_test
}  // namespace rangescope::analyze
