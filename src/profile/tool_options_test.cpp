#include <gtest/gtest.h>

#include "profile/composed_test.hpp"
#include "profile/settings.hpp"

namespace rangescope::profile {
namespace tool_options_test {

using Words = std::vector<std::string>;

const std::string kNsys = "pipeline.nsys.", kNcu = "pipeline.ncu.ncu_cli.";

TEST(NsysOptions, DefaultsArePassedAndNotAskedFor) {
  const auto options = nsys_options(composed({}));
  EXPECT_EQ(options.values.at("trace"), (Words{"cuda", "nvtx", "osrt"}));
  EXPECT_FALSE(options.values.contains("kill"));
  EXPECT_TRUE(options.asked.empty());
  EXPECT_FALSE(options.gating);
}

TEST(NsysOptions, WhatTheUserSetIsAskedFor) {
  const auto options = nsys_options(composed({kNsys + "trace=[cuda]"}));
  EXPECT_EQ(options.values.at("trace"), Words{"cuda"});
  EXPECT_EQ(options.asked, std::set<std::string>{"trace"});
}

// nsys takes whole seconds: less would cut what was asked for.
TEST(NsysOptions, TimesAreWholeSecondsRoundedUp) {
  const auto options = nsys_options(composed({kNsys + "duration=1500ms", kNsys + "delay=2s"}));
  EXPECT_EQ(options.values.at("duration"), Words{"2"});
  EXPECT_EQ(options.values.at("delay"), Words{"2"});
}

TEST(NsysOptions, GatingThatIsTurnedOffKeepsTheCaptureRangeOff) {
  EXPECT_TRUE(nsys_options(composed({kNsys + "gating_nvtx=true"})).gating);
  const auto off = nsys_options(composed({kNsys + "gating_nvtx=false"}));
  EXPECT_FALSE(off.gating);
  EXPECT_TRUE(off.asked.contains("capture_range"));
  EXPECT_FALSE(nsys_options(composed({})).asked.contains("capture_range"));
}

TEST(NsysOptions, EnvironmentAndFurtherArgumentsAreItsOwn) {
  const auto config = composed({"pipeline.nsys.env={TMPDIR: /big}",
                                "pipeline.nsys.extra_args=[--wait, primary]",
                                "pipeline.ncu.env={A: b}"});
  const auto nsys = nsys_options(config);
  EXPECT_EQ(nsys.env, (std::map<std::string, std::string>{{"TMPDIR", "/big"}}));
  EXPECT_EQ(nsys.extra_args, (Words{"--wait", "primary"}));
  const auto ncu = ncu_options(config);
  EXPECT_EQ(ncu.env, (std::map<std::string, std::string>{{"A", "b"}}));
  EXPECT_TRUE(ncu.extra_args.empty());
}

TEST(NcuOptions, RangesGateUnlessThatIsTurnedOff) {
  EXPECT_TRUE(ncu_options(composed({})).gating);
  EXPECT_FALSE(ncu_options(composed({"pipeline.ncu.gating_nvtx=false"})).gating);
}

TEST(NcuOptions, WhatVersionsDisagreeAboutIsAlwaysPassed) {
  const auto options = ncu_options(composed({}));
  EXPECT_EQ(options.values.at("clock_control"), Words{"base"});
  EXPECT_EQ(options.values.at("cache_control"), Words{"all"});
  EXPECT_EQ(options.values.at("target_processes"), Words{"all"});
  EXPECT_FALSE(options.values.contains("set"));
}

TEST(SearchFor, EachToolHasAPathOfItsOwn) {
  const auto config = composed({"pipeline.ncu.path=/opt/ncu"});
  EXPECT_EQ(search_for(config, "ncu").configured, "/opt/ncu");
  EXPECT_EQ(search_for(config, "nsys").configured, "");
}

const std::vector<model::MetricGroup> kGroups = {
    {.name = "memory",
     .counters = {{"bytes", {"dram__bytes.sum"}, {}},
                  {"read", {"dram__sectors_read.sum", "dram__sectors_op_read.sum"}, {}},
                  {"spills", {"lts__spills.sum"}, 0.0}}}};

collect::Abilities ncu_with(std::set<std::string> metrics) {
  collect::Abilities ncu;
  ncu.metrics = std::move(metrics);
  return ncu;
}

TEST(NcuMetrics, AGroupIsTheFirstOfEachCountersNamesThatThisNcuHas) {
  Words notes;
  const auto ncu = ncu_with({"dram__bytes", "dram__sectors_op_read"});
  EXPECT_EQ(ncu_metrics({"memory"}, kGroups, ncu, notes),
            (Words{"dram__bytes.sum", "dram__sectors_op_read.sum"}));
  EXPECT_EQ(notes, Words{"metric group 'memory': its 3 counters asked for by name"});
}

TEST(NcuMetrics, ACounterThatIsMissingIsNamedUnlessItHasAValueThen) {
  Words notes;
  EXPECT_EQ(ncu_metrics({"memory"}, kGroups, ncu_with({"dram__bytes"}), notes),
            Words{"dram__bytes.sum"});
  EXPECT_EQ(notes, Words{"metric group 'memory': this ncu lacks 1 of its 3 counters: read"});
}

TEST(NcuMetrics, WhereNcuCannotSayTheFirstNameIsTaken) {
  const Words first_names = {"dram__bytes.sum", "dram__sectors_read.sum", "lts__spills.sum"};
  Words notes;
  EXPECT_EQ(ncu_metrics({"memory"}, kGroups, {}, notes), first_names);
  auto of_others = ncu_with({"sm__cycles"});
  of_others.metrics_elsewhere = true;
  EXPECT_EQ(ncu_metrics({"memory"}, kGroups, of_others, notes), first_names);
}

TEST(NcuMetrics, OtherNamesStayAndNoneIsThereTwice) {
  Words notes;
  EXPECT_EQ(ncu_metrics({"dram__bytes.sum", "sm__cycles.avg", "memory"},
                        kGroups,
                        ncu_with({"dram__bytes"}),
                        notes),
            (Words{"dram__bytes.sum", "sm__cycles.avg"}));
}

TEST(BaseRequest, IsOfTheProgramAlone) {
  const auto config = composed({"workload.command=[python3, train.py]",
                                "workload.env={A: b}",
                                "workload.cwd=/data/models/",
                                "run.timeout=90s",
                                "ranges.include=decode",
                                "ranges.every=4"});
  const auto request = base_request(config, "/runs/./1");
  EXPECT_EQ(request.command, (Words{"python3", "train.py"}));
  EXPECT_EQ(request.env, (std::map<std::string, std::string>{{"A", "b"}}));
  EXPECT_EQ(request.cwd, "/data/models");
  EXPECT_EQ(request.run_dir, "/runs/1");
  EXPECT_EQ(request.timeout, std::chrono::seconds(90));
  EXPECT_EQ(request.every, 4u);
  EXPECT_TRUE(request.ranges.include.empty());
}

TEST(BaseRequest, WithoutAFolderTheProgramRunsHere) {
  const auto request = base_request(composed({}), "runs");
  EXPECT_EQ(request.cwd, std::filesystem::current_path());
  EXPECT_EQ(request.run_dir, std::filesystem::current_path() / "runs");
  EXPECT_EQ(request.timeout, std::nullopt);
  EXPECT_EQ(request.every, 1u);
}

TEST(CaptureRange, CallsOfTheProgramOpenAWindowWithoutNsysAndNcu) {
  const std::string by_calls = kNsys + "capture_range=cudaProfilerApi";
  EXPECT_TRUE(opens_window_by_calls(composed({by_calls})));
  EXPECT_FALSE(opens_window_by_calls(composed({by_calls, "pipeline.nsys.enable=true"})));
  EXPECT_FALSE(opens_window_by_calls(composed({by_calls, "pipeline.ncu.enable=true"})));
  EXPECT_FALSE(opens_window_by_calls(composed({by_calls, "pipeline.native.enable=false"})));
  EXPECT_FALSE(opens_window_by_calls(composed({kNsys + "capture_range=nvtx"})));
}

TEST(CaptureRange, OnlyWhatOpensNoWindowAsksForNsys) {
  EXPECT_EQ(gating_key(composed({kNsys + "capture_range=nvtx"})), kNsys + "capture_range");
  EXPECT_EQ(gating_key(composed({kNsys + "capture_range=cudaProfilerApi"})), "");
  EXPECT_EQ(gating_key(composed({})), "");
}

std::string warned_of(const Words& assignments, config::Source source = config::Source::kOverride) {
  const auto config = composed(assignments, source);
  testing::internal::CaptureStderr();
  warn_of_idle_keys(config);
  return testing::internal::GetCapturedStderr();
}

TEST(IdleKeys, OfAToolThatIsOffAreNamedTogether) {
  EXPECT_EQ(warned_of({kNcu + "set=full", kNcu + "launch_count=3"}),
            "rangescope: warning: ncu is off, so there is no use for pipeline.ncu.ncu_cli.set, "
            "pipeline.ncu.ncu_cli.launch_count; add --ncu\n");
  EXPECT_EQ(warned_of({kNcu + "set=full", "pipeline.ncu.enable=true"}), "");
  EXPECT_EQ(warned_of({"pipeline.nsys.enable=false"}), "");
}

TEST(IdleKeys, OfFilesAndTheEnvironmentAreForOtherRuns) {
  EXPECT_EQ(warned_of({kNcu + "set=full"}, config::Source::kEnvironment), "");
}

TEST(IdleKeys, AliasesMeanEveryStage) {
  EXPECT_EQ(warned_of({kNcu + "nvtx.include=decode", kNcu + "kernel_name=gemm"}), "");
}

TEST(IdleKeys, ACaptureRangeThatOpensAWindowIsInUse) {
  EXPECT_EQ(warned_of({kNsys + "capture_range=cudaProfilerApi"}), "");
  EXPECT_NE(warned_of({kNsys + "capture_range=nvtx"}), "");
}

TEST(IdleKeys, SettingsOfCountersNeedCounters) {
  EXPECT_EQ(warned_of({"pipeline.native.rounds=3"}),
            "rangescope: warning: no metrics are requested, so there is no use for "
            "pipeline.native.rounds; add --metrics\n");
  EXPECT_EQ(warned_of({"pipeline.native.rounds=3", "pipeline.native.metrics=[memory]"}), "");
  EXPECT_EQ(warned_of({"pipeline.native.rounds=3", "pipeline.native.pc=on"}), "");
}

TEST(IdleKeys, EveryCountsNothingInATrace) {
  EXPECT_NE(warned_of({"ranges.every=10"}).find("ranges.every has no effect"), std::string::npos);
  EXPECT_EQ(warned_of({"ranges.every=1"}), "");
  EXPECT_EQ(warned_of({"ranges.every=10", "pipeline.ncu.enable=true"}), "");
  EXPECT_EQ(warned_of({"ranges.every=10", "pipeline.native.metrics=[memory]"}), "");
  EXPECT_EQ(warned_of({"ranges.every=10", "pipeline.native.pc=on"}), "");
}

Words kernels_in(const config::Config& config) {
  const auto kernels = kernels_of(config);
  if (!kernels)
    return {base::to_string(kernels.error())};
  Words texts;
  for (const model::KernelPattern& pattern : kernels->include)
    texts.push_back(pattern.text());
  return texts;
}

TEST(Kernels, OfAKeyAndItsAliasTheLastOneCounts) {
  const config::Source variable = config::Source::kEnvironment;
  EXPECT_EQ(kernels_in(composed({kNcu + "kernel_name=gemm", "kernels.include=[a,b]"}, variable)),
            (Words{"a", "b"}));
  EXPECT_EQ(kernels_in(composed({"kernels.include=[a,b]", kNcu + "kernel_name=gemm"}, variable)),
            Words{"gemm"});
}

TEST(Kernels, APatternThatIsNoneIsNamedWithItsKey) {
  const auto kernels = kernels_of(composed({"kernels.exclude=['regex:(']"}));
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().code, base::Code::kUsage);
  EXPECT_TRUE(kernels.error().where.starts_with("kernels.exclude")) << kernels.error().where;
}

TEST(Kernels, AnEmptyListDoesNotReplaceWhatTheAliasHas) {
  const config::Source variable = config::Source::kEnvironment;
  EXPECT_EQ(kernels_in(composed({kNcu + "kernel_name=gemm", "kernels.include=[]"}, variable)),
            Words{"gemm"});
}

}  // namespace tool_options_test
}  // namespace rangescope::profile
