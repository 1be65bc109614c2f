#include "analyze/time/steady.hpp"

#include <gtest/gtest.h>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace steady_test {

/// One range of a thread, occurrences of these lengths, one behind the other.
struct Loop : testing::SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 2);
  explicit Loop(const std::vector<std::int64_t>& lengths) {
    std::int64_t at = 100;
    for (const std::int64_t length : lengths) {
      range(t, "step", at, at + length);
      at += length + 10;
    }
    session.end_ns = at + 90;
  }
  model::Region step() { return analyze(session)->regions.at(0); }
};

TEST(Steady, TheFirstThatTookMuchLongerIsWarmUp) {
  const auto steady = Loop({1000, 100, 110, 90, 100}).step().steady;
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->left_out, 1);
  EXPECT_EQ(steady->left_out_ns, 1000);
  EXPECT_EQ(steady->occurrences, 4);
  EXPECT_EQ(steady->wall_ns.median, 100);
}

TEST(Steady, OneThatIsLaterIsNot) {
  EXPECT_EQ(Loop({100, 1000, 100, 100, 100}).step().steady->left_out, 0);
}

TEST(Steady, OfTwoNobodyCanSay) {
  EXPECT_EQ(Loop({1000, 100}).step().steady->left_out, 0);
}

TEST(Steady, OfTwoTheFirstIsWarmUpIfTheGpuDidAsMuchAndItTookManyTimesAsLong) {
  const auto left_out = [](std::int64_t first_ns, std::int64_t first_kernel_ns) {
    Loop loop({first_ns, 200});
    const auto stream = loop.stream(loop.p, loop.device(loop.p, 0), 1);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t start_ns = loop.session.ranges[i].start_ns;
      const std::int64_t kernel_ns = i == 0 ? first_kernel_ns : 50;
      const auto launch = loop.launch(loop.t, start_ns, start_ns + 5);
      loop.kernel(launch, "k", start_ns + 6, start_ns + 6 + kernel_ns, stream);
    }
    return loop.step().steady->left_out;
  };
  EXPECT_EQ(left_out(1000, 60), 1);
  EXPECT_EQ(left_out(1000, 80), 0) << "it gave the GPU more to do";
  EXPECT_EQ(left_out(900, 60), 0) << "it took less than five times as long";
}

TEST(Steady, ShortPartsOfABackwardPassWarmUpWithALongOneAfterThem) {
  const auto left_out = [](const char* root) {
    testing::SessionBuilder b;
    const auto thread = b.thread(b.process(1), 2);
    std::int64_t at = 100;
    for (const std::int64_t length : {10, 10, 5000, 12, 9, 11, 10, 8, 12, 9, 11, 10}) {
      b.session.ranges[b.range(thread, root, at, at + length)].module = true;
      b.session.ranges[b.range(thread, "Linear", at, at + length)].module = true;
      at += length + 10;
    }
    b.session.end_ns = at;
    return analyze(b.session)->regions.at(1).steady->left_out;
  };
  EXPECT_EQ(left_out("backward"), 3);
  EXPECT_EQ(left_out("Model"), 0);
}

TEST(Steady, AnOccurrenceThatGivesTheGpuMoreToDoIsNoWarmUp) {
  Loop b({1000, 100, 100, 100});
  const auto stream = b.stream(b.p, b.device(b.p, 0), 1);
  for (std::size_t i = 0; i < 4; ++i) {
    const model::Range range = b.session.ranges[i];
    b.kernel(b.launch(b.t, range.start_ns, range.start_ns + 5),
             "k",
             range.start_ns + 6,
             range.end_ns - 4,
             stream);
  }
  EXPECT_EQ(b.step().steady->left_out, 0);
  for (model::Kernel& kernel : b.session.kernels)
    kernel.end_ns = kernel.start_ns + 10;
  EXPECT_EQ(b.step().steady->left_out, 1);
  EXPECT_DOUBLE_EQ(*b.step().steady->busy_share, 0.1);
}

TEST(Steady, WhatCollectingCountersAddedIsNotTheProgramsTime) {
  Loop b({100, 100, 100, 100, 5000, 5000});
  b.session.gpu_pauses.push_back({b.p, b.session.ranges[4].start_ns, b.session.end_ns});
  const model::Region step = b.step();
  EXPECT_EQ(step.wall.profiler_ns, 9800);
  EXPECT_EQ(step.wall.inclusive_ns, 600);
  EXPECT_EQ(step.wall.exclusive_ns, 600);
  EXPECT_EQ(step.wall.per_occurrence_ns.max, 100);
  EXPECT_EQ(step.occurrences, 6);
}

TEST(Steady, WithoutOccurrencesToCompareWithNothingIsTakenOut) {
  Loop b({100, 100, 5000, 5000});
  b.session.gpu_pauses.push_back({b.p, b.session.ranges[2].start_ns, b.session.end_ns});
  EXPECT_EQ(b.step().wall.profiler_ns, 0);
  EXPECT_EQ(b.step().wall.inclusive_ns, 10200);
}

TEST(Steady, WaitsAtTheBeginOfAChildLieInItsParent) {
  testing::SessionBuilder b;
  const auto p = b.process(1), t = b.thread(p, 2);
  b.range(t, "step", 0, 1000);
  b.range(t, "gemm", 900, 1000);
  b.session.counter_waits.push_back(
      {p, 0, {b.session.strings.intern("step"), b.session.strings.intern("gemm")}, 800});
  const auto report = analyze(b.session);
  EXPECT_EQ(report->regions.at(0).wall.inclusive_ns, 200);
  EXPECT_EQ(report->regions.at(0).wall.profiler_ns, 800);
  EXPECT_EQ(report->regions.at(0).wall.exclusive_ns, 100);
  EXPECT_EQ(report->regions.at(1).wall.inclusive_ns, 100);
}

TEST(Outside, BeforeBetweenAndAfter) {
  Loop b({100, 100});
  const auto outside = analyze(b.session)->outside;
  ASSERT_TRUE(outside);
  EXPECT_EQ(outside->before_ns, 100);
  EXPECT_EQ(outside->between_ns, 10);
  EXPECT_EQ(outside->after_ns, 100);
  EXPECT_EQ(outside->wall_ns, 210);
}

/// What ranges launched may run after them: that time is not idle, and counts once however many
/// kernels run.
TEST(Outside, GpuWorkThatRangesLaunchedMayRunThere) {
  Loop b({100, 100});  // 100 to 200, 210 to 310; the run ends at 400
  const auto stream = b.stream(b.p, b.device(b.p, 0), 1);
  EXPECT_EQ(analyze(b.session)->outside->late_ns, 0);
  b.kernel(b.launch(b.t, 120, 125), "k", 130, 190, stream);
  b.kernel(b.launch(b.t, 150, 155), "k", 180, 250, stream);
  b.kernel(b.launch(b.t, 160, 165), "k", 240, 380, stream);
  b.kernel(b.launch(b.t, 300, 305), "k", 305, 390, stream);
  b.kernel(b.launch(b.t, 320, 325), "k", 320, 400, stream);  // launched outside
  EXPECT_EQ(analyze(b.session)->outside->late_ns, 10 + 80);
}

TEST(Outside, WaitsForCountersAreNotThePrograms) {
  Loop b({100, 100});
  b.session.counter_waits.push_back({b.p, 0, {b.session.strings.intern("step")}, 6});
  const auto outside = analyze(b.session)->outside;
  EXPECT_EQ(outside->between_ns, 4);
  EXPECT_EQ(outside->profiler_ns, 6);
}

TEST(Across, ThreadsAndProcesses) {
  testing::SessionBuilder b;
  const auto p = b.process(1);
  const auto t = b.thread(p, 11), u = b.thread(p, 12);
  b.range(t, "work", 0, 100);
  EXPECT_FALSE(analyze(b.session)->regions.at(0).across);
  b.range(u, "work", 0, 300);
  const auto threads = analyze(b.session)->regions.at(0).across;
  ASSERT_TRUE(threads);
  EXPECT_TRUE(threads->of_threads);
  EXPECT_EQ(threads->slowest, 12);
  EXPECT_EQ(threads->imbalance, 0.5);
  b.range(b.thread(b.process(2), 21), "work", 0, 100);
  const auto processes = analyze(b.session)->regions.at(0).across;
  EXPECT_FALSE(processes->of_threads);
  EXPECT_EQ(processes->parts, 2);
  EXPECT_EQ(processes->max_ns, 300) << "its threads work side by side";
  EXPECT_EQ(processes->slowest, 0);
}

TEST(Across, ProcessesOfRunsFarApartAreNotCompared) {
  testing::SessionBuilder b;
  const auto p = b.process(1);
  const auto t = b.thread(p, 11), u = b.thread(p, 12), v = b.thread(b.process(2), 21);
  b.range(t, "shared", 0, 100);
  b.range(v, "shared", 0, 300);
  b.range(t, "own", 400, 500);
  b.range(u, "own", 400, 700);
  const auto parts_of = [&](std::size_t region) -> std::int64_t {
    const auto across = analyze(b.session)->regions.at(region).across;
    return across ? across->parts : 0;
  };
  ASSERT_EQ(analyze(b.session)->regions.at(1).path.back(), "own");
  EXPECT_EQ(parts_of(0), 2);
  EXPECT_EQ(parts_of(1), 2);
  b.session.far_apart = true;
  EXPECT_EQ(parts_of(0), 0);
  EXPECT_EQ(parts_of(1), 2) << "threads of one of the runs";
}

TEST(OpenTime, CountsWhatIsOpenSideBySideOnce) {
  testing::SessionBuilder b;
  const auto p = b.process(1), q = b.process(2);
  const auto open = [&] { return analyze(b.session)->regions.at(0).wall.open_ns; };
  const auto t = b.thread(p, 11);
  b.range(t, "work", 0, 100);
  b.range(t, "work", 150, 200);
  EXPECT_EQ(open(), 150);
  b.range(b.thread(p, 12), "work", 50, 120);
  EXPECT_EQ(open(), 170);
  b.range(b.thread(p, 13), "work", 300, 400);
  b.range(b.thread(q, 21), "work", 350, 420);
  EXPECT_EQ(open(), 290);
  b.range(b.thread(q, 22), "work", 500, model::kOpen);
  EXPECT_EQ(open(), 290);
  testing::SessionBuilder requests;
  const auto loop = requests.thread(requests.process(1), 2);
  for (const std::int64_t at : {0, 10, 60})
    requests.range(loop, "request", at, at + 50, "", model::RangeKind::kStartEnd);
  const model::Region region = analyze(requests.session)->regions.at(0);
  EXPECT_EQ(region.wall.inclusive_ns, 150);
  EXPECT_EQ(region.wall.open_ns, 110);
}

}  // namespace steady_test
}  // namespace rangescope::analyze
