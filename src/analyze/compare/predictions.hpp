// What the verdict of the first side predicted, held against what came of it in the others.
#pragma once

#include <span>
#include <vector>

#include "model/comparison.hpp"
#include "model/digest.hpp"

namespace rangescope::analyze {

using ComparedPredictions = std::vector<model::ComparedPrediction>;
using Sides = std::span<const model::Side>;
using ComparedRegions = std::span<const model::ComparedRegion>;

/// Of each later side and each line with a cure, in the order of the verdict: the time with that
/// cure and those of the lines above it. Of repeated runs the verdict is that of the first one that
/// has a prediction, and times are medians. `regions`: all that were matched, for new names.
[[nodiscard]] ComparedPredictions compare_predictions(Sides sides, ComparedRegions regions);

}  // namespace rangescope::analyze
