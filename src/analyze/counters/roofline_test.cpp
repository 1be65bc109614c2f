#include "analyze/counters/roofline.hpp"

#include <gtest/gtest.h>

namespace rangescope::analyze {
namespace roofline_test {

model::Metric value(double v) {
  model::Metric metric;
  metric.value = v;
  return metric;
}

model::Peaks h200() {
  model::Peaks peaks;
  peaks.memory_bytes_per_s = 4.8e12;
  peaks.flop_per_s = {{"tensor_bf16", 989.4e12}, {"fp32", 66.9e12}};
  return peaks;
}

// One occurrence: 1 ms of wall time, busy as told.
model::Region region(double busy_ns) {
  model::Region r;
  r.occurrences = 1;
  r.wall.inclusive_ns = r.wall.per_occurrence_ns.median = 1e6;
  r.gpu.emplace();
  r.gpu->kernels = 10;
  r.gpu->busy_ns = r.gpu->busy_ns_per_occurrence.median = busy_ns;
  return r;
}

TEST(Roofline, PlacesAPointUnderItsRoof) {
  model::Region r = region(1e6);
  r.metrics = {{"flop_tensor_bf16", value(2e10)}, {"dram_bytes", value(4e9)}};
  const model::Peaks peaks = h200();
  const auto points = roofline(r, &peaks);
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].level, "dram");
  EXPECT_DOUBLE_EQ(points[0].intensity, 5);
  EXPECT_DOUBLE_EQ(points[0].flop_per_s, 2e13);
  EXPECT_DOUBLE_EQ(points[0].roof_flop_per_s, 5 * 4.8e12);
  EXPECT_DOUBLE_EQ(points[0].peak_bytes_per_s, 4.8e12);
  EXPECT_DOUBLE_EQ(points[0].peak_flop_per_s, peaks.flop_per_s.at("tensor_bf16"));
}

TEST(Roofline, HasNoPointWithoutTimeOrBytes) {
  model::Region r = region(0);
  r.metrics = {{"flop_fp32", value(1)}, {"dram_bytes", value(1)}};
  EXPECT_TRUE(roofline(r, nullptr).empty());
  r = region(1e6);
  r.metrics = {{"flop_fp32", value(1e9)}};
  EXPECT_TRUE(roofline(r, nullptr).empty());
}

struct Case {
  const char* name;
  double busy_ns, dram_bytes, flop;
  const char* bound;
};

class Classify : public ::testing::TestWithParam<Case> {};

TEST_P(Classify, FollowsTheNumbers) {
  model::Region r = region(GetParam().busy_ns);
  r.metrics = {{"flop_tensor_bf16", value(GetParam().flop)},
               {"dram_bytes", value(GetParam().dram_bytes)}};
  const model::Peaks peaks = h200();
  const model::Bound bound = classify(r, &peaks);
  EXPECT_EQ(bound.kind, GetParam().bound) << bound.reason;
  EXPECT_NE(bound.reason.find("0."), std::string::npos)
      << "the numbers and thresholds must be told";
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         Classify,
                         ::testing::Values(Case{"Idle", 1e5, 4e8, 9e10, "idle"},
                                           Case{"Memory", 9e5, 3.8e9, 2e10, "memory"},
                                           Case{"Compute", 9e5, 1e9, 7e11, "compute: tensor bf16"},
                                           Case{"Balanced", 9e5, 3.5e9, 7e11, "balanced"},
                                           Case{"Latency", 9e5, 4e8, 1e10, "latency"}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Classify, IsUnknownFromOneNumberAlone) {
  model::Region r = region(9e5);
  r.metrics = {{"dram_bytes", value(4e9)}};
  const model::Peaks peaks = h200();
  const model::Bound bound = classify(r, &peaks);
  EXPECT_EQ(bound.kind, "unknown");
  EXPECT_NE(bound.reason.find("FLOP"), std::string::npos) << bound.reason;
}

TEST(Classify, DoesNotCallARegionIdleWhoseGpuWorkWasRecordedInPart) {
  model::Region r = region(1e4);
  r.gpu->partial = true;
  const model::Peaks peaks = h200();
  EXPECT_EQ(classify(r, &peaks).kind, "unknown");
}

TEST(Classify, LooksAtTheOccurrencesWithATimelineOfAPartialOne) {
  model::Region r = region(1e4);
  r.gpu->partial = true;
  r.gpu->recorded_occurrences = 3;
  r.gpu->busy_ns_per_occurrence.median = 1e5;  // of 1e6 ns wall
  const model::Peaks peaks = h200();
  const model::Bound bound = classify(r, &peaks);
  EXPECT_EQ(bound.kind, "idle");
  EXPECT_NE(bound.reason.find("3 of 1"), std::string::npos) << bound.reason;
}

TEST(Classify, SaysWhatBoundsAKernelByItsOwnMetrics) {
  model::Report report;
  report.regions.push_back(region(1e6));
  model::KernelMetrics kernel;
  kernel.metrics = {
      {"flop_tensor_bf16", value(2e10)}, {"dram_bytes", value(4e9)}, {"gpu_time_ns", value(9e5)}};
  report.regions[0].kernels = {kernel, {}};
  report.regions[0].metrics = kernel.metrics;
  const model::Peaks peaks = h200();
  add_bounds(report, &peaks);
  ASSERT_TRUE(report.regions[0].kernels[0].bound);
  EXPECT_EQ(report.regions[0].kernels[0].bound->kind, "memory");
  EXPECT_FALSE(report.regions[0].kernels[1].bound);
}

TEST(Utilization, NamesExecutedAndUsefulApart) {
  model::Region r = region(1e6);
  r.metrics = {{"flop_tensor_bf16", value(989.4e9 / 2)}};
  const model::Peaks peaks = h200();
  r.utilization.emplace();
  r.utilization->useful_flop = 989.4e9 / 16;
  r.utilization->useful_wall_ns = 1e6;
  const auto use = utilization(r, &peaks);
  ASSERT_TRUE(use);
  EXPECT_NEAR(*use->executed, 0.5, 1e-12);
  EXPECT_NEAR(*use->useful, 1.0 / 16, 1e-12);
  const auto unknown = utilization(r, nullptr);
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->useful);
  EXPECT_NE(unknown->formula.find("no peak"), std::string::npos);
  r.utilization.reset();
  EXPECT_FALSE(utilization(r, nullptr));
}

TEST(CountedPeaks, PeaksOfACycleTimesTheClock) {
  model::Session session;
  const auto metric = [&](const char* name) {
    session.metrics.push_back({name, "", ""});
    return static_cast<std::uint32_t>(session.metrics.size() - 1);
  };
  const auto dram = metric("dram__bytes.sum.peak_sustained"),
             dram_hz = metric("dram__cycles_elapsed.avg.per_second"),
             ffma = metric("sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"),
             sm_hz = metric("sm__cycles_elapsed.avg.per_second");
  model::Measurement slow, fast;  // as an H200 had it
  slow.values = {{dram, 1504}, {dram_hz, 3.161e9}, {ffma, 16896}, {sm_hz, 1.95e9}};
  fast.values = {{dram, 1504}, {dram_hz, 3.196e9}, {ffma, 16896}, {sm_hz, 1.97e9}};
  session.measurements = {fast, slow};
  const auto peaks = counted_peaks(session);
  ASSERT_TRUE(peaks);
  EXPECT_DOUBLE_EQ(peaks->memory_bytes_per_s, 1504 * 3.196e9);
  EXPECT_DOUBLE_EQ(peaks->flop_per_s.at("fp32"), 2 * 16896 * 1.97e9);
  session.measurements.front().values.erase(session.measurements.front().values.begin() + 1);
  session.measurements.pop_back();
  EXPECT_FALSE(counted_peaks(session)) << "no clock of the memory";
}

}  // namespace roofline_test
}  // namespace rangescope::analyze
