// What differs around the runs: machine, GPU, driver, versions, arguments, and how the runs ended.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/comparison.hpp"
#include "model/digest.hpp"

namespace rangescope::analyze {

/// Heavy ones first.
[[nodiscard]] std::vector<model::EnvironmentDifference> environment_differences(
    std::span<const model::Side> sides);

/// The runs of a side must be repetitions: the same command and the same GPUs. kNotComparable with
/// the two that differ.
[[nodiscard]] base::Result<void> check_repetitions(const model::Side& side);

/// Sentences on what makes the numbers of a side less than they seem: lost data, a failed program.
[[nodiscard]] std::vector<std::string> cautions(const model::Side& side);

}  // namespace rangescope::analyze
