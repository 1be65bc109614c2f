// Verdicts about a GPU that waits: for the CPU, for launches, for synchronizations, for copies.
#include "analyze/verdict/verdict.hpp"

#include <gtest/gtest.h>

#include "analyze/verdict/program_test.hpp"
#include "model/advice.hpp"

namespace rangescope::analyze {
namespace verdict_test {

TEST(WaitsForCpu, WhereTheGpuIsIdleMostOfASettledOccurrence) {
  const auto found = Program().loop("step", 5, 10 * kMs, 2, kMs).verdict();
  const model::Verdict& one = of(found, "waits_for_cpu");
  EXPECT_EQ(one.path, "step");
  EXPECT_NEAR(*one.saves_ns, 40 * kMs, 1);
  EXPECT_NEAR(*one.saves_share, 0.8, 1e-9);
  EXPECT_NEAR(one.evidence.at("gpu_busy_share"), 0.2, 1e-9);
  EXPECT_FALSE(has(Program().loop("step", 5, 10 * kMs, 2, 4 * kMs).verdict(), "waits_for_cpu"));
  EXPECT_FALSE(has(Program().loop("step", 5, 10 * kMs).verdict(), "waits_for_cpu"))
      << "no GPU was recorded";
  const auto advice = [](std::int64_t each) {
    return model::advice_for(
        of(Program().loop("step", 4, each, 30, 10 * kUs).verdict(), "waits_for_cpu"));
  };
  EXPECT_TRUE(advice(10 * kMs).starts_with("Use CUDA graphs")) << advice(10 * kMs);
  EXPECT_TRUE(advice(100 * kMs).starts_with("Find what the CPU does"))
      << "30 kernels are not many in that time";
}

TEST(WaitsForCpu, NotWhereTheGpuIsFullOfOthersWork) {
  // One thread hands the GPU 9 ms of every 10; another opens ranges beside it whose own kernels are
  // short.
  const auto beside = [](std::int64_t kernel) {
    Program b;
    b.loop("step", 10, 10 * kMs, 1, kernel);
    const auto other = b.thread(b.p, 3);
    for (int i = 0; i < 10; ++i) {
      const std::int64_t at = i * 10 * kMs;
      b.range(other, "accumulate", at, at + 10 * kMs);
      b.kernel(b.launch(other, at, at + 100), "add", at + 9 * kMs, at + 10 * kMs, b.gpu);
    }
    return b.verdict();
  };
  EXPECT_FALSE(has(beside(9 * kMs), "waits_for_cpu"));
  EXPECT_TRUE(has(beside(kMs), "waits_for_cpu"));
}

TEST(WaitsForCpu, AGpuThatWorksForAnotherThreadIsBusy) {
  // As before, and then the GPU has nothing to do: that is not the time of `accumulate`.
  Program b;
  b.loop("step", 10, 10 * kMs, 1, 9 * kMs);
  const auto other = b.thread(b.p, 3);
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = i * 10 * kMs;
    b.range(other, "accumulate", at, at + 10 * kMs);
    b.kernel(b.launch(other, at, at + 100), "add", at + 9 * kMs, at + 10 * kMs, b.gpu);
  }
  b.loop("load", 10, 10 * kMs);
  EXPECT_FALSE(has(b.verdict(), "waits_for_cpu"));
  const model::Report report = b.report();
  for (const model::Region& region : report.regions) {
    if (region.path.back() != "accumulate")
      continue;
    EXPECT_NEAR(*region.steady->busy_share, 1, 1e-3);
    EXPECT_NEAR(region.gpu->busy_ns / region.wall.inclusive_ns, 0.1, 1e-9);
    ASSERT_TRUE(!region.bound || region.bound->kind != "idle");
  }
}

TEST(WaitsForCpu, NamesTheChildThatHoldsMostOfIt) {
  Program b;
  b.range(b.t, "step", 0, 100 * kMs);
  b.loop("load", 1, 90 * kMs, 1, kMs).loop("train", 1, 10 * kMs, 1, 9 * kMs);
  EXPECT_EQ(of(b.verdict(), "waits_for_cpu").path, "step > load");
}

TEST(LaunchBound, WhereKernelsAreShorterThanTheirLaunches) {
  const auto found = Program().loop("step", 20, 100 * kUs, 20, kUs, 4 * kUs).verdict();
  EXPECT_TRUE(has(found, "launch_bound"));
  EXPECT_FALSE(has(found, "waits_for_cpu"));
  const auto long_kernels = Program().loop("step", 20, 200 * kUs, 10, 6 * kUs, 5 * kUs).verdict();
  EXPECT_FALSE(has(long_kernels, "launch_bound"));
  EXPECT_TRUE(has(long_kernels, "waits_for_cpu"));
  Program code;
  code.loop("step", 1, 10 * kMs);
  for (std::int64_t at = 0; at < 200 * kUs; at += 20 * kUs) {
    const std::int64_t end = at + (at == 180 * kUs ? 6 * kMs : 6 * kUs);
    code.kernel(code.launch(code.t, at, end), "add", end + kUs, end + 4 * kUs, code.gpu);
  }
  EXPECT_FALSE(has(code.verdict(), "launch_bound"));
}

void wait_for_gpu(Program& b, std::int64_t length) {
  for (std::size_t i = 0; i < b.session.ranges.size(); ++i) {
    const model::Range range = b.session.ranges[i];
    const auto call =
        b.launch(b.t, range.end_ns - length, range.end_ns, model::LaunchKind::kSynchronize);
    b.session.synchronizations.push_back(
        {range.end_ns - length, range.end_ns, call, model::kNone, model::SyncKind::kContext});
  }
}

TEST(Synchronization, WhereCallsWaitAndTheGpuHasGaps) {
  Program b;
  b.loop("step", 5, 10 * kMs, 1, 6 * kMs);
  wait_for_gpu(b, 3 * kMs);
  EXPECT_NEAR(*of(b.verdict(), "synchronization").saves_ns, 15 * kMs, 1);
  Program full;  // the GPU has no gap: waiting for it costs nothing
  full.loop("step", 5, 10 * kMs, 1, 10 * kMs);
  wait_for_gpu(full, 3 * kMs);
  EXPECT_FALSE(has(full.verdict(), "synchronization"));
}

TEST(Copies, WhereNoKernelRunsBesideThem) {
  const auto with_copy = [](std::int64_t begin) {
    Program b;
    b.loop("step", 1, 10 * kMs, 1, 5 * kMs);
    b.copy(b.launch(b.t, 1, 2, model::LaunchKind::kCopy),
           begin,
           begin + 4 * kMs,
           1 << 20,
           model::CopyKind::kHostToDevice,
           b.gpu);
    return b.verdict();
  };
  EXPECT_NEAR(*of(with_copy(5 * kMs), "copies").saves_ns, 4 * kMs, 1);
  EXPECT_FALSE(has(with_copy(kMs), "copies")) << "beside a kernel";
}

TEST(Copies, OfThreadsThatShareAGpuAreNoShorter) {
  Program b;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto t = b.thread(b.p, 10 + i);
    b.range(t, "step", 0, 40 * kMs);
    const std::int64_t at = i * 10 * kMs;
    b.copy(b.launch(t, at, at + 1, model::LaunchKind::kCopy),
           at,
           at + 4 * kMs,
           1 << 20,
           model::CopyKind::kHostToDevice,
           b.gpu);
  }
  EXPECT_NEAR(*of(b.verdict(), "copies").saves_ns, 16 * kMs, 1);
}

}  // namespace verdict_test
}  // namespace rangescope::analyze
