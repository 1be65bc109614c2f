#include "analyze/replay/inside.hpp"

#include <gtest/gtest.h>

#include "analyze/replay/build.hpp"
#include "analyze/replay/program_test.hpp"

namespace rangescope::analyze::replay {
namespace inside_test {

using testing::operations_of;
using testing::Program;
using testing::replayed;

TEST(CoveredTime, OfOverlappingSpansEachMomentCountsOnce) {
  const std::vector<Span> spans = {{1, 10, 30}, {1, 20, 40}, {1, 60, 70}, {2, 0, 100}};
  const CoveredTime covered(spans);
  EXPECT_EQ(covered.covered_ns(1, 0, 100), 40);
  EXPECT_EQ(covered.covered_ns(1, 35, 65), 10);
  EXPECT_EQ(covered.covered_ns(1, 40, 60), 0);
  EXPECT_EQ(covered.covered_ns(2, 25, 75), 50);
  EXPECT_EQ(covered.covered_ns(0, 0, 100), 0);
  EXPECT_EQ(covered.covered_ns(9, 0, 100), 0);
  EXPECT_TRUE(covered.covers(1, 10));
  EXPECT_FALSE(covered.covers(1, 40));
}

/// Steps of `prepare`, which computes and launches a kernel, and of `compute`.
Program steps(std::int64_t prepare_ns, std::int64_t kernel_ns) {
  Program program;
  program.begin("loop");
  for (int number = 0; number < 20; ++number) {
    program.begin("prepare");
    program.compute(prepare_ns);
    program.kernel("gather", kernel_ns);
    program.end();
    program.begin("compute");
    program.compute(5'000);
    program.kernel("gemm", 40'000);
    program.end();
  }
  program.wait();
  program.end();
  return program;
}

TEST(ScaledInside, ThreadAndGpuWorkOfTheSpansTakeTheFactor) {
  const Program before = steps(200'000, 100'000);
  const Graph graph = graph_of(before.session());
  const Graph halved = scaled_inside(graph, before.spans("prepare"), 0.5);
  const auto after_ns = static_cast<double>(steps(100'000, 50'000).length("loop"));
  EXPECT_NEAR(static_cast<double>(replayed(halved, before, "loop")), after_ns, 0.02 * after_ns);
  EXPECT_EQ(halved.size(), graph.size());
}

TEST(ScaledInside, WithoutTimeTheWorkIsGone) {
  const Program before = steps(200'000, 100'000);
  const Graph graph = graph_of(before.session());
  const Graph without = scaled_inside(graph, before.spans("prepare"), 0);
  EXPECT_EQ(operations_of(without, Kind::kKernel).size(), 20u);
  EXPECT_EQ(replayed(without, before, "prepare"), 0);
  Program after;
  after.begin("loop");
  for (int number = 0; number < 20; ++number) {
    after.compute(5'000);
    after.kernel("gemm", 40'000);
  }
  after.wait();
  after.end();
  const auto after_ns = static_cast<double>(after.length("loop"));
  EXPECT_NEAR(static_cast<double>(replayed(without, before, "loop")), after_ns, 0.02 * after_ns);
}

TEST(ScaledInside, AWaitInTheSpansIsGoneToo) {
  Program before;
  before.begin("loop");
  for (int number = 0; number < 20; ++number) {
    before.compute(5'000);
    before.kernel("gemm", 40'000);
    before.begin("log");
    before.wait();
    before.end();
  }
  before.end();
  const Graph graph = graph_of(before.session());
  const Graph without = scaled_inside(graph, before.spans("log"), 0);
  EXPECT_TRUE(operations_of(without, Kind::kWait).empty());
  EXPECT_LT(replayed(without, before, "loop"), 20 * 10'000);
}

}  // namespace inside_test
}  // namespace rangescope::analyze::replay
