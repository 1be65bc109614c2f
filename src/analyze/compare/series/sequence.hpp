// Runs made one side after the other: a machine that became slower meanwhile moves all ranges
// alike.
#pragma once

#include <span>

#include "model/comparison.hpp"
#include "model/digest.hpp"

namespace rangescope::analyze {

/// A note per side whose runs all began before or after those of the first, and whose ranges (three
/// or more) all moved alike: in one direction, by 1 % or more on average, none by less than half or
/// more than twice that.
void add_sequence_notes(std::span<const model::Side> sides, model::Comparison& comparison);

}  // namespace rangescope::analyze
