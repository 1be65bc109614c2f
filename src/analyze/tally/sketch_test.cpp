// Sketches against exact quantiles of values of every size, and merges in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analyze/statistics/spread.hpp"
#include "analyze/tally/digest.hpp"

namespace rangescope::analyze::tally {
namespace {

std::vector<std::int64_t> values(unsigned seed, std::size_t n) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> out;
  std::lognormal_distribution<double> long_tail(12, 3);
  for (std::size_t i = 0; i < n; ++i)
    switch (seed % 4) {
      case 0: out.push_back(static_cast<std::int64_t>(random() % 100)); break;
      case 1: out.push_back(static_cast<std::int64_t>(long_tail(random))); break;
      case 2: out.push_back(static_cast<std::int64_t>(random() >> (18 + random() % 44))); break;
      default:
        out.push_back(i % 10 == 0 ? 5'000'000'000
                                  : 1'000'000 + static_cast<std::int64_t>(random() % 1000));
    }
  return out;
}

TEST(Sketch, BinsHoldTheirMiddleAndFollowEachOther) {
  std::size_t last = 0;
  for (int bits = 0; bits < 63; ++bits) {
    for (const std::int64_t off : {-1, 0, 1, 77}) {
      const std::int64_t value = std::max<std::int64_t>(0, (std::int64_t{1} << bits) + off);
      const std::size_t bin = Sketch::bin_of(value);
      ASSERT_LT(bin, Sketch::kBins);
      const std::int64_t middle = Sketch::middle_of(bin);
      EXPECT_EQ(Sketch::bin_of(middle), bin) << value;
      EXPECT_LE(std::abs(static_cast<double>(middle - value)),
                kRelativeError * static_cast<double>(value))
          << value;
      if (off == 0) {
        EXPECT_GE(bin, last);
        last = bin;
      }
    }
  }
  for (std::int64_t value = 0; value < 64; ++value)
    EXPECT_EQ(Sketch::middle_of(Sketch::bin_of(value)), value);
  EXPECT_LT(Sketch::bin_of(INT64_MAX), Sketch::kBins);
  EXPECT_EQ(Sketch::bin_of(-5), 0u);
}

TEST(Sketch, QuantilesAreWithinTheErrorAndTheRestIsExact) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    for (const std::size_t n : {1, 2, 3, 20, 1000, 20000}) {
      const auto all = values(seed, n);
      Distribution sketch;
      for (const std::int64_t value : all)
        sketch.add(value);
      std::vector<std::int64_t> scratch;
      const model::Spread exact =
          analyze::spread_of<std::int64_t>(std::span<const std::int64_t>(all), scratch);
      const model::Spread found = spread_of(sketch);
      EXPECT_EQ(found.min, exact.min);
      EXPECT_EQ(found.max, exact.max);
      EXPECT_EQ(found.mean, exact.mean) << seed << " " << n;
      EXPECT_DOUBLE_EQ(found.stddev, exact.stddev) << seed << " " << n;
      EXPECT_LE(std::abs(found.median - exact.median), kRelativeError * exact.median + 1e-9)
          << seed << " " << n;
      EXPECT_LE(std::abs(found.p95 - exact.p95), kRelativeError * exact.p95 + 1e-9)
          << seed << " " << n;
      EXPECT_EQ(sketch.sketch.total(), n);
    }
  }
}

TEST(Sketch, MergesInAnyOrderAreTheWhole) {
  const auto all = values(2, 5000);
  Distribution whole, front, back;
  std::vector<Distribution> parts(7);
  for (std::size_t i = 0; i < all.size(); ++i) {
    whole.add(all[i]);
    parts[i * i % 7].add(all[i]);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    front.add(parts[i]);
    back.add(parts[parts.size() - 1 - i]);
  }
  for (const Distribution* merged : {&front, &back}) {
    EXPECT_EQ(merged->moments, whole.moments);
    const model::Spread a = spread_of(*merged), b = spread_of(whole);
    EXPECT_EQ(a.median, b.median);
    EXPECT_EQ(a.p95, b.p95);
    EXPECT_EQ(a.stddev, b.stddev);
  }
  whole.moments.take(parts[0].moments);
  whole.sketch.take(parts[0].sketch);
  EXPECT_EQ(whole.sketch.total(), all.size() - parts[0].moments.n);
}

}  // namespace
}  // namespace rangescope::analyze::tally
