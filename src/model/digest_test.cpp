// Rows of the run in a digest.
#include "model/digest.hpp"

#include <gtest/gtest.h>

namespace rangescope::model {
namespace digest_test {

using Path = std::vector<std::string>;

Digest with_range(const std::string& name) {
  Digest digest;
  digest.regions.emplace_back().path = {name};
  return digest;
}

RunNumbers sampled(double wall_ns) {
  RunNumbers numbers;
  numbers.wall_ns = wall_ns;
  numbers.cpu_interval_ns = 1e6;
  numbers.functions = {{"encode", "", "/opt/app", false, 300}};
  return numbers;
}

TEST(RunRows, AreOfTheWholeRunAndOutsideRanges) {
  Digest digest = with_range("step");
  add_run_rows({.wall_ns = 1000, .busy_ns = 400, .peak_memory_bytes = 4096}, sampled(100), digest);
  ASSERT_EQ(digest.regions.size(), 3u);
  EXPECT_TRUE(is_range(digest.regions[0]));
  const DigestRegion &outside = digest.regions[1], &whole_run = digest.regions[2];
  EXPECT_TRUE(outside.is_outside_ranges && !outside.is_whole_run);
  EXPECT_EQ(outside.path, Path{"outside ranges"});
  EXPECT_EQ(outside.values.at("wall_ns.median"), 100);
  EXPECT_EQ(outside.functions.size(), 1u);
  EXPECT_TRUE(whole_run.is_whole_run && !whole_run.is_outside_ranges);
  EXPECT_EQ(whole_run.path, Path{"whole run"});
  EXPECT_EQ(whole_run.occurrences, 1);
  const std::map<std::string, double> values = {{"wall_ns.inclusive", 1000},
                                                {"wall_ns.median", 1000},
                                                {"gpu.busy_ns", 400},
                                                {"memory.peak_bytes", 4096}};
  EXPECT_EQ(whole_run.values, values);
  EXPECT_TRUE(whole_run.functions.empty());
}

TEST(RunRows, FunctionsAreThoseOfTheRunWithoutRanges) {
  Digest digest;
  add_run_rows({.wall_ns = 1000}, sampled(1000), digest);
  ASSERT_EQ(digest.regions.size(), 1u);
  EXPECT_TRUE(digest.regions[0].is_whole_run);
  EXPECT_EQ(digest.regions[0].cpu_interval_ns, 1e6);
  EXPECT_EQ(digest.regions[0].functions.size(), 1u);
}

TEST(RunRows, WhatIsUnknownHasNoRow) {
  Digest digest = with_range("step");
  add_run_rows({.wall_ns = 0, .busy_ns = 400}, {}, digest);
  EXPECT_EQ(digest.regions.size(), 1u);
  add_run_rows({.peak_memory_bytes = 4096}, {}, digest);
  ASSERT_EQ(digest.regions.size(), 2u);
  EXPECT_FALSE(digest.regions[1].values.contains("wall_ns.median"));
}

TEST(RunRows, ARangeOfThatNameTakesItsPlace) {
  Digest digest = with_range("whole run");
  add_run_rows({.wall_ns = 1000}, sampled(100), digest);
  ASSERT_EQ(digest.regions.size(), 2u);
  EXPECT_TRUE(is_range(digest.regions[0]));
  EXPECT_TRUE(digest.regions[1].is_outside_ranges);
}

}  // namespace digest_test
}  // namespace rangescope::model
