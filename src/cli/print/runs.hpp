// What `rangescope runs` prints: the list of runs, one run, and how often stages worked.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "runs/baselines.hpp"
#include "runs/stages.hpp"

namespace rangescope::cli {

/// One line a run. `width` 0: no limit.
[[nodiscard]] std::string runs_table(std::span<const std::filesystem::path> folders, std::size_t width, bool color);
/// What list and show say of each run, as JSON: an array of objects; unknown is null.
[[nodiscard]] std::string runs_json(std::span<const std::filesystem::path> folders);
[[nodiscard]] base::Result<std::string> run_json(const std::filesystem::path& run);
/// All that is known of a run, a line a field.
[[nodiscard]] base::Result<std::string> run_page(const std::filesystem::path& run);
/// One line a baseline (runs::list_baselines).
[[nodiscard]] std::string baselines_table(std::span<const std::pair<std::filesystem::path, runs::Baseline>> baselines,
                                          std::size_t width, bool color);
/// One line for each stage, tool and step; or as JSON.
[[nodiscard]] std::string stages_json(std::span<const runs::StageCount> counts);
[[nodiscard]] std::string stages_table(std::span<const runs::StageCount> counts, std::size_t width, bool color);

}  // namespace rangescope::cli
