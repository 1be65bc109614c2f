// Cures of sessions that are too large to be replayed whole.
#include "analyze/cures/part.hpp"

#include <gtest/gtest.h>

#include "analyze/cures/cures.hpp"
#include "analyze/cures/programs_test.hpp"

namespace rangescope::analyze::cures {
namespace part_test {

using testing::kUs;
using testing::reference;
using testing::Steps;

Steps launch_bound(int steps) {
  return Steps::run(
      [](Steps& program) {
        for (int kernel = 0; kernel < 16; ++kernel)
          program.kernel("ampere_sgemm_32x32_nn", 2 * kUs, 16);
      },
      steps);
}

TEST(CureLines, OfALargeSessionAPartIsReplayedAndScaled) {
  const Steps steps = launch_bound(80);
  const auto report_of = [&](const Limits& limits) {
    model::Report report;
    report.run.duration_ns = 1e9;
    add_cures(steps.session(), reference(), "", report, limits);
    return report;
  };
  const model::Report whole = report_of({});
  const std::size_t operations = count_operations(steps.session());
  const model::Report part = report_of({operations / 2, operations / 4});
  ASSERT_FALSE(whole.verdict.empty());
  ASSERT_FALSE(part.verdict.empty());
  EXPECT_EQ(part.verdict[0].cure, whole.verdict[0].cure);
  EXPECT_NEAR(
      *part.verdict[0].saves_ns, *whole.verdict[0].saves_ns, 0.1 * *whole.verdict[0].saves_ns);
  EXPECT_NE(part.verdict[0].text.find("in the part that was replayed"), std::string::npos);
  EXPECT_TRUE(whole.notes.empty());
  ASSERT_EQ(part.notes.size(), 1u);
  EXPECT_NE(part.notes[0].find("cures were looked for in"), std::string::npos);
}

TEST(CureParts, WhatWasAllocatedMeanwhileIsPartOfIt) {
  const Steps steps = Steps::run(
      [](Steps& program) { testing::layers_of_gathered_rows(program, testing::kManyRows_bytes); },
      80);
  const std::size_t operations = count_operations(steps.session());
  model::Report report;
  report.run.duration_ns = 1e9;
  add_cures(steps.session(), reference(), "", report, {operations / 2, operations / 4});
  ASSERT_FALSE(report.verdict.empty());
  EXPECT_EQ(report.verdict[0].cure, "gathered_rows");
}

TEST(CureParts, StepsAtTheEdgesAreLeftOutAndTheLoopIsCut) {
  const Steps steps = launch_bound(8);
  const model::Session& session = steps.session();
  const model::Range& loop = session.ranges[0];
  const model::Range& third = session.ranges[3];
  const model::Range& sixth = session.ranges[6];
  const TimeWindow window{(third.start_ns + third.end_ns) / 2, (sixth.start_ns + sixth.end_ns) / 2};
  const model::Session part = part_of(session, window);
  ASSERT_EQ(part.ranges.size(), 3u);
  EXPECT_EQ(part.strings.view(part.ranges[0].name), "loop");
  EXPECT_EQ(part.ranges[0].start_ns, window.start_ns);
  EXPECT_EQ(part.ranges[0].end_ns, window.end_ns);
  EXPECT_LT(part.ranges[0].end_ns, loop.end_ns);
  EXPECT_EQ(part.ranges[1].start_ns, session.ranges[4].start_ns);
  EXPECT_EQ(part.ranges[2].end_ns, session.ranges[5].end_ns);
  for (const model::Kernel& kernel : part.kernels) {
    ASSERT_LT(kernel.launch, part.launches.size());
    EXPECT_GE(part.launches[kernel.launch].start_ns, window.start_ns);
    EXPECT_LE(part.launches[kernel.launch].start_ns, window.end_ns);
  }
  EXPECT_LT(part.kernels.size(), session.kernels.size());
  EXPECT_FALSE(part.kernels.empty());
}

}  // namespace part_test
}  // namespace rangescope::analyze::cures
