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
    if (!outside) row.range = id("decode");
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
  for (const char* unknown : {"wall_ns.exclusive", "wall_ns.p95", "wall_ns.share", "threads", "unclosed", "gpu.busy_ns",
                              "gpu.exclusive_kernels", "gpu.graph_launches"}) {
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

model::OperatorSummary called(model::StringId name, model::StringId shapes, double cpu, std::optional<double> gpu) {
  return {name, shapes, 2, cpu, cpu / 2, gpu, gpu};
}

TEST(Summaries, OperatorsAreThoseOfTheTable) {
  model::Session s;
  const auto mm = s.strings.intern("aten::mm"), add = s.strings.intern("aten::add");
  const auto one = s.strings.intern("[[2]]"), two = s.strings.intern("[[4]]");
  s.summary.operators = {called(add, one, 50, 10), called(mm, one, 20, 30), called(mm, two, 40, 5)};
  auto report = analyze(s, {});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->operators.size(), 2u);
  EXPECT_EQ(report->operators[0].name, "aten::mm");
  EXPECT_EQ(report->operators[0].calls, 4);
  EXPECT_EQ(report->operators[0].cpu_ns, 60);
  EXPECT_EQ(report->operators[0].exclusive_gpu_ns, 35);
  EXPECT_EQ(report->operators_by_shape.size(), 3u);
  judge(*report);
  EXPECT_EQ(report->verdict.front().text, "6 calls of 2 operators; most GPU time in aten::mm (35 ns)");
  for (model::OperatorSummary& each : s.summary.operators) each.gpu_ns = each.exclusive_gpu_ns = std::nullopt;
  report = analyze(s, {});
  judge(*report);
  EXPECT_TRUE(std::isnan(report->operators[0].gpu_ns)) << "unknown, and not 0";
  EXPECT_EQ(report->verdict.front().text, "6 calls of 2 operators; most self time in aten::mm (30 ns)");
  s.summary.operators = {called(s.strings.intern("hipMemcpy"), 0, 50, {})};
  report = analyze(s, {});
  judge(*report);
  EXPECT_EQ(report->verdict.front().text, "2 HIP calls and nothing else; most time in hipMemcpy (50 ns)");
}

TEST(Summaries, OfACutTableNothingIsAShare) {
  model::Session s;
  model::KernelSummary kernel;
  kernel.name = s.strings.intern("void ns::gemm<float>(float *, int, co…");
  kernel.calls = 2;
  kernel.total_ns = 100;
  s.summary.kernels.push_back(kernel);
  s.summary.cut = true;
  s.summary.copies.push_back({model::CopyKind::kHostToDevice, false, 3, 60, std::nan("")});
  const auto report = analyze(s, {});
  ASSERT_TRUE(report && report->total);
  EXPECT_TRUE(std::isnan(report->total->kernel_ns));
  ASSERT_EQ(report->kernels.size(), 1u);
  EXPECT_EQ(report->kernels[0].label, "gemm");
  EXPECT_TRUE(std::isnan(report->kernels[0].share));
  EXPECT_EQ(report->kernels[0].total_ns, 100);
  EXPECT_EQ(report->total->copy_ns, 60);
  EXPECT_TRUE(std::isnan(report->total->copy_bytes));
  EXPECT_TRUE(report->total->copies_by_kind.empty());
}

TEST(Summaries, RangesWithAPathNest) {
  model::Session s;
  const auto id = [&](std::string_view text) { return s.strings.intern(text); };
  for (const auto& path : {std::vector{"layer"}, std::vector{"layer", "norm"}, std::vector{"norm"}}) {
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
