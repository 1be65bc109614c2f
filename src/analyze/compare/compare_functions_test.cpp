#include "analyze/compare/compare_functions.hpp"

#include <gtest/gtest.h>

namespace rangescope::analyze {
namespace compare_functions_test {

using model::Standing;

// Sampled each millisecond, ten occurrences in ten seconds.
model::DigestRegion region(std::vector<model::DigestFunction> functions, double wall_ns = 1e10) {
  model::DigestRegion one;
  one.path = {"decode"};
  one.occurrences = 10;
  one.values["wall_ns.inclusive"] = wall_ns;
  one.cpu_interval_ns = 1e6;
  one.functions = std::move(functions);
  return one;
}

TEST(CompareFunctions, WhatStandsOutOfSamplingComesFirst) {
  const auto before = region({{"forward", "/a/llama.py", "", true, 4e9},
                              {"memcpy", "", "/lib/libc.so.6", false, 3e9},
                              {"gone", "", "/opt/app", false, 5e8}});
  const auto after = region({{"forward", "/b/llama.py", "", true, 8e9},  // moved, and twice as long
                             {"memcpy", "", "/lib/libc.so.6", false, 3.05e9}},
                            2e10);
  MatchedRegion matched;
  matched.of = {{&before}, {&after}};
  const auto list = compare_functions(matched, 0.05);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "forward (llama.py)");
  EXPECT_EQ(list[0].self.changes[0].standing, Standing::kMore);
  EXPECT_NEAR(*list[0].share[0], 0.4, 1e-12);
  EXPECT_NEAR(*list[0].share[1], 0.4, 1e-12);
  EXPECT_NEAR(list[0].self.changes[0].difference, 4e8, 1e-3);
  EXPECT_NEAR(*list[0].self.changes[0].ratio, 2, 1e-12);
  EXPECT_LT(*list[0].self.changes[0].low, 2);
  EXPECT_GT(*list[0].self.changes[0].low, 1.9);  // 4000 and 8000 samples: two percent each
  EXPECT_EQ(list[1].name, "gone");
  EXPECT_EQ(list[1].self.changes[0].standing, Standing::kLess);
  EXPECT_EQ(list[1].self.values[1], 0);
  EXPECT_EQ(list[2].self.changes[0].standing, Standing::kNoise);  // 3000 against 3050 samples
}

TEST(CompareFunctions, FunctionsOfAFewSamplesHideNoChangeOfALargeOne) {
  const auto with_small_ones = [](double encode_ns) {
    std::vector<model::DigestFunction> functions{{"encode", "", "/opt/app", false, encode_ns}};
    for (int i = 0; i < 40; ++i)
      functions.push_back({"f" + std::to_string(i), "", "/opt/app", false, 1e6});
    return region(functions);
  };
  const auto before = with_small_ones(300e6), after = with_small_ones(380e6),
             same = with_small_ones(330e6);
  MatchedRegion matched;
  matched.of = {{&before}, {&after}};
  const auto list = compare_functions(matched, 0.05);
  EXPECT_EQ(list[0].name, "encode");
  EXPECT_EQ(list[0].self.changes[0].standing, Standing::kMore);
  for (std::size_t i = 1; i < list.size(); ++i)
    EXPECT_EQ(list[i].self.changes[0].standing, Standing::kNoise);
  matched.of = {{&before}, {&same}};
  for (const model::ComparedFunction& one : compare_functions(matched, 0.05))
    EXPECT_EQ(one.self.changes[0].standing, Standing::kNoise) << one.name;
}

TEST(CompareFunctions, WhatASideDoesNotListMayBeThere) {
  std::vector<model::DigestFunction> many;
  for (std::size_t i = 0; i < model::kMostFunctions; ++i)
    many.push_back({"f" + std::to_string(i), "", "/opt/app", false, 1e8});
  const auto before = region(many), after = region({{"g", "", "/opt/app", false, 1e8}});
  MatchedRegion matched;
  matched.of = {{&before}, {&after}};
  for (const model::ComparedFunction& one : compare_functions(matched, 0.05)) {
    if (one.name == "g") {
      EXPECT_FALSE(one.self.values[0]);
      EXPECT_EQ(one.self.changes[0].standing, Standing::kUntested);
    } else {
      EXPECT_EQ(one.self.values[1], 0);
    }
  }
}

TEST(CompareFunctions, TwoBuildsOfAProgramHaveTheSameFunctions) {
  const auto before = region({{"run::h0123456789abcdef", "", "/old/app", false, 4e9},
                              {"app+0x10", "", "/old/app", false, 1e9}});
  const auto after = region({{"run::hfedcba9876543210", "", "/new/app2", false, 4e9},
                             {"app2+0x10", "", "/new/app2", false, 1e9}});
  MatchedRegion matched;
  matched.of = {{&before}, {&after}};
  const auto list = compare_functions(matched, 0.05);
  ASSERT_EQ(list.size(), 2u);
  for (const model::ComparedFunction& one : list) {
    EXPECT_TRUE(one.name == "run" || one.name == "+0x10") << one.name;
    EXPECT_EQ(one.self.changes[0].standing, Standing::kNoise);
  }
}

TEST(CompareFunctions, NothingStandsOutWhoseIntervalHoldsNoChange) {
  model::Change change;
  change.p = 0.001;
  change.difference = 5;
  change.low = 0.99;
  change.high = 1.2;
  EXPECT_EQ(standing_of(change, 0.05), Standing::kNoise);
  change.low = 1.01;
  EXPECT_EQ(standing_of(change, 0.05), Standing::kMore);
}

TEST(CompareFunctions, NothingWhereASideWasNotSampled) {
  const auto sampled = region({{"f", "", "/opt/app", false, 1e9}});
  model::DigestRegion not_sampled = region({});
  not_sampled.cpu_interval_ns = 0;
  MatchedRegion matched;
  matched.of = {{&sampled}, {&not_sampled}};
  EXPECT_TRUE(compare_functions(matched, 0.05).empty());
}

}  // namespace compare_functions_test
}  // namespace rangescope::analyze
