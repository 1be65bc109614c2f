#include "analyze/gpu/stalls.hpp"

#include <gtest/gtest.h>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace stalls_test {

/// step > mlp: `mlp` launches gemm twice, 60 and 40 ns; `step` itself a third one, and a softmax.
struct Sampled : testing::SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 1), d = device(p, 0, "GPU-1"), s = stream(p, d, 7);
  std::uint32_t first = 0, second = 0, third = 0, other = 0;

  Sampled() {
    range(t, "step", 0, 100);
    range(t, "mlp", 10, 40);
    kernel(first = launch(t, 12, 14), "gemm", 100, 160);
    kernel(second = launch(t, 16, 18), "gemm", 160, 200);
    kernel(third = launch(t, 50, 52), "gemm", 200, 210);
    kernel(other = launch(t, 60, 62), "softmax", 210, 220);
  }
  std::uint32_t place(std::string_view function,
                      std::uint64_t offset,
                      std::string_view file = {},
                      std::uint32_t line = 0) {
    session.pc.places.push_back(
        {kernel_name(function), offset, session.strings.intern(file), line});
    return static_cast<std::uint32_t>(session.pc.places.size() - 1);
  }
  void sample(std::uint32_t launch,
              std::uint32_t place,
              std::string_view reason,
              std::uint32_t samples) {
    session.pc.samples.push_back({launch, place, session.strings.intern(reason), samples});
  }
};

const model::KernelRow& row(const model::Report& report,
                            std::size_t region,
                            std::string_view kernel) {
  for (const model::KernelRow& each : report.regions.at(region).gpu->top_kernels)
    if (each.name == kernel)
      return each;
  static const model::KernelRow none;
  return none;
}

TEST(Stalls, OfEachRegionAndKernelByTheLaunch) {
  Sampled b;
  const auto load = b.place("gemm", 0x40, "/src/kernel.cu", 112),
             again = b.place("gemm", 0x50, "/src/kernel.cu", 112);
  const auto add = b.place("gemm", 0x90, "/src/kernel.cu", 113);
  b.sample(b.first, load, "long_scoreboard", 50);
  b.sample(b.first, again, "long_scoreboard", 11);
  b.sample(b.first, add, "wait", 19);
  b.sample(b.first, add, "selected", 20);
  b.sample(b.third, add, "wait", 300);
  b.sample(b.other, b.place("softmax", 0x10), "barrier", 7);
  const auto report = analyze(b.session);
  const model::Stalls& mlp = *row(*report, 1, "gemm").stalls;
  EXPECT_EQ(mlp.samples, 100);
  ASSERT_EQ(mlp.reasons.size(), 3u);
  EXPECT_EQ(mlp.reasons[0].reason, "long scoreboard");
  EXPECT_DOUBLE_EQ(mlp.reasons[0].share, 0.61);
  EXPECT_EQ(mlp.reasons[1].reason, "issued");
  EXPECT_DOUBLE_EQ(*mlp.saves_ns, 61) << "of the 100 ns of both, sampled or not";
  ASSERT_EQ(mlp.lines.size(), 2u);
  EXPECT_EQ(model::place_text(mlp.lines[0]), "kernel.cu:112");
  EXPECT_DOUBLE_EQ(mlp.lines[0].share, 0.61);
  EXPECT_EQ(mlp.lines[0].offset, 0x40u);
  EXPECT_EQ(mlp.lines[1].reason, "wait") << "issued is no wait, though it has more samples";
  EXPECT_DOUBLE_EQ(mlp.lines[1].reason_share, 0.19);
  const model::Stalls& step = *row(*report, 0, "gemm").stalls;
  EXPECT_EQ(step.samples, 400);
  EXPECT_EQ(model::top_stall(step)->reason, "wait");
  EXPECT_EQ(report->kernels[0].stalls->samples, 400) << "of the run";
  const model::Stalls& softmax = *row(*report, 0, "softmax").stalls;
  EXPECT_EQ(model::place_text(softmax.lines[0]), "softmax+0x10");
}

TEST(Stalls, OfAFunctionThatTheKernelCallsAreTheKernels) {
  Sampled b;
  b.sample(b.first, b.place("helper", 0x20), "wait", 3);
  const auto report = analyze(b.session);
  const model::Stalls& stalls = *row(*report, 1, "gemm").stalls;
  EXPECT_EQ(stalls.samples, 3);
  EXPECT_EQ(model::place_text(stalls.lines[0]), "helper+0x20");
}

TEST(Stalls, NoneWhereNothingWasSampledAndNoSavingWithoutAWait) {
  Sampled b;
  EXPECT_FALSE(row(*analyze(b.session), 1, "gemm").stalls);
  b.sample(b.first, b.place("gemm", 0), "not_selected", 5);
  const auto report = analyze(b.session);
  EXPECT_FALSE(row(*report, 1, "gemm").stalls->saves_ns);
  EXPECT_FALSE(row(*report, 0, "softmax").stalls);
}

TEST(Stalls, GraphsByTheNameOfTheFunction) {
  Sampled b;
  b.session.graph_nodes.push_back({});
  for (model::Kernel& kernel : b.session.kernels)
    kernel.launch = b.first, kernel.graph_node = 0;
  b.sample(b.first, b.place("softmax", 0x10), "barrier", 4);
  const auto report = analyze(b.session);
  EXPECT_EQ(row(*report, 1, "softmax").stalls->samples, 4);
  EXPECT_FALSE(row(*report, 1, "gemm").stalls);
}

}  // namespace stalls_test
}  // namespace rangescope::analyze
