// The verdict on recordings that were made long after one another: what one program did says
// nothing about another, so each is judged by itself.
#pragma once

#include <filesystem>
#include <span>

#include "profile/analyzed.hpp"

namespace rangescope::profile {

/// Replaces the verdict of `report`, which is of all inputs together, by the verdicts of each
/// recording; the lines name it. Files of one run are one recording. Reads the inputs again.
/// Errors as of analyze_inputs().
[[nodiscard]] base::Result<void> judge_each_recording(std::span<const std::filesystem::path> inputs,
                                                      const analyze::Options& options,
                                                      const read::Options& reading,
                                                      model::Report& report);

}  // namespace rangescope::profile
