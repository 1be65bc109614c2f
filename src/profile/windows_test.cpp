#include "profile/windows.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rangescope::profile {
namespace windows_test {

WindowChoice::When when_of(const std::string& text) {
  auto when = parse_when(text);
  EXPECT_TRUE(when) << text;
  return when ? *when : WindowChoice::When{};
}

TEST(When, ATimeIsTheLimitFromTheFirstInstanceOn) {
  EXPECT_EQ(limit_ns(when_of("step > 20ms"), {}), 20e6);
}

TEST(When, AQuantileOfFewInstancesSaysNothing) {
  model::Distribution lengths_ns;
  lengths_ns.add(1000, 99);
  EXPECT_EQ(limit_ns(when_of("step > p99"), lengths_ns), std::nullopt);
  lengths_ns.add(1000);
  EXPECT_EQ(limit_ns(when_of("step > p99 * 1.5"), lengths_ns), 1500);
}

TEST(When, AQuantileIsThatOfAllInstancesWithinTheErrorOfTheSketch) {
  model::Distribution lengths_ns;
  std::vector<double> sorted;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t length_ns = 1'000'000 + std::int64_t{i} * i * 37;
    lengths_ns.add(length_ns);
    sorted.push_back(static_cast<double>(length_ns));
  }
  const std::pair<const char*, std::size_t> places[] = {
      {"step > p50", 499}, {"step > p90", 899}, {"step > p99", 989}};
  for (const auto& [text, place] : places) {
    const double limit = limit_ns(when_of(text), lengths_ns).value_or(0);
    EXPECT_NEAR(limit, sorted[place], sorted[place] * model::kRelativeError) << text;
  }
}

TEST(When, WhatIsNoConditionIsRefused) {
  for (const char* text : {"step",
                           "> 20ms",
                           "step > ",
                           "step > p0",
                           "step > p100",
                           "step > 20ms * 2",
                           "step > p99 * 0",
                           "step > p99 * nan",
                           "step > p99 * inf",
                           "step > pnan"})
    EXPECT_FALSE(parse_when(text)) << text;
}

TEST(When, ARangeMayHoldWhatSeparatesItFromItsLimit) {
  const WindowChoice::When when = when_of("a > b*c > p95 * 2");
  EXPECT_EQ(when.range, "a > b*c");
  EXPECT_DOUBLE_EQ(when.quantile, 0.95);
  EXPECT_EQ(when.factor, 2);
}

TEST(Window, AnyChoiceIsOne) {
  EXPECT_FALSE(WindowChoice{}.any());
  EXPECT_TRUE(WindowChoice{.stopped = true}.any());
  EXPECT_TRUE(WindowChoice{.length = std::chrono::seconds(1)}.any());
  EXPECT_TRUE((WindowChoice{.counted = WindowChoice::Counted{"step", 1, 1}}.any()));
  // A condition alone keeps nothing.
  EXPECT_FALSE(WindowChoice{.when = WindowChoice::When{}}.any());
}

TEST(Window, InstancesAreCountedFromOne) {
  const auto window = parse_counted("step:100-110");
  ASSERT_TRUE(window);
  EXPECT_EQ(window->range, "step");
  EXPECT_EQ(window->first, 100u);
  EXPECT_EQ(window->last, 110u);
  EXPECT_EQ(parse_counted("a:b:7")->range, "a:b");
  for (const char* text : {"step", "step:0", "step:5-4", ":5", "step:x", "step:"})
    EXPECT_FALSE(parse_counted(text)) << text;
}

}  // namespace windows_test
}  // namespace rangescope::profile
