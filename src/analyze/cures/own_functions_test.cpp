#include <gtest/gtest.h>

#include <algorithm>

#include "analyze/cures/cures.hpp"
#include "analyze/cures/steps_test.hpp"

namespace rangescope::analyze::cures {
namespace own_functions_test {

using testing::kMs;
using testing::kUs;
using testing::Steps;

constexpr const char* kTrain = "/srv/train.py";
constexpr const char* kNumPy = "/opt/torch/.venv/lib/python3.12/site-packages/numpy/core.py";
constexpr const char* kOptimizer =
    "/opt/torch/.venv/lib/python3.12/site-packages/torch/optim/sgd.py";

/// The candidates of a loop whose steps do this, then a product, and wait for it.
template <class Work>
std::vector<Candidate> candidates_with(Work work, int steps = 8) {
  const Steps program = Steps::run(
      [&](Steps& s) {
        work(s);
        s.kernel("ampere_sgemm_128x64_tn", kMs, 4096);
        s.wait();
      },
      steps);
  std::vector<Candidate> found = candidates_of(Recording(program.session(), Machine{}));
  std::erase_if(found, [](const Candidate& candidate) { return candidate.cure != "own_function"; });
  return found;
}

TEST(OwnFunctions, WhatALibraryComputesForOneIsIts) {
  const auto found = candidates_with([](Steps& s) {
    s.compute_in_python({{"main", kTrain}, {"update", kTrain}, {"argsort", kNumPy}}, 2 * kMs);
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].observation.find("computes in update (train.py)"), std::string::npos);
  EXPECT_DOUBLE_EQ(found[0].parameter.expected, 0);
}

TEST(OwnFunctions, PyTorchsOwnPythonCodeIsNot) {
  EXPECT_TRUE(candidates_with([](Steps& s) {
                s.compute_in_python({{"main", kTrain}, {"step", kOptimizer}}, 2 * kMs);
              }).empty());
}

TEST(OwnFunctions, StretchesShorterThanTheTimeBetweenSamplesAreJudgedTogether) {
  const auto found = candidates_with(
      [](Steps& s) {
        const int samples = s.step() % 4 == 0 ? 1 : 0;
        s.compute_in_python({{"draw", kTrain}}, 300 * kUs, samples);
      },
      64);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_GT(found[0].evidence.at("instances"), 60);
  EXPECT_GT(found[0].evidence.at("stretch_ns"), 60 * 300e3);
}

TEST(OwnFunctions, WhatTheOthersComputeInTheSameStretchRemains) {
  const auto found = candidates_with([](Steps& s) {
    s.compute_in_python({{"draw", kTrain}}, 3 * kMs, 3);
    s.compute_in_python({{"read", kNumPy}}, kMs, 1);
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_DOUBLE_EQ(found[0].parameter.expected, 0.25);
}

TEST(OwnFunctions, WorkOfTheFirstStepsAloneIsStartUp) {
  const auto found = candidates_with(
      [](Steps& s) {
        if (s.step() < 6)
          s.compute_in_python({{"index", kTrain}}, 2 * kMs);
      },
      16);
  EXPECT_TRUE(found.empty());
}

}  // namespace own_functions_test
}  // namespace rangescope::analyze::cures
