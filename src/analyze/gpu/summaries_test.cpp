#include "analyze/analyze.hpp"
#include "analyze/gpu/gpu.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/verdict/verdict.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace summaries_test {

model::Session example() {
  model::Session s;
  const auto id = [&](std::string_view text) { return s.strings.intern(text); };
  model::RangeSummary decode;
  decode.name = id("decode");
  decode.occurrences = 4;
  decode.total_ns = 1000;
  decode.per_occurrence_ns.max = 400;
  s.summary.ranges.push_back(decode);
  const auto kernel = [&](std::string_view name, std::int64_t calls, double total, bool outside) {
    model::KernelSummary row;
    row.in_range = true;
    row.outside = outside;
    if (!outside)
      row.range = id("decode");
    row.name = id(name);
    row.calls = calls;
    row.total_ns = total;
    s.summary.kernels.push_back(row);
  };
  kernel("gemm", 8, 300, false);
  kernel("gemm", 2, 100, false);  // another thread
  kernel("ncclKernel_AllReduce", 1, 50, false);
  kernel("copy", 1, 7, true);
  return s;
}

TEST(Summaries, BecomeFlatRegionsAndSayWhatTheyDoNotKnow) {
  const auto report = analyze(example(), {});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->regions.size(), 1u);
  const model::Region& region = report->regions[0];
  EXPECT_EQ(region.path, std::vector<std::string>{"decode"});
  EXPECT_EQ(model::value_of(region, "occurrences"), 4.0);
  EXPECT_EQ(model::value_of(region, "wall_ns.inclusive"), 1000.0);
  EXPECT_EQ(model::value_of(region, "wall_ns.max"), 400.0);
  EXPECT_EQ(model::value_of(region, "gpu.kernels"), 11.0);
  EXPECT_EQ(model::value_of(region, "gpu.kernel_ns"), 450.0);
  EXPECT_EQ(model::value_of(region, "gpu.nccl_kernels"), 1.0);
  for (const char* unknown : {"wall_ns.exclusive",
                              "wall_ns.p95",
                              "wall_ns.share",
                              "threads",
                              "unclosed",
                              "gpu.busy_ns",
                              "gpu.exclusive_kernels",
                              "gpu.graph_launches"}) {
    EXPECT_FALSE(model::value_of(region, unknown)) << unknown;
  }
  ASSERT_EQ(region.gpu->top_kernels.size(), 2u);
  EXPECT_EQ(region.gpu->top_kernels[0].name, "gemm");
  EXPECT_EQ(region.gpu->top_kernels[0].calls, 10);
  EXPECT_EQ(region.gpu->top_kernels[0].duration_ns.mean, 40.0);
  ASSERT_TRUE(report->unattributed);
  EXPECT_EQ(report->unattributed->kernels, 1);
  EXPECT_FALSE(report->total);
}

TEST(Summaries, CallsOfAnApiAreOperators) {
  model::Session s;
  const auto copy = s.strings.intern("hipMemcpy"), launch = s.strings.intern("hipLaunchKernel"),
             reduce = s.strings.intern("ncclAllReduce");
  s.summary.calls = {{copy, 2, 20}, {launch, 1, 50}, {copy, 3, 40}};
  auto report = analyze(s, {});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->operators.size(), 2u);
  EXPECT_EQ(report->operators[0].name, "hipMemcpy");
  EXPECT_EQ(report->operators[0].calls, 5);
  EXPECT_EQ(report->operators[0].cpu_ns, 60);
  EXPECT_EQ(report->operators[0].exclusive_cpu_ns, 60);
  EXPECT_TRUE(std::isnan(report->operators[0].gpu_ns)) << "unknown, and not 0";
  EXPECT_TRUE(report->operators_by_shape.empty());
  judge(*report);
  EXPECT_EQ(report->verdict.front().text,
            "6 HIP calls and nothing else; most time in hipMemcpy (60 ns)");
  s.summary.calls.push_back({reduce, 1, 70});
  report = analyze(s, {});
  judge(*report);
  EXPECT_EQ(report->verdict.front().text,
            "7 calls of 3 operators; most self time in ncclAllReduce (70 ns)");
}

TEST(Summaries, CopiesWithoutBytesAreNoRowOfTheirKind) {
  model::Session s;
  model::KernelSummary kernel;
  kernel.name = s.strings.intern("void ns::gemm<float>(float *, int)");
  kernel.calls = 2;
  kernel.total_ns = 100;
  s.summary.kernels.push_back(kernel);
  s.summary.copies.push_back({model::CopyKind::kHostToDevice, false, 3, 60, std::nan("")});
  const auto report = analyze(s, {});
  ASSERT_TRUE(report && report->total);
  EXPECT_EQ(report->total->kernel_ns, 100);
  ASSERT_EQ(report->kernels.size(), 1u);
  EXPECT_EQ(report->kernels[0].label, "gemm");
  EXPECT_EQ(report->kernels[0].share, 1);
  EXPECT_EQ(report->kernels[0].total_ns, 100);
  EXPECT_EQ(report->total->copy_ns, 60);
  EXPECT_TRUE(std::isnan(report->total->copy_bytes));
  EXPECT_TRUE(report->total->copies_by_kind.empty());
}

TEST(Summaries, RangesWithAPathNest) {
  model::Session s;
  const auto id = [&](std::string_view text) { return s.strings.intern(text); };
  for (const auto& path :
       {std::vector{"layer"}, std::vector{"layer", "norm"}, std::vector{"norm"}}) {
    std::string joined;
    std::vector<model::StringId> names;
    for (const char* name : path) {
      joined += (joined.empty() ? "" : " > ") + std::string(name);
      names.push_back(id(name));
    }
    s.summary.paths[id(joined)] = names;
    model::RangeSummary range;
    range.name = id(joined);
    range.occurrences = -1;
    s.summary.ranges.push_back(range);
  }
  const auto report = analyze(s, {});
  ASSERT_EQ(report->regions.size(), 3u);
  EXPECT_EQ(report->regions[1].path, (std::vector<std::string>{"layer", "norm"}));
  EXPECT_EQ(report->regions[1].parent, 0u);
  EXPECT_EQ(report->regions[1].depth, 1u);
  EXPECT_EQ(report->regions[2].parent, model::kNone);
  EXPECT_FALSE(model::value_of(report->regions[1], "occurrences")) << "unknown, and not 0";
}

TEST(Summaries, ExpressionsChoose) {
  Options options;
  options.ranges = *model::RangeSelection::parse({}, {"decode/"});
  EXPECT_TRUE(analyze(example(), options)->regions.empty());
}

}  // namespace summaries_test
}  // namespace rangescope::analyze
