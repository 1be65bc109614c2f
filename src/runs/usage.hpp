// What several runs used together, of a job's ranks or of runs that make one report.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "model/report.hpp"

namespace rangescope::runs {

/// CPU time in all, and the largest peak of a process. Absent where any of them does not say it (a
/// rank that was killed, a run of an older version): a sum without it would look like the whole.
[[nodiscard]] std::optional<model::ProcessUsage> usage_together(
    std::span<const std::filesystem::path> runs);

}  // namespace rangescope::runs
