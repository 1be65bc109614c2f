#include "analyze/gpu/summaries.hpp"
#include "analyze/analyze.hpp"

#include <gtest/gtest.h>

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

TEST(Summaries, ExpressionsChoose) {
  Options options;
  options.ranges = *model::RangeSelection::parse({}, {"decode/"});
  EXPECT_TRUE(analyze(example(), options)->regions.empty());
}

}  // namespace summaries_test
}  // namespace rangescope::analyze
