#include "analyze/counters/measurements.hpp"
#include "analyze/analyze.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/session_test.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace measurements_test {

using model::MeasuredScope;
using model::RangeKind;
using testing::SessionBuilder;

/// A session as a reader of ncu reports makes it: results with the ranges that were open, no
/// timeline.
struct Results : SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 1);
  std::uint32_t time = metric("gpu__time_duration.sum", "ns"),
                bytes = metric("dram__bytes.sum", "byte"),
                hit = metric("lts__t_sector_hit_rate.pct", "ratio");

  std::uint32_t metric(const char* name, const char* unit) {
    session.metrics.push_back({name, unit, "ncu"});
    return static_cast<std::uint32_t>(session.metrics.size() - 1);
  }
  model::OpenRange open(std::string_view name,
                        std::uint64_t instance,
                        std::string_view in = "",
                        RangeKind kind = RangeKind::kPushPop) {
    return {domain(in), session.strings.intern(name), kind, instance, false};
  }
  void result(MeasuredScope scope,
              std::vector<model::OpenRange> ranges,
              std::string_view kernel,
              std::uint32_t ordinal,
              std::vector<model::MetricValue> values) {
    model::Measurement m;
    m.scope = scope;
    m.process = p;
    m.thread = t;
    m.kernel_name = scope == MeasuredScope::kKernel ? kernel_name(kernel) : model::kNone;
    m.ordinal = ordinal;
    m.ranges = std::move(ranges);
    m.values = std::move(values);
    session.measurements.push_back(std::move(m));
  }
};

const model::Region& region(const model::Report& report, std::string_view path) {
  for (const model::Region& each : report.regions) {
    if (model::path_text(each) == path)
      return each;
  }
  static const model::Region kNothing;
  ADD_FAILURE() << "no region " << path;
  return kNothing;
}

TEST(Measurements, WithoutATimelineMakeTheRegionsThemselves) {
  Results b;
  for (std::uint64_t step = 1; step <= 2; ++step) {
    const auto decode = b.open("decode", step), layer = b.open("layer0", step * 10);
    const auto all = b.open("decode_all", 1, "LLM");
    b.result(MeasuredScope::kKernel,
             {decode, layer, all},
             "gemm",
             0,
             {{b.time, 100}, {b.bytes, 1000.0 * static_cast<double>(step)}, {b.hit, 0.5}});
    b.result(MeasuredScope::kKernel,
             {decode, all},
             "softmax",
             1,
             {{b.time, 10}, {b.bytes, 50}, {b.hit, 0.7}});
  }
  b.result(MeasuredScope::kKernel, {}, "init", 0, {{b.time, 5}});
  const auto report = analyze(b.session);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->regions.size(), 3u);
  const model::Region& decode = region(*report, "decode");
  EXPECT_EQ(decode.occurrences, 2);
  EXPECT_FALSE(model::value_of(decode, "wall_ns.inclusive"));
  EXPECT_EQ(decode.gpu->kernels, 4);
  EXPECT_EQ(decode.gpu->exclusive_kernels, 2);
  EXPECT_EQ(decode.gpu->kernel_ns, 220);
  EXPECT_FALSE(model::value_of(decode, "gpu.busy_ns"));
  EXPECT_EQ(decode.metrics.at("dram__bytes.sum").value,
            1550);  // median of 1,050 and 2,050: children included
  EXPECT_EQ(decode.metrics.at("dram__bytes.sum").rounds, 2);
  EXPECT_FALSE(decode.metrics.at("lts__t_sector_hit_rate.pct").absent.empty());
  ASSERT_EQ(decode.kernels.size(), 1u);  // those directly in it
  EXPECT_EQ(decode.kernels[0].name, "softmax");
  EXPECT_EQ(decode.kernels[0].ordinal, 1u);
  EXPECT_EQ(decode.kernels[0].metrics.at("lts__t_sector_hit_rate.pct").value, 0.7);
  EXPECT_EQ(region(*report, "decode > layer0").gpu->kernels, 2);
  EXPECT_EQ(region(*report, "LLM@decode_all").occurrences, 1);
  EXPECT_EQ(region(*report, "LLM@decode_all").gpu->kernels, 4);
  EXPECT_EQ(report->total->kernels, 5);
  EXPECT_EQ(report->unattributed->kernels, 1);
  EXPECT_EQ(report->kernels[0].name, "gemm");
}

TEST(Measurements, OfARangeBelongToItsLastRangeOnly) {
  Results b;
  const auto request = b.open("request", 1, "", RangeKind::kStartEnd);
  for (const double value : {10.0, 30.0, 20.0}) {
    b.result(MeasuredScope::kRange,
             {request, b.open("decode_all", 1, "LLM"), b.open("step", 1), b.open("decode", 2)},
             "",
             0,
             {{b.bytes, value}, {b.hit, 0.25}});
  }
  const auto report = analyze(b.session);
  ASSERT_TRUE(report);
  const model::Region& decode = region(*report, "step > decode");
  EXPECT_EQ(decode.metrics.at("dram__bytes.sum").value, 20);
  EXPECT_EQ(decode.metrics.at("dram__bytes.sum").min, 10);
  EXPECT_EQ(decode.metrics.at("dram__bytes.sum").rounds, 3);
  EXPECT_EQ(decode.metrics.at("lts__t_sector_hit_rate.pct").value, 0.25);
  EXPECT_TRUE(region(*report, "step").metrics.empty());
  EXPECT_EQ(report->regions.size(), 2u);  // nothing was measured in request or decode_all
  EXPECT_FALSE(decode.gpu);
}

TEST(Measurements, JoinATimelineByPathAndNameWhatTheyCannot) {
  Results b;
  b.range(b.t, "decode", 0, 100);
  b.stream(b.p, b.device(b.p, 0), 7);
  b.kernel(b.launch(b.t, 1, 2), "gemm", 10, 20);
  b.result(MeasuredScope::kKernel, {b.open("decode", 1)}, "gemm", 0, {{b.time, 9}, {b.bytes, 64}});
  b.result(MeasuredScope::kKernel, {b.open("warmup", 1)}, "gemm", 0, {{b.time, 9}});
  const auto report = analyze(b.session);
  ASSERT_EQ(report->regions.size(), 1u);
  EXPECT_EQ(report->regions[0].occurrences, 1);
  EXPECT_EQ(report->regions[0].gpu->kernel_ns, 10);  // the timeline's, not the profiler's
  EXPECT_EQ(report->regions[0].metrics.at("dram__bytes.sum").value, 64);
  ASSERT_EQ(report->losses.size(), 1u);
  EXPECT_EQ(report->losses[0].kind.id(), "measurement_without_region");
  EXPECT_NE(report->losses[0].detail.find("warmup"), std::string::npos);
}

TEST(Measurements, ExpressionsChooseAmongThem) {
  Results b;
  b.result(MeasuredScope::kKernel, {b.open("decode", 1)}, "gemm", 0, {{b.time, 9}});
  b.result(MeasuredScope::kKernel, {b.open("prefill", 1)}, "gemm", 0, {{b.time, 9}});
  Options options;
  options.ranges = *model::RangeSelection::parse({"prefill/"});
  EXPECT_EQ(analyze(b.session, options)->regions.size(), 1u);
  options.ranges = *model::RangeSelection::parse({"prefil/"});
  EXPECT_EQ(analyze(b.session, options).error().code, base::Code::kNothingCaptured);
}

TEST(Measurements, OutsideEveryRangeAreListed) {
  Results b;
  b.result(MeasuredScope::kKernel, {}, "b", 0, {{b.time, 5}, {b.hit, 0.5}});
  b.result(MeasuredScope::kKernel, {}, "a", 1, {{b.time, 7}});
  b.result(MeasuredScope::kRange, {}, "", 2, {{b.bytes, 100}});
  const auto report = analyze(b.session);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->unattributed_results.size(), 3u);
  EXPECT_EQ(report->unattributed_results[0].name, "b");
  EXPECT_EQ(report->unattributed_results[0].metrics.at("lts__t_sector_hit_rate.pct").value, 0.5);
  EXPECT_EQ(report->unattributed_results[1].name, "a");
  EXPECT_EQ(report->unattributed_results[2].name, "range");
  EXPECT_EQ(report->unattributed_results[2].metrics.at("dram__bytes.sum").value, 100);
  EXPECT_EQ(report->total->kernel_ns, 12);
}

TEST(Measurements, AKernelWithoutATimeHasNoneAndTakesNoShareOfTheOthers) {
  Results b;
  b.result(MeasuredScope::kKernel, {}, "timed", 0, {{b.time, 5}});
  b.result(MeasuredScope::kKernel, {}, "untimed", 1, {{b.hit, 0.5}});
  const auto report = analyze(b.session);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->total->kernel_ns, 5);
  ASSERT_EQ(report->kernels.size(), 2u);
  EXPECT_EQ(report->kernels[0].name, "timed");
  EXPECT_EQ(report->kernels[0].share, 1);
  EXPECT_TRUE(std::isnan(report->kernels[1].share));
  EXPECT_EQ(report->kernels[0].total_ns, 5);
  EXPECT_TRUE(std::isnan(report->kernels[1].total_ns));
  EXPECT_TRUE(std::isnan(report->kernels[1].duration_ns.median));
}

TEST(Measurements, WhatHasATimeCountsInEveryRangeThatItIsIn) {
  Results b;
  const auto decode = b.open("decode", 0), first = b.open("first", 1), second = b.open("second", 2);
  b.result(MeasuredScope::kKernel, {decode, first}, "gemm", 0, {{b.hit, 0.5}});
  b.result(MeasuredScope::kKernel, {decode, second}, "gemm", 1, {{b.time, 30}});
  b.result(MeasuredScope::kKernel, {decode, second}, "softmax", 2, {{b.time, 10}});
  const auto report = analyze(b.session);
  ASSERT_TRUE(report);
  for (const model::Region& region : report->regions)
    if (region.path.back() != "first") {
      EXPECT_EQ(region.gpu->kernel_ns, 40) << region.path.back();
    }
  EXPECT_EQ(report->total->kernel_ns, 40);
  const auto softmax = std::ranges::find(report->kernels, "softmax", &model::KernelRow::name);
  EXPECT_EQ(softmax->share, 0.25);
}

// ncu --print-summary: one result stands for all launches, and of their times the mean alone is
// known.
TEST(Measurements, SummariesCountTheirLaunches) {
  Results b;
  b.result(MeasuredScope::kKernel, {}, "often", 0, {{b.time, 30}});
  b.session.measurements.back().launches = 100;
  b.result(MeasuredScope::kKernel, {}, "once", 0, {{b.time, 1000}});
  const auto report = analyze(b.session);
  ASSERT_TRUE(report && report->kernels.size() == 2);
  const model::KernelRow &often = report->kernels[0], &once = report->kernels[1];
  EXPECT_EQ(often.name, "often");
  EXPECT_EQ(often.calls, 100);
  EXPECT_EQ(often.total_ns, 3000);
  EXPECT_EQ(often.share, 0.75);
  EXPECT_EQ(often.duration_ns.mean, 30);
  EXPECT_TRUE(std::isnan(often.duration_ns.median) && std::isnan(often.duration_ns.max));
  EXPECT_EQ(once.duration_ns.median, 1000);
  EXPECT_EQ(report->total->kernels, 101);
  EXPECT_EQ(report->total->kernel_ns, 4000);
}

// The line is a mean, and a region's amounts are of all launches (--print-summary per-nvtx).
TEST(Measurements, AmountsOfSummariesAreMeansTimesLaunches) {
  Results b;
  b.result(MeasuredScope::kKernel,
           {b.open("decode", 0)},
           "often",
           0,
           {{b.time, 30}, {b.bytes, 8}, {b.hit, 0.5}});
  b.session.measurements.back().launches = 100;
  b.result(
      MeasuredScope::kKernel, {b.open("decode", 0)}, "once", 0, {{b.time, 1000}, {b.bytes, 200}});
  const auto report = analyze(b.session);
  ASSERT_TRUE(report);
  const auto& metrics = region(*report, "decode").metrics;
  EXPECT_EQ(metrics.at("dram__bytes.sum").value, 1000);
  EXPECT_EQ(metrics.at("gpu__time_duration.sum").value, 4000);
  EXPECT_FALSE(metrics.at("lts__t_sector_hit_rate.pct").absent.empty());
}

TEST(Measurements, FunctionsOfOneDemangledNameAreOneRow) {
  Results b;
  b.result(MeasuredScope::kKernel, {}, "k", 0, {{b.time, 5}});
  b.session.kernel_names.push_back(b.session.kernel_names.back());
  b.session.kernel_names.back().mangled = b.session.strings.intern("_Zk2");
  b.result(MeasuredScope::kKernel, {}, "k", 1, {{b.time, 7}});
  b.session.measurements.back().kernel_name =
      static_cast<std::uint32_t>(b.session.kernel_names.size() - 1);
  const auto report = analyze(b.session);
  ASSERT_EQ(report->kernels.size(), 1u);
  EXPECT_EQ(report->kernels[0].calls, 2);
  EXPECT_EQ(report->kernels[0].total_ns, 12);
}

}  // namespace measurements_test
}  // namespace rangescope::analyze
