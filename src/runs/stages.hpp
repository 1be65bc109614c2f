// stages.json: what each stage of a run did, for people, the doctor and `runs stats`.
//
//   { "schema": "rangescope.stages/1", "stages": [ { "stage": "ncu", "tool": "ncu 2025.3.1",
//   "step": "range",
//     "attempt": 1, "outcome": "ok" | "empty" | "failed" | "refused", "why": "ncu.unsupported_api",
//     "message": "...", "evidence": "...", "cure": "...", "wall_ns": N, "exit_code": 9, "results":
//     12, "report": "ncu/ncu.ncu-rep" } ] }
//
// A refused step was not run; its message is the reason. Statistics count over a root of runs;
// nothing leaves the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rangescope::runs {

struct Stage {
  std::string stage;  ///< "native", "nsys", "ncu"
  std::string tool;   ///< "ncu 2025.3.1"
  std::string step;   ///< "range", "profile", "import", "export"; "" where there is but one
  int attempt = 1;
  std::string outcome;  ///< "ok", "empty", "failed", "refused"
  std::string why;      ///< id of the decisive cause; "" when ok
  std::string message, evidence, cure;
  std::int64_t wall_ns = 0;
  std::optional<int> exit_code;
  std::uint64_t results = 0;
  std::string report;  ///< path within the run; "" where there is none
};

[[nodiscard]] base::Result<void> write_stages(const std::filesystem::path& run,
                                              const std::vector<Stage>& stages);
/// Empty for a run without stages.json (a native-only run); kBadData for a damaged one.
[[nodiscard]] base::Result<std::vector<Stage>> read_stages(const std::filesystem::path& run);

/// One line of `runs stats`: a stage with a tool version and a step.
struct StageCount {
  std::string stage, tool, step;
  std::uint64_t ok = 0, empty = 0, failed = 0, refused = 0;
  std::int64_t median_wall_ns = 0;                            ///< of those that ran
  std::vector<std::pair<std::string, std::uint64_t>> causes;  ///< why not ok, most frequent first
};

/// Over the run directories of a root, native-only runs counted by their status. O(runs).
[[nodiscard]] std::vector<StageCount> count_stages(const std::vector<std::filesystem::path>& runs);

}  // namespace rangescope::runs
