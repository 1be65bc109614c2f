// What `rangescope runs` prints: the list of runs, one run, and how often stages worked.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "report/document/document.hpp"
#include "runs/baselines.hpp"
#include "runs/stages.hpp"

namespace rangescope::cli {

/// One line a run.
[[nodiscard]] report::Grid runs_grid(std::span<const std::filesystem::path> folders);
/// What list and show say of each run, as JSON: an array of objects; unknown is null.
[[nodiscard]] nlohmann::json runs_json(std::span<const std::filesystem::path> folders);
[[nodiscard]] base::Result<nlohmann::json> run_json(const std::filesystem::path& run);
/// All that is known of a run, a line a field.
[[nodiscard]] base::Result<std::string> run_page(const std::filesystem::path& run);
/// One line a baseline (runs::list_baselines).
[[nodiscard]] report::Grid baselines_grid(
    std::span<const std::pair<std::filesystem::path, runs::Baseline>> baselines);
/// One line for each stage, tool and step; or as JSON.
[[nodiscard]] nlohmann::json stages_json(std::span<const runs::StageCount> counts);
[[nodiscard]] report::Grid stages_grid(std::span<const runs::StageCount> counts);

}  // namespace rangescope::cli
