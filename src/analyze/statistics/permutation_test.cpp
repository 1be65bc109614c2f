#include "analyze/statistics/permutation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace rangescope::analyze {
namespace dealing_test {

TEST(Permutation, CountsDeals) {
  EXPECT_EQ(deals(3, 3), 20);
  EXPECT_EQ(deals(5, 5), 252);
  EXPECT_EQ(deals(19, 1), 20);
  EXPECT_EQ(deals(8, 24), 10518300);
  EXPECT_DOUBLE_EQ(smallest_p(3, 3), 0.1);
  EXPECT_DOUBLE_EQ(smallest_p(4, 4), 2.0 / 70);
  EXPECT_DOUBLE_EQ(smallest_p(3, 5), 1.0 / 56);
}

TEST(Permutation, SeparatedGroupsHaveTheSmallestP) {
  const std::vector<TwoGroups> one = {{{10, 11, 12, 10.5}, {20, 21, 22, 19}}};
  EXPECT_DOUBLE_EQ(permutation_test(one, 20000)[0], 2.0 / 70);
  const std::vector<TwoGroups> less = {{{20, 21, 22, 19}, {10, 11, 12, 10.5}}};
  EXPECT_DOUBLE_EQ(permutation_test(less, 20000)[0], 2.0 / 70);
}

// Counted by hand: A = 1, 2, B = 3, 4 on six deals; |t| is largest for {1,2|3,4} and its mirror
// image.
TEST(Permutation, SmallCaseByHand) {
  const std::vector<TwoGroups> one = {{{1, 2}, {3, 4}}};
  EXPECT_DOUBLE_EQ(permutation_test(one, 20000)[0], 2.0 / 6);
  const std::vector<TwoGroups> equal = {{{7, 7, 7}, {7, 7, 7}}};
  EXPECT_DOUBLE_EQ(permutation_test(equal, 20000)[0], 1.0);
}

// One value that changed among many that did not: it alone is found, however many there are.
TEST(Permutation, OneOfMany) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(100, 1);
  std::vector<TwoGroups> values(60);
  for (TwoGroups& value : values) {
    for (int i = 0; i < 6; ++i) {
      value.a.push_back(noise(random));
      value.b.push_back(noise(random));
    }
  }
  for (double& x : values[17].b)
    x *= 1.1;
  const auto p = permutation_test(values, 20000);
  EXPECT_LE(p[17], 0.01);
  for (std::size_t j = 0; j < p.size(); ++j) {
    if (j == 17)
      continue;
    EXPECT_GT(p[j], 0.05) << j;
  }
}

// The chance of one or more false alarms over twelve values that move together in part: 5 % or
// less.
TEST(Permutation, FalseAlarmsOverAllValues) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(0, 1);
  int alarms = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<TwoGroups> values(12);
    for (int i = 0; i < 10; ++i) {
      const double common = noise(random);
      for (TwoGroups& value : values)
        (i < 5 ? value.a : value.b).push_back(100 + common + noise(random));
    }
    const auto p = permutation_test(values, 20000);
    for (const double each : p) {
      if (each > 0.05)
        continue;
      ++alarms;
      break;
    }
  }
  EXPECT_LE(alarms, kTrials * 7 / 100);
  EXPECT_GE(alarms, kTrials * 2 / 100);  // and it is no test that never fires
}

/// In what share of `trials` a change of `effect` deviations is significant at 5 %, with `n` runs a
/// side that differ by 0.5 %. `disturbed`: one run, of A and of B by turns, takes twice as long.
double found(std::size_t n, double effect, int trials, bool disturbed = false) {
  constexpr double kDeviation = 0.005;
  std::mt19937_64 random(n);
  std::normal_distribution<double> noise(0, kDeviation);
  int count = 0;
  for (int trial = 0; trial < trials; ++trial) {
    TwoGroups value;
    for (std::size_t i = 0; i < n; ++i) {
      value.a.push_back(std::exp(noise(random)));
      value.b.push_back(std::exp(noise(random) + effect * kDeviation));
    }
    if (disturbed)
      (trial % 2 == 0 ? value.a : value.b)[0] *= 2;
    if (permutation_test({&value, 1}, 1000)[0] <= 0.05)
      ++count;
  }
  return static_cast<double>(count) / trials;
}

// With 5 runs a side 2.9 times the time was noise in a third of all cases.
TEST(Permutation, AChangeFarBeyondTheNoiseIsAlwaysFound) {
  const std::vector<TwoGroups> seen = {
      {{2.130, 2.135, 2.131, 2.139, 2.137}, {6.127, 6.120, 6.139, 6.125, 6.131}}};
  EXPECT_DOUBLE_EQ(permutation_test(seen, 10000)[0], 2.0 / 252);
  for (std::size_t n = 4; n <= 10; ++n)
    for (const double effect : {8.0, 20.0, 200.0})
      EXPECT_EQ(found(n, effect, 60), 1) << n << " runs, " << effect;
}

TEST(Permutation, OneDisturbedRunAmongFiveHidesNoChange) {
  for (std::size_t n = 5; n <= 10; ++n)
    EXPECT_EQ(found(n, 20, 60, true), 1) << n << " runs";
}

TEST(Permutation, FalseAlarmsForEveryNumberOfRuns) {
  constexpr int kTrials = 300;
  double all = 0;
  for (std::size_t n = 4; n <= 10; ++n) {
    for (const bool disturbed : {false, true}) {
      const double share = found(n, 0, kTrials, disturbed);
      EXPECT_LE(share, 0.05 + 3 * std::sqrt(0.05 / kTrials))
          << n << " runs";  // three standard deviations
      all += share / 14;
    }
  }
  EXPECT_LE(all, 0.05 + 3 * std::sqrt(0.05 / (14 * kTrials)));
  EXPECT_GE(all, 0.03);
}

// More deals than can be counted out are drawn at random, and give nearly the same p.
TEST(Permutation, RandomDealsAgreeWithAll) {
  const std::vector<TwoGroups> one = {{{1, 5, 3, 4, 2, 6, 3.5, 4.5}, {4, 6, 5, 7, 3, 8, 4.7, 5.2}}};
  const double exact = permutation_test(one, 20000)[0];
  const double drawn = permutation_test(one, 10000)[0];
  EXPECT_GT(exact, 0);
  EXPECT_NEAR(exact, drawn, 0.01);
}

// For 5 and 5 runs, 4 of 252 orders have U = 0, 1 or 2; for 3 and 3 the whole range of ratios is a
// 90 % interval.
TEST(Permutation, IntervalIsExact) {
  const auto five = ratio_interval({{1, 1, 1, 1, 1}, {1, 2, 3, 4, 5}});
  ASSERT_TRUE(five);
  EXPECT_NEAR(five->confidence, 1 - 2 * 4.0 / 252, 1e-12);
  const auto three = ratio_interval({{10, 11, 12}, {20, 22, 24}});
  ASSERT_TRUE(three);
  EXPECT_NEAR(three->confidence, 0.9, 1e-12);
  EXPECT_DOUBLE_EQ(three->low, 20.0 / 12);
  EXPECT_DOUBLE_EQ(three->high, 2.4);
  EXPECT_FALSE(ratio_interval({{0, 1}, {1, 2}}));
  const auto many = ratio_interval({std::vector<double>(40, 1.0), std::vector<double>(40, 2.0)});
  ASSERT_TRUE(many);
  EXPECT_DOUBLE_EQ(many->low, 2);
}

}  // namespace dealing_test
}  // namespace rangescope::analyze
