#include "analyze/time/windows.hpp"

#include <gtest/gtest.h>

#include <random>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace windows_test {

using testing::SessionBuilder;

/// 2,000 steps of 100 ns in a range `main`; GPU work of 10 to 60 ns each, in slow stretches that follow each other.
/// Windows of one step each, one in twenty of them.
struct Steps : SessionBuilder {
  double truth = 0;
  explicit Steps(unsigned seed, double share = 0.05) {
    session.sources.push_back({"x", "native", "rangescope", "native-trace 1.2, in windows", model::Maker::kRangescope});
    std::mt19937 random(seed);
    const auto p = process(1);
    const auto t = thread(p, 1);
    const auto s = stream(p, device(p, 0, "GPU-1"), 7);
    range(t, "main", 0, 2000 * 100 + 1);
    std::int64_t off = 0;
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t at = 1 + i * 100, length = 10 + static_cast<std::int64_t>(random() % 20) + i / 100 % 2 * 30;
      truth += static_cast<double>(length);
      range(t, "step", at, at + 90);
      if (static_cast<double>(random() % 1000) >= 1000 * share) continue;
      session.gpu_pauses.push_back({p, off, at});
      off = at + 99;
      kernel(launch(t, at + 2, at + 3), "k", at + 5, at + 5 + length, s);
    }
    session.gpu_pauses.push_back({p, off, model::kOpen});
    session.begin_ns = 0;
    session.end_ns = 2000 * 100 + 1;
  }
  model::Report report() {
    auto made = analyze(session, Options{});
    EXPECT_TRUE(made) << base::to_string(made.error());
    return made ? std::move(*made) : model::Report{};
  }
};

const model::Region& named(const model::Report& report, const std::string& name) {
  for (const model::Region& region : report.regions)
    if (!region.process && region.path.back() == name) return region;
  static const model::Region kNone;
  ADD_FAILURE() << "no region " << name;
  return kNone;
}

TEST(Windows, TheIntervalHoldsTheTotalAsOftenAsItSays) {
  int held = 0;
  constexpr int kRuns = 200;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    Steps steps(seed);
    const auto report = steps.report();
    const model::Metric& estimate = named(report, "step").metrics.at("gpu_busy_estimate");
    ASSERT_TRUE(estimate.absent.empty()) << estimate.absent;
    held += estimate.min <= steps.truth && steps.truth <= estimate.max ? 1 : 0;
    EXPECT_LT(estimate.max - estimate.min, 0.4 * steps.truth);
  }
  EXPECT_GE(held, kRuns * 0.92);
  EXPECT_LE(held, kRuns * 0.99) << "an interval that always holds says too little";
}

TEST(Windows, UntracedOccurrencesCountAndAreNotSlow) {
  const auto report = Steps(3).report();
  const model::Region& step = named(report, "step");
  EXPECT_EQ(step.occurrences, 2000);
  EXPECT_EQ(step.wall.profiler_ns, 0);
  ASSERT_TRUE(step.gpu && step.gpu->partial);
  EXPECT_EQ(step.gpu->recorded_occurrences, step.gpu->kernels);
  ASSERT_TRUE(step.steady && step.steady->busy_share);
  EXPECT_NEAR(*step.steady->busy_share, 35 / 90.0, 0.1) << "of the traced ones";
  EXPECT_NE(step.metrics.at("gpu_busy_estimate").source.find("of 2,000 instances"), std::string::npos)
      << step.metrics.at("gpu_busy_estimate").source;
}

TEST(Windows, WhatNoWindowHoldsWholeIsAbsent) {
  const auto report = Steps(3).report();
  EXPECT_EQ(named(report, "main").metrics.at("gpu_busy_estimate").absent,
            "none of its instances was traced completely");
  const auto few = Steps(5, 0.001).report();
  EXPECT_NE(named(few, "step").metrics.at("gpu_busy_estimate").absent.find("too few"), std::string::npos);
}

// What a replayed graph ran in a window may be unknown: its call counts as a pause within the window.
TEST(Windows, WhatAPauseWithinAWindowTouchesIsNotTraced) {
  Steps steps(3);
  const auto before = named(steps.report(), "step");
  const std::int64_t at = steps.session.gpu_pauses[5].end_ns + 10;
  steps.session.gpu_pauses.push_back({0, at, at + 20});
  const auto after = named(steps.report(), "step");
  EXPECT_EQ(after.gpu->recorded_occurrences, before.gpu->recorded_occurrences - 1);
  EXPECT_EQ(after.metrics.at("gpu_busy_estimate").rounds, before.metrics.at("gpu_busy_estimate").rounds - 1);
}

}  // namespace windows_test
}  // namespace rangescope::analyze
