#include <gtest/gtest.h>

#include "profile/composed_test.hpp"
#include "profile/stage.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace wish_test {

using Words = std::vector<std::string>;

const std::string kNcu = "pipeline.ncu.ncu_cli.";

/// A run of native stage and ncu that is asked for `assignments`, before it begins.
struct Wanted {
  explicit Wanted(const Words& assignments, Settings settings = {})
      : config(composed(assignments)), run(config, std::move(settings)) {
    run.asked.native = run.asked.ncu = true;
    if (auto ranges = ranges_of(config))
      run.args.analysis.ranges = run.ranges = std::move(*ranges);
    if (auto kernels = kernels_of(config))
      run.args.analysis.kernels = std::move(*kernels);
  }
  config::Config config;
  Run run;
};

TEST(MetricsForNcu, AreThoseOfBothKeys) {
  EXPECT_EQ(metrics_of(composed({"pipeline.native.metrics=[memory]", kNcu + "metrics=[a.sum]"})),
            (Words{"memory", "a.sum"}));
  EXPECT_TRUE(metrics_of(composed({})).empty());
}

TEST(ReplayMode, IsALadderUnlessOneIsNamed) {
  EXPECT_EQ(replay_mode(composed({})), "auto");
  EXPECT_EQ(replay_mode(composed({kNcu + "replay_mode=app-range"})), "app-range");
}

TEST(Wish, WithoutAnythingIsNcusDefaultSet) {
  const collect::Wish wish = wish_of(Wanted({}).run);
  EXPECT_EQ(wish.mode, "auto");
  EXPECT_TRUE(wish.sections);
  EXPECT_FALSE(wish.metrics || wish.ranges || wish.kernel_filter || wish.native_counters);
  EXPECT_EQ(wish.every, 1u);
}

TEST(Wish, MetricsReplaceTheDefaultSetUnlessASetIsNamed) {
  const std::string metrics = "pipeline.native.metrics=[memory]";
  EXPECT_FALSE(wish_of(Wanted({metrics}).run).sections);
  EXPECT_TRUE(wish_of(Wanted({metrics}).run).metrics);
  EXPECT_TRUE(wish_of(Wanted({metrics, kNcu + "set=full"}).run).sections);
  EXPECT_TRUE(wish_of(Wanted({metrics, kNcu + "sections=[Occupancy]"}).run).sections);
}

TEST(Wish, RangesAndEveryAreThoseOfTheRun) {
  const collect::Wish wish = wish_of(Wanted({"ranges.include=decode", "ranges.every=8"}).run);
  EXPECT_TRUE(wish.ranges);
  EXPECT_EQ(wish.every, 8u);
}

// A preset's own kernel_name narrows kernel replay, and does not keep ranges from being measured.
TEST(Wish, OnlyKernelsThatTheUserNamedAreAFilter) {
  EXPECT_TRUE(wish_of(Wanted({"kernels.include=[gemm]"}).run).kernel_filter);
  EXPECT_TRUE(wish_of(Wanted({kNcu + "kernel_name=gemm"}).run).kernel_filter);
  EXPECT_TRUE(wish_of(Wanted({kNcu + "kernel_id='::gemm:2'"}).run).kernel_filter);
  EXPECT_FALSE(wish_of(Wanted({"kernels.exclude=[gemm]"}).run).kernel_filter);
  Wanted of_preset({});
  of_preset.run.args.analysis.kernels = *model::KernelSelection::parse({"gemm"}, {});
  EXPECT_FALSE(wish_of(of_preset.run).kernel_filter);
}

TEST(Wish, KnowsWhyNothingIsCountedNatively) {
  Wanted wanted({});
  wanted.run.no_counters = "the native stage is off";
  EXPECT_EQ(wish_of(wanted.run).no_native_counters, "the native stage is off");
  wanted.run.counters.emplace();
  EXPECT_TRUE(wish_of(wanted.run).native_counters);
}

const std::string kMetrics = "pipeline.native.metrics=[memory]", kRange = "ranges.include=decode";

TEST(PlanCounters, WithoutMetricsThereIsNothingToPlan) {
  Wanted wanted({kRange});
  EXPECT_TRUE(plan_counters(wanted.run));
  EXPECT_FALSE(wanted.run.counters);
  EXPECT_EQ(wanted.run.no_counters, "");
}

TEST(PlanCounters, WhatOnlyNcuHasIsLeftToNcu) {
  for (const Words& more : {Words{kMetrics},  // of the whole program
                            {kMetrics, kRange, kNcu + "set=full"},
                            {kMetrics, kRange, kNcu + "replay_mode=kernel"},
                            {kMetrics, kRange, "kernels.include=[gemm]"}}) {
    Wanted wanted(more);
    EXPECT_TRUE(plan_counters(wanted.run)) << more.back();
    EXPECT_FALSE(wanted.run.counters) << more.back();
    EXPECT_EQ(wanted.run.no_counters, "") << more.back();
  }
}

TEST(PlanCounters, WithoutTheNativeStageNcuCountsIfItIsThere) {
  Wanted with_ncu({kMetrics, kRange});
  with_ncu.run.asked.native = false;
  EXPECT_TRUE(plan_counters(with_ncu.run));
  EXPECT_EQ(with_ncu.run.no_counters, "the native stage is off");

  Wanted with_nsys({kMetrics, kRange});
  with_nsys.run.asked.native = with_nsys.run.asked.ncu = false;
  const auto planned = plan_counters(with_nsys.run);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, base::Code::kConfig);
  EXPECT_EQ(planned.error().what, "metrics are requested, but nsys measures none");
}

Settings light() {
  Settings settings;
  settings.native.extra_env[wire::kLight] = "1";
  return settings;
}

TEST(PlanCounters, ALightRunCountsOnlyInNcu) {
  Wanted with_ncu({kMetrics, kRange}, light());
  EXPECT_TRUE(plan_counters(with_ncu.run));
  EXPECT_FALSE(with_ncu.run.counters);
  EXPECT_TRUE(with_ncu.run.no_counters.starts_with("--light keeps CUPTI out of the program"));

  Wanted alone({kMetrics, kRange}, light());
  alone.run.asked.ncu = false;
  const auto planned = plan_counters(alone.run);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, base::Code::kUsage);
  EXPECT_EQ(planned.error().where, "--metrics");
}

Settings sampling_pc(const std::string& how) {
  Settings settings;
  settings.counters.pc = how;
  return settings;
}

TEST(PlanCounters, MetricsAndSamplesOfTheProgramCounterExcludeEachOther) {
  Wanted wanted({kMetrics, kRange}, sampling_pc("on"));
  const auto planned = plan_counters(wanted.run);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, base::Code::kUsage);
  EXPECT_EQ(planned.error().where, "--pc");
}

TEST(PlanCounters, SamplesThatNobodyAskedForAreLeftOutOfALightRun) {
  Settings settings = light();
  settings.counters.pc = "auto";
  Wanted automatic({kRange}, std::move(settings));
  automatic.run.asked.ncu = false;
  EXPECT_TRUE(plan_counters(automatic.run));
  EXPECT_FALSE(automatic.run.counters);
  settings = light();
  settings.counters.pc = "on";
  Wanted asked({kRange}, std::move(settings));
  asked.run.asked.ncu = false;
  const auto planned = plan_counters(asked.run);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().where, "--pc");
}

TEST(PlanCounters, AnEmptyNameIsRefused) {
  Wanted wanted({"pipeline.native.metrics=['memory','']", kRange});
  const auto planned = plan_counters(wanted.run);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().what, "an empty name in 'memory,'");
}

TEST(PlanCounters, AWrongGroupIsAnErrorThoughThisMachineCountsNothing) {
  Wanted wanted({"pipeline.native.metrics=[memroy]", kRange});
  wanted.run.asked.ncu = false;
  const auto planned = plan_counters(wanted.run);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, base::Code::kUsage);
  EXPECT_EQ(wanted.run.uncounted, std::nullopt);
}

TEST(Notes, AreSaidAndKeptOnce) {
  Wanted wanted({});
  testing::internal::CaptureStderr();
  wanted.run.note("native: 3 ranges");
  wanted.run.note("native: 3 ranges");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "rangescope: native: 3 ranges\n");
  EXPECT_EQ(wanted.run.notes, Words{"native: 3 ranges"});
}

TEST(CutShort, OnlyByOurTimeLimit) {
  Wanted wanted({});
  testing::internal::CaptureStderr();
  wanted.run.cut_short("ncu", {.signal = 9});
  EXPECT_TRUE(wanted.run.cut.empty());
  wanted.run.cut_short("ncu", {.signal = 15, .timed_out = true});
  (void)testing::internal::GetCapturedStderr();
  ASSERT_EQ(wanted.run.cut.size(), 1u);
  EXPECT_EQ(wanted.run.cut[0].kind.id(), "timed_out");
  EXPECT_TRUE(wanted.run.cut[0].detail.starts_with("the time limit ended stage ncu;"));
}

TEST(Timeline, IsTheOneWithGpuWork) {
  Wanted wanted({});
  EXPECT_EQ(wanted.run.timeline(), nullptr);
  wanted.run.by_native.session.emplace().ranges.emplace_back();
  EXPECT_EQ(wanted.run.timeline(), &*wanted.run.by_native.session);
  wanted.run.by_nsys.session.emplace().kernels.emplace_back();
  EXPECT_EQ(wanted.run.timeline(), &*wanted.run.by_nsys.session);
}

}  // namespace wish_test
}  // namespace rangescope::profile
