#include <gtest/gtest.h>

#include <algorithm>

#include "analyze/cures/cures.hpp"
#include "analyze/cures/steps_test.hpp"

namespace rangescope::analyze::cures {
namespace interpreter_work_test {

using testing::kMs;
using testing::kUs;
using testing::Steps;

constexpr const char* kCompiler = "/lib/torch/_dynamo/convert_frame.py";
constexpr const char* kSerialization = "/lib/torch/serialization.py";

void train(Steps& s) {
  s.kernel("ampere_sgemm_128x64_tn", kMs, 4096);
  s.wait();
}

/// Is that cure found in a loop of this step?
template <class Step>
bool finds(std::string_view cure, Step step, int steps = 8) {
  const Steps program = Steps::run(step, steps);
  const Recording recording(program.session(), Machine{});
  return std::ranges::any_of(candidates_of(recording),
                             [&](const Candidate& candidate) { return candidate.cure == cure; });
}

/// Is there a line of the verdict with that cure?
template <class Step>
bool has_line(std::string_view cure, Step step, int steps) {
  const Steps program = Steps::run(step, steps);
  model::Report report;
  report.run.duration_ns = 1e9;
  add_cures(program.session(), Reference{}, "", report);
  return std::ranges::any_of(report.verdict,
                             [&](const model::Verdict& line) { return line.cure == cure; });
}

TEST(InterpreterWork, CompilingAtTheStartOnlyIsWarmUp) {
  const auto compiles_until = [](int last) {
    return finds(
        "recompilations",
        [=](Steps& s) {
          if (s.step() <= last)
            s.compute_in("_compile", 2 * kMs, kCompiler);
          train(s);
        },
        16);
  };
  EXPECT_FALSE(compiles_until(0));
  EXPECT_FALSE(compiles_until(1));
  EXPECT_FALSE(compiles_until(6));
  EXPECT_TRUE(compiles_until(12));
}

TEST(InterpreterWork, ASecondShapeAndTheLastBatchAreNoRecompilations) {
  EXPECT_FALSE(finds(
      "recompilations",
      [](Steps& s) {
        const bool is_new_shape = s.step() == 0 || s.step() == 3 || s.step() == 15;
        if (is_new_shape)
          s.compute_in("_compile", 2 * kMs, kCompiler);
        train(s);
      },
      16));
}

TEST(InterpreterWork, TheCodeThatACompiledStepCallsIsNoCompiler) {
  for (const char* file : {"/lib/torch/_dynamo/eval_frame.py",
                           "/lib/torch/_functorch/_aot_autograd/runtime_wrappers.py",
                           "/lib/torch/_inductor/output_code.py",
                           "/lib/torch/_inductor/utils.py"}) {
    EXPECT_FALSE(finds("recompilations", [=](Steps& s) {
      s.compute_in("run", 2 * kMs, file);
      train(s);
    })) << file;
  }
}

TEST(InterpreterWork, AProfilerThatIsOffInMostStepsIsNoLine) {
  constexpr const char* kFile = "/lib/torch/profiler/profiler.py";
  const auto profile_each = [=](int steps) {
    return has_line(
        "profiler_in_loop",
        [=](Steps& s) {
          const bool is_last = s.step() % steps == steps - 1;
          if (is_last)
            s.compute_in("stop_trace", 400 * kUs, kFile);
          if (!is_last)
            s.compute_in("step", 2 * kUs, kFile);
          train(s);
        },
        200);
  };
  EXPECT_TRUE(profile_each(5));
  EXPECT_FALSE(profile_each(100));
}

TEST(InterpreterWork, RareCheckpointsAreNoLine) {
  const auto save_each = [](int steps) {
    return has_line(
        "checkpoints_in_loop",
        [=](Steps& s) {
          if (s.step() % steps == steps - 1)
            s.compute_in("save", 400 * kUs, kSerialization);
          train(s);
        },
        200);
  };
  EXPECT_TRUE(save_each(5));
  EXPECT_FALSE(save_each(100));
}

TEST(InterpreterWork, ACheckpointBehindTheLoopIsNotInIt) {
  EXPECT_FALSE(finds("checkpoints_in_loop", [](Steps& s) {
    if (s.step() == 7)
      s.compute_in("save", 20 * kMs, kSerialization);
    train(s);
  }));
}

TEST(InterpreterWork, WhatAnotherThreadSavesIsTheCure) {
  const auto save = [](Steps& s) {
    s.compute_in("save", 2 * kMs, kSerialization);
    s.copy(model::CopyKind::kDeviceToHost, 1 << 20, 50 * kUs);
  };
  EXPECT_FALSE(finds("checkpoints_in_loop", [=](Steps& s) {
    train(s);
    s.on_other_thread([&] { save(s); });
  }));
  EXPECT_TRUE(finds("checkpoints_in_loop", [=](Steps& s) {
    train(s);
    save(s);
  }));
}

TEST(InterpreterWork, AnAsynchronousSaveOnlyCopies) {
  EXPECT_FALSE(finds("checkpoints_in_loop", [](Steps& s) {
    s.compute_in("async_save", 2 * kMs, "/lib/torch/distributed/checkpoint/state_dict_saver.py");
    train(s);
  }));
}

}  // namespace interpreter_work_test
}  // namespace rangescope::analyze::cures
