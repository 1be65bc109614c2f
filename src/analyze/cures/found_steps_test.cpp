// Steps of programs that name none, or only a part of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "analyze/cures/cures.hpp"
#include "analyze/cures/steps.hpp"
#include "analyze/cures/steps_test.hpp"

namespace rangescope::analyze::cures {
namespace found_steps_test {

using testing::kMs;
using testing::kUs;
using testing::Steps;

constexpr const char* kEmbedding = "void embedding_kernel()";
constexpr const char* kAttention = "void attention_kernel()";
constexpr const char* kFeedForward = "void feed_forward_kernel()";
constexpr const char* kHead = "void head_kernel()";

void run_layers(Steps& s, int layers) {
  for (int layer = 0; layer < layers; ++layer) {
    s.kernel(kAttention, 20 * kUs, 512);
    s.kernel(kFeedForward, 40 * kUs, 512);
  }
}

void run_decoder(Steps& s) {
  s.kernel(kEmbedding, 5 * kUs, 512);
  run_layers(s, 12);
  s.kernel(kHead, 10 * kUs, 512);
  s.wait();
}

template <class Step>
Steps run_without_ranges(Step step, int count = 8) {
  Steps steps = Steps::run(step, count);
  steps.session().ranges.clear();
  return steps;
}

/// A module's calls, where the ranges of the steps were.
template <class Step>
Steps run_as_module(Step step, int count = 8) {
  Steps steps = Steps::run(step, count);
  model::Session& session = steps.session();
  std::erase_if(session.ranges, [&](const model::Range& range) {
    return session.strings.view(range.name) == "loop";
  });
  for (model::Range& range : session.ranges)
    range.module = true;
  return steps;
}

TEST(FoundSteps, BeginWhereTheOutermostModuleIsCalled) {
  const Steps program = run_as_module(run_decoder);
  const Recording recording(program.session(), Machine{});
  ASSERT_EQ(recording.instances().size(), 8u);
  EXPECT_EQ(recording.steps_text(), "8 steps, from one step to the next,");
  for (std::size_t step = 0; step < 8; ++step) {
    EXPECT_EQ(recording.instances()[step].kernels.size(), 26u) << step;
    EXPECT_EQ(recording.instances()[step].span.start_ns, program.session().ranges[step].start_ns);
  }
}

TEST(FoundSteps, AreWhatRepeatsWhereNoModuleIsKnown) {
  const Steps program = run_without_ranges(run_decoder);
  const Recording recording(program.session(), Machine{});
  ASSERT_TRUE(recording.has_steps());
  EXPECT_EQ(recording.steps_text(), "8 steps that repeat");
  ASSERT_EQ(recording.instances().size(), 8u);
  for (const Instance& instance : recording.instances())
    EXPECT_EQ(instance.kernels.size(), 26u);
}

TEST(FoundSteps, AProgramThatIsAllLayersHasLayersAsSteps) {
  const Steps program = run_without_ranges([](Steps& s) { run_layers(s, 12); });
  const Recording recording(program.session(), Machine{});
  EXPECT_EQ(recording.instances().size(), 8u * 12u);
}

TEST(FoundSteps, WhatNeverRepeatsHasNone) {
  const Steps program = run_without_ranges([](Steps& s) {
    for (int kernel = 0; kernel < 20; ++kernel)
      s.kernel("void kernel_" + std::to_string(100 * s.step() + kernel) + "()", 10 * kUs, 512);
  });
  const Recording recording(program.session(), Machine{});
  EXPECT_FALSE(recording.has_steps());
  EXPECT_EQ(recording.steps_text(), "");
}

TEST(FoundSteps, AreLessThanTheWholeOfWhatIsLaunchedOnlyOnce) {
  const Steps program = run_without_ranges(
      [](Steps& s) {
        if (s.step() == 0) {
          for (int kernel = 0; kernel < 400; ++kernel)
            s.kernel("void set_up_" + std::to_string(kernel) + "()", 10 * kUs, 512);
        }
        run_decoder(s);
      },
      8);
  const Recording recording(program.session(), Machine{});
  EXPECT_FALSE(recording.has_steps());
}

TEST(FoundSteps, LongFirstOnesAreWarmUp) {
  const Steps program = run_as_module([](Steps& s) {
    if (s.step() < 2)
      s.compute(50 * kMs);
    run_decoder(s);
  });
  const Recording recording(program.session(), Machine{});
  EXPECT_EQ(recording.instances().size(), 6u);
}

/// Of steps of these lengths, one behind the other.
std::size_t warm_up_of(std::initializer_list<std::int64_t> lengths_ns) {
  std::vector<replay::Span> steps;
  std::int64_t begin_ns = 0;
  for (const std::int64_t length_ns : lengths_ns) {
    steps.push_back({0, begin_ns, begin_ns + length_ns});
    begin_ns += length_ns;
  }
  return warm_up_steps(steps);
}

TEST(WarmUpSteps, GoOnBehindAShortOneWhereLongOnesBecomeRare) {
  EXPECT_EQ(warm_up_of({90, 10, 30, 10, 10, 10, 10, 10, 10, 10, 10, 10}), 3u);
  EXPECT_EQ(warm_up_of({90, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}), 1u);
}

TEST(WarmUpSteps, EndAtTheFirstShortOneWhereLongOnesGoOn) {
  EXPECT_EQ(warm_up_of({90, 10, 30, 10, 30, 10, 30, 10, 30, 10, 30, 10}), 1u);
  EXPECT_EQ(warm_up_of({10, 10, 30, 10, 10, 30, 10, 10, 30, 10, 10, 30}), 0u);
}

TEST(WarmUpSteps, ALongOneFarFromTheStartIsNone) {
  EXPECT_EQ(
      warm_up_of({90, 10, 10, 10, 30, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}),
      1u);
}

TEST(WarmUpSteps, AreAQuarterOfAllAtMost) {
  EXPECT_EQ(warm_up_of({90, 90, 90, 10, 10, 10, 10, 10}), 2u);
  EXPECT_EQ(warm_up_of({90, 10, 10}), 0u);
}

TEST(FoundSteps, ThoseThatTakeAlikeAreNoWarmUp) {
  const Steps program = run_as_module([](Steps& s) {
    s.compute(s.step() % 2 * 10 * kMs);
    run_decoder(s);
  });
  const Recording recording(program.session(), Machine{});
  EXPECT_EQ(recording.instances().size(), 8u);
}

/// Without a range around all steps.
template <class Step>
Steps run_without_a_range_around(Step step) {
  Steps steps = Steps::run(step);
  model::Session& session = steps.session();
  std::erase_if(session.ranges, [&](const model::Range& range) {
    return session.strings.view(range.name) == "loop";
  });
  return steps;
}

TEST(FoundSteps, RangesThatWarmUpAreNoPartOfTheLoop) {
  const Steps program = run_without_a_range_around([](Steps& s) {
    if (s.step() < 2)
      s.compute(50 * kMs);
    run_decoder(s);
  });
  const Recording recording(program.session(), Machine{});
  EXPECT_EQ(recording.warm_up(), 2u);
  EXPECT_EQ(recording.loop().size(), 6u);
  EXPECT_EQ(recording.instances().size(), 6u);
}

/// Ranges around the launches alone: the program waits between them.
template <class Step>
Steps run_with_ranges_that_only_launch(Step step, std::int64_t pause_ns) {
  Steps steps = run_without_a_range_around([&](Steps& s) {
    step(s);
    s.compute(pause_ns);
  });
  model::Session& session = steps.session();
  for (model::Range& range : session.ranges)
    range.end_ns = range.start_ns + 100 * kUs;
  return steps;
}

TEST(FoundSteps, ARangeThatOnlyLaunchesGoesOnToTheNextOne) {
  const Steps program = run_with_ranges_that_only_launch(run_decoder, 0);
  const Recording recording(program.session(), Machine{});
  ASSERT_EQ(recording.instances().size(), 8u);
  EXPECT_EQ(recording.steps_text(), "8 steps, from one step to the next,");
  EXPECT_EQ(recording.instances()[2].span.end_ns, recording.instances()[3].span.start_ns);
  EXPECT_EQ(recording.instances()[2].kernels.size(), 26u);
}

TEST(FoundSteps, APauseInWhichTheGpuHasNothingToDoIsNoStep) {
  const Steps program = run_with_ranges_that_only_launch(run_decoder, 20 * kMs);
  const Recording recording(program.session(), Machine{});
  EXPECT_EQ(recording.steps_text(), "");
}

TEST(FoundSteps, ARangeThatIsNearlyAllOfItsStepIsTheStep) {
  const Steps program = Steps::run(run_decoder);
  const Recording recording(program.session(), Machine{});
  EXPECT_EQ(recording.steps_text(), "");
  EXPECT_EQ(recording.loop_name(), "loop");
}

TEST(FoundSteps, ASavingOfStepsThatAreMoreThanTheirRangesIsOfNoRegion) {
  const Steps program = run_with_ranges_that_only_launch(
      [](Steps& s) {
        s.kernel("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128_ffma", kMs, 512);
        s.wait();
      },
      0);
  model::Report report;
  report.run.duration_ns = 100e6;
  add_cures(program.session(), testing::reference(), "", report);
  ASSERT_FALSE(report.verdict.empty());
  const model::Verdict& line = report.verdict.front();
  EXPECT_EQ(line.cure, "fp32_products");
  EXPECT_EQ(line.after->path, "");
  EXPECT_GT(*line.saves_ns, 5e6);
  EXPECT_NE(line.text.find("all 8 steps, from one step to the next, take"), std::string::npos)
      << line.text;
}

}  // namespace found_steps_test
}  // namespace rangescope::analyze::cures
