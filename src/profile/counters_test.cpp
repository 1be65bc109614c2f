#include "profile/counters.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace counters_test {

namespace fs = std::filesystem;

TEST(ChipNamed, IsThatOfAGpuThatPeopleName) {
  EXPECT_EQ(chip_named("H100"), "GH100");
  EXPECT_EQ(chip_named("a10"), "GA102");
  EXPECT_EQ(chip_named("L40S"), "AD102");
}

TEST(ChipNamed, WhatIsNoNameIsTheChip) {
  EXPECT_EQ(chip_named("GA100"), "GA100");
  EXPECT_EQ(chip_named("H10"), "H10");
  EXPECT_EQ(chip_named(""), "");
}

TEST(PrepareCounters, AWrongGroupIsRefusedOnAnyMachine) {
  const auto refused = prepare_counters({"memroy"}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kUsage);
  EXPECT_EQ(refused.error().what, "there is no group of metrics 'memroy'");
  EXPECT_NE(refused.error().hint.find("memory"), std::string::npos) << refused.error().hint;
  EXPECT_EQ(prepare_counters({"xyzzyx"}, {}).error().hint,
            "See the groups with: rangescope metrics list");
}

collect::native::CounterPlan plan_with(std::size_t metrics,
                                       std::size_t passes,
                                       std::size_t configurations = 1) {
  collect::native::CounterPlan plan;
  plan.chip = "GH100";
  plan.metrics.resize(metrics, "sm__cycles_active.sum");
  plan.passes = passes;
  plan.configurations.resize(configurations);
  return plan;
}

TEST(CostSentence, ACompleteSetTakesAnInstanceForEachPass) {
  EXPECT_EQ(cost_sentence(plan_with(22, 7)),
            "22 metrics in 7 passes on GH100: a range needs 7 instances for one complete set");
  EXPECT_EQ(cost_sentence(plan_with(1, 1)),
            "1 metric in 1 pass on GH100: a range needs 1 instance for one complete set");
  EXPECT_EQ(cost_sentence(plan_with(3, 2, 2)),
            "3 metrics in 2 passes of 2 configurations on GH100: a range needs 2 instances for one "
            "complete set");
}

TEST(CostSentence, WithoutMetricsTheProgramCounterIsSampled) {
  EXPECT_EQ(cost_sentence({}), "program-counter samples: sampled kernels run one by one");
}

/// Of one metric of the range `decode`.
PreparedCounters prepared(const std::string& passes) {
  PreparedCounters prepared;
  prepared.request.metrics = {"sm__cycles_active.sum"};
  prepared.request.ranges = *model::RangeSelection::parse({"decode"}, {});
  prepared.request.passes = passes;
  prepared.note = "{}\n";
  return prepared;
}

TEST(CounterFiles, AreAPlanForTheLibraryAndANoteForTheReport) {
  collect::native::Options native;
  const auto files = counter_files(prepared("occurrence"), "/runs/1", false, native);
  ASSERT_TRUE(files) << base::to_string(files.error());
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].first, "/runs/1/counters.plan");
  EXPECT_EQ((*files)[1], (std::pair<fs::path, std::string>{"/runs/1/counters.json", "{}\n"}));
  EXPECT_EQ(native.extra_env.at(wire::kCounters), "/runs/1/counters.plan");
  EXPECT_EQ((*files)[0].second.find("counters.progress"), std::string::npos);
}

TEST(CounterFiles, OfRelaunchesCarryRoundsFromRunToRun) {
  collect::native::Options native;
  const auto first = counter_files(prepared("relaunch"), "/runs/1", false, native),
             again = counter_files(prepared("relaunch"), "/runs/1", true, native);
  ASSERT_TRUE(first && again);
  EXPECT_NE(first->front().second.find("counters.progress"), std::string::npos);
  EXPECT_NE(first->front().second, again->front().second);
}

TEST(CounterFiles, WithoutARangeThereIsNoPlan) {
  PreparedCounters without_range = prepared("occurrence");
  without_range.request.ranges = {};
  collect::native::Options native;
  const auto files = counter_files(without_range, "/runs/1", false, native);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, base::Code::kUsage);
  EXPECT_FALSE(native.extra_env.contains(wire::kCounters));
}

/// A run directory with one file.
class CounterRun : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) {
    EXPECT_TRUE(base::write_file(folder_.path() / name, text));
  }
  base::TemporaryFolder folder_{"rangescope-counters"};
};

TEST_F(CounterRun, ProgressIsWhatRangesLackAndPassesTaken) {
  write(wire::kProgressFile, std::string(wire::kProgressHead) + "3 120\nmore\n");
  const auto progress = relaunch_progress(folder_.path());
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->lacking, 3u);
  EXPECT_EQ(progress->done, 120u);
  forget_progress(folder_.path());
  EXPECT_FALSE(relaunch_progress(folder_.path()));
}

TEST_F(CounterRun, ProgressThatIsCutOrOfAnotherVersionIsNone) {
  write(wire::kProgressFile, std::string(wire::kProgressHead) + "3");
  EXPECT_FALSE(relaunch_progress(folder_.path()));
  write(wire::kProgressFile, "rangescope-progress 2 3 120\n");
  EXPECT_FALSE(relaunch_progress(folder_.path()));
}

TEST_F(CounterRun, OnlyATrueNoteSaysThatPayloadsWereToldApart) {
  EXPECT_FALSE(counted_by_payload(folder_.path()));
  for (const auto& [note, expected] : {std::pair{R"({"by_payload": true})", true},
                                       {R"({"by_payload": false})", false},
                                       {R"({"by_payload": "yes"})", false},
                                       {R"({})", false},
                                       {"[1]", false},
                                       {"{", false}}) {
    write("counters.json", note);
    EXPECT_EQ(counted_by_payload(folder_.path()), expected) << note;
  }
  EXPECT_FALSE(counted_by_payload({}));
}

std::vector<std::string> group_names(const analyze::Reference& reference) {
  std::vector<std::string> names;
  for (const model::MetricGroup& group : reference.groups)
    names.push_back(group.name);
  return names;
}

TEST_F(CounterRun, AReportRestsOnTheGroupsThatWereCounted) {
  write("counters.json", R"({
    "metrics": ["dram__bytes.sum", "sm__warps.avg"],
    "groups": {"memory": {"bytes": "dram__bytes.sum", "throughput": null}}})");
  const auto reference = reference_of(folder_.path(), true);
  EXPECT_TRUE(reference.metrics_asked);
  ASSERT_EQ(group_names(reference), std::vector<std::string>{"memory"});
  EXPECT_EQ(reference.metrics, std::vector<std::string>{"sm__warps.avg"});
  for (const model::GroupCounter& counter : reference.groups.front().counters) {
    if (counter.alias == "bytes") {
      EXPECT_EQ(counter.any, std::vector<std::string>{"dram__bytes.sum"});
    }
    if (counter.alias == "throughput") {  // the chip lacks it
      EXPECT_TRUE(counter.any.empty());
    }
  }
}

TEST_F(CounterRun, OtherResultsRestOnAllGroupsAndNoResultsOnNone) {
  const auto measured = reference_of({}, true), unmeasured = reference_of({}, false);
  EXPECT_GT(measured.groups.size(), 5u);
  EXPECT_FALSE(measured.metrics_asked);
  EXPECT_TRUE(unmeasured.groups.empty());
  EXPECT_FALSE(unmeasured.peaks.empty());
}

TEST_F(CounterRun, AnUnreadableNoteIsAsNone) {
  write("counters.json", "{");
  const auto reference = reference_of(folder_.path(), true);
  EXPECT_FALSE(reference.metrics_asked);
  EXPECT_GT(reference.groups.size(), 5u);
}

TEST_F(CounterRun, ANoteWithoutGroupsLeavesTheMetricsThatWereNamed) {
  write("counters.json", R"({"metrics": ["sm__warps.avg", 3]})");
  const auto reference = reference_of(folder_.path(), true);
  EXPECT_TRUE(reference.metrics_asked);
  EXPECT_TRUE(reference.groups.empty());
  EXPECT_EQ(reference.metrics, std::vector<std::string>{"sm__warps.avg"});
}

}  // namespace counters_test
}  // namespace rangescope::profile
