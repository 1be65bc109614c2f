#include "analyze/tree/recording.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"
#include "analyze/tree/tree.hpp"

namespace rangescope::analyze {
namespace recording_test {

/// `outer` with ranges of `inner_ns` inside, 100 ns apart, in a process whose empty ranges take 20
/// ns inside and 60 in all.
struct Nested : testing::SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 2);
  Nested(int inner, std::int64_t inner_ns) {
    session.processes[p].range_own_ns = 20;
    session.processes[p].range_pair_ns = 60;
    std::int64_t at = 1000;
    range(t, "outer", at, at + 100 + inner * (inner_ns + 100));
    for (int i = 0; i < inner; ++i, at += inner_ns + 100)
      range(t, "inner", at + 100, at + 100 + inner_ns);
  }
  std::vector<model::Region> regions() { return analyze(session)->regions; }
};

TEST(Recording, IsTakenOutOfShortRangesAndThoseAround) {
  const auto regions = Nested(10, 30).regions();
  const model::WallTime &outer = regions.at(0).wall, &inner = regions.at(1).wall;
  EXPECT_EQ(inner.profiler_ns, 10 * 20);
  EXPECT_EQ(inner.inclusive_ns, 10 * 10);
  EXPECT_EQ(inner.per_occurrence_ns.median, 10);
  EXPECT_EQ(outer.profiler_ns, 20 + 10 * 60);
  EXPECT_EQ(outer.inclusive_ns, 1400 - 620);
  EXPECT_EQ(outer.inclusive_ns - outer.exclusive_ns, inner.inclusive_ns);
  EXPECT_EQ(outer.per_occurrence_ns.max, outer.inclusive_ns);
  EXPECT_EQ(outer.recording_ns, outer.profiler_ns);
}

TEST(Recording, IsNoTimeOfTheProgramBetweenRanges) {
  for (const std::int64_t apart_ns : {100, 2000}) {
    testing::SessionBuilder b;
    const auto p = b.process(1), t = b.thread(p, 2);
    b.session.processes[p].range_own_ns = 20;
    b.session.processes[p].range_pair_ns = 60;
    for (int i = 0; i < 10; ++i)
      b.range(t, "step", i * (1000 + apart_ns), i * (1000 + apart_ns) + 1000);
    const auto report = analyze(b.session);
    const double taken_ns = apart_ns == 100 ? 10 * 40 : 0;  // less than 5 % of the time between
    EXPECT_EQ(report->outside->profiler_ns, taken_ns);
    EXPECT_EQ(report->outside->between_ns, 9.0 * static_cast<double>(apart_ns) - taken_ns);
    EXPECT_EQ(report->outside->wall_ns, report->outside->between_ns);
  }
}

TEST(Recording, StaysInLongRanges) {
  for (const auto& region : Nested(10, 100'000).regions())
    EXPECT_EQ(region.wall.profiler_ns, 0);
}

/// As the digests that two ranks write do.
TEST(Recording, EachProcessIsJudgedByItself) {
  Nested nested(10, 30);
  const std::uint32_t slow = nested.process(2), slow_thread = nested.thread(slow, 3);
  nested.session.processes[slow].range_own_ns = 20;
  nested.session.processes[slow].range_pair_ns = 60;
  nested.range(slow_thread, "outer", 1000, 1'001'000);
  nested.range(slow_thread, "inner", 1100, 1'000'900);
  const auto regions = nested.regions();
  EXPECT_EQ(regions.at(0).wall.profiler_ns, 20 + 10 * 60);
  EXPECT_EQ(regions.at(0).wall.inclusive_ns, 1400 - 620 + 1'000'000);
  EXPECT_EQ(regions.at(1).wall.profiler_ns, 10 * 20);
}

TEST(Recording, IsTakenOutOfAWholeTreeOrNotAtAll) {
  Nested nested(1, 100'000);
  std::int64_t at = nested.session.end_ns + 100;
  const auto outer = nested.range(nested.t, "other", at, 0);
  nested.range(nested.t, "long", at + 10, at + 1010);
  for (int i = 0; i < 50; ++i)
    nested.range(nested.t, "short", at + 1100 + i * 100, at + 1130 + i * 100);
  nested.session.ranges[outer].end_ns = nested.session.end_ns = at + 7000;
  const auto regions = nested.regions();
  const auto of = [&](std::string_view name) {
    for (const auto& region : regions)
      if (region.path.back() == name)
        return region.wall;
    return model::WallTime{};
  };
  EXPECT_EQ(of("outer").profiler_ns, 0);
  EXPECT_EQ(of("long").profiler_ns, 20);
  EXPECT_EQ(of("short").profiler_ns, 50 * 20);
  EXPECT_EQ(of("other").profiler_ns, 20 + 51 * 60);
  EXPECT_EQ(of("other").inclusive_ns - of("other").exclusive_ns,
            of("long").inclusive_ns + of("short").inclusive_ns);
}

TEST(Recording, IsNeverMoreThanTheRangeTook) {
  const auto regions = Nested(10, 5).regions();
  EXPECT_EQ(regions.at(1).wall.inclusive_ns, 0);
  EXPECT_EQ(regions.at(1).wall.profiler_ns, 10 * 5);
}

TEST(Recording, OfRangesInOneAnotherOfOneRegionCountsOnce) {
  testing::SessionBuilder b;
  const auto p = b.process(1), t = b.thread(p, 2);
  b.session.processes[p].range_own_ns = 2;
  b.session.processes[p].range_pair_ns = 4;
  for (int i = 0; i < 1000; ++i)
    b.range(t, "f", 10 * i, 20'000 - 10 * i);
  const auto regions = analyze(b.session)->regions;
  ASSERT_EQ(regions.size(), kDeepest);
  for (const model::Region& region : regions) {
    EXPECT_GT(region.wall.profiler_ns, 0);
    EXPECT_NEAR(region.wall.inclusive_ns + region.wall.profiler_ns, 20'000 - 20 * region.depth, 1);
  }
}

TEST(Recording, IsLeftWhereNobodyMeasuredIt) {
  Nested nested(10, 30);
  nested.session.processes[nested.p].range_pair_ns =
      nested.session.processes[nested.p].range_own_ns = 0;
  for (const auto& region : nested.regions())
    EXPECT_EQ(region.wall.profiler_ns, 0);
}

TEST(Recording, OfAnotherProfilerIsTakenOutOfTheRangeThatHoldsItAndThoseAround) {
  testing::SessionBuilder b;
  const auto p = b.process(1), t = b.thread(p, 2);
  b.range(t, "step", 0, 100);
  const auto add = b.range(t, "aten::add", 10, 60);
  b.range(t, "aten::mul", 70, 90);
  b.session.unlisted_inside.push_back({.range = add, .ns = 30, .recorded_ns = 30});
  const auto regions = analyze(b.session)->regions;
  std::string text;
  for (const model::Region& region : regions)
    text += fmt::format("{} {} own {} median {} profiler {}\n",
                        region.path.back(),
                        region.wall.inclusive_ns,
                        region.wall.exclusive_ns,
                        region.wall.per_occurrence_ns.median,
                        region.wall.profiler_ns);
  EXPECT_EQ(text,
            "step 70 own 30 median 70 profiler 30\n"
            "aten::add 20 own 20 median 20 profiler 30\n"
            "aten::mul 20 own 20 median 20 profiler 0\n");
}

TEST(Recording, StartEndRangesStayAsTheyWere) {
  Nested nested(10, 30);
  nested.range(nested.t, "free", 10, 40, "", model::RangeKind::kStartEnd);
  for (const auto& region : nested.regions())
    if (region.kind == model::RangeKind::kStartEnd) {
      EXPECT_EQ(region.wall.inclusive_ns, 30);
    }
}

}  // namespace recording_test
}  // namespace rangescope::analyze
