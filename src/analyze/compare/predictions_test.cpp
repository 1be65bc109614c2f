// What one side predicted against what the others came to.
#include "analyze/compare/predictions.hpp"

#include <gtest/gtest.h>

namespace rangescope::analyze {
namespace predictions_test {

using model::ComparedPrediction;
using model::Side;

/// A run of `instances` of `loop` that took so long together.
model::Digest run_of(std::int64_t instances, double wall_ns, const std::string& name = "loop") {
  model::DigestRegion loop;
  loop.path = {name};
  loop.occurrences = instances;
  loop.values["wall_ns.inclusive"] = wall_ns;
  model::Digest run;
  run.regions.push_back(std::move(loop));
  return run;
}

/// Replayed without what recording added, the loop takes 800 of 1000 ns.
model::Verdict fusion_of(double before_ns, double after_ns) {
  model::Verdict line;
  line.cure = "fusion";
  line.text = "eight element-wise kernels follow one another";
  line.saves_ns = before_ns - after_ns;
  line.saves_low_ns = *line.saves_ns - 40;
  line.saves_high_ns = *line.saves_ns + 40;
  line.after = model::Outcome{"loop", {}, before_ns, after_ns, false};
  return line;
}

Side side_of(std::vector<model::Digest> runs) {
  return {"side", std::move(runs)};
}

TEST(ComparedPredictions, PerInstanceAndOfTheMeasuredTime) {
  model::Digest before = run_of(2, 1000);
  before.verdict = {fusion_of(800, 200)};
  const std::vector<Side> sides = {side_of({before}), side_of({run_of(4, 480)})};
  const auto predictions = compare_predictions(sides, {});
  ASSERT_EQ(predictions.size(), 1u);
  const ComparedPrediction& prediction = predictions.front();
  EXPECT_EQ(prediction.cure, "fusion");
  EXPECT_EQ(prediction.path, "loop");
  EXPECT_DOUBLE_EQ(prediction.before_ns, 500);
  EXPECT_DOUBLE_EQ(prediction.predicted_ns, 125);
  EXPECT_DOUBLE_EQ(prediction.low_ns, 100);
  EXPECT_DOUBLE_EQ(prediction.high_ns, 150);
  ASSERT_TRUE(prediction.realised_ns);
  EXPECT_DOUBLE_EQ(*prediction.realised_ns, 120);
}

TEST(ComparedPredictions, ALineIsAboutTheTimeWithThoseAboveIt) {
  model::Digest before = run_of(1, 800);
  before.verdict = {fusion_of(800, 400), fusion_of(400, 100)};
  const std::vector<Side> sides = {side_of({before}), side_of({run_of(1, 110)})};
  const auto predictions = compare_predictions(sides, {});
  ASSERT_EQ(predictions.size(), 2u);
  EXPECT_DOUBLE_EQ(predictions[0].predicted_ns, 400);
  EXPECT_DOUBLE_EQ(predictions[1].predicted_ns, 100);
  EXPECT_DOUBLE_EQ(predictions[1].before_ns, 800);
}

TEST(ComparedPredictions, MediansOverRepeatedRuns) {
  model::Digest before = run_of(1, 800);
  before.verdict = {fusion_of(800, 400)};
  const std::vector<Side> sides = {side_of({run_of(1, 700), before, run_of(1, 900)}),
                                   side_of({run_of(1, 390), run_of(1, 420), run_of(1, 410)})};
  const auto predictions = compare_predictions(sides, {});
  ASSERT_EQ(predictions.size(), 1u);
  EXPECT_DOUBLE_EQ(predictions[0].before_ns, 800);
  EXPECT_DOUBLE_EQ(*predictions[0].realised_ns, 410);
}

TEST(ComparedPredictions, WhatTheOtherSideLacksIsUnknown) {
  model::Digest before = run_of(1, 800);
  before.verdict = {fusion_of(800, 400)};
  const std::vector<Side> sides = {side_of({before}), side_of({run_of(1, 390, "train")})};
  const auto predictions = compare_predictions(sides, {});
  ASSERT_EQ(predictions.size(), 1u);
  EXPECT_FALSE(predictions[0].realised_ns);
}

TEST(ComparedPredictions, ARenamedRangeIsFound) {
  model::Digest before = run_of(1, 800);
  before.verdict = {fusion_of(800, 400)};
  const std::vector<Side> sides = {side_of({before}), side_of({run_of(1, 390, "train")})};
  model::ComparedRegion renamed;
  renamed.path = {"train"};
  renamed.renamed_from = "loop";
  const auto predictions = compare_predictions(sides, std::vector{renamed});
  ASSERT_TRUE(predictions[0].realised_ns);
  EXPECT_DOUBLE_EQ(*predictions[0].realised_ns, 390);
}

TEST(ComparedPredictions, LinesWithoutACurePredictNothing) {
  model::Digest before = run_of(1, 800);
  before.verdict.resize(1);
  before.verdict[0].saves_ns = 300;
  const std::vector<Side> sides = {side_of({before}), side_of({run_of(1, 390)})};
  EXPECT_TRUE(compare_predictions(sides, {}).empty());
}

}  // namespace predictions_test
}  // namespace rangescope::analyze
