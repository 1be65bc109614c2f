// Numbers of finished runs, read back from files: report.json (rangescope.report/1) and baselines.
//
// A baseline is what is compared of one run or of repeated runs, without traces, so that it is
// small enough for a repository: docs/formats/baseline-json.md.
//
//   { "schema": "rangescope.baseline/1", "name": "main", "machine": "nvidia-h100-80gb-hbm3",
//   "saved_unix_ns": N,
//     "runs": [ { "run": {...}, "devices": [...], "partial_gpu": false, "losses": [...], "regions":
//     [
//       { "path": [...], "domain": "", "kind": "push_pop", "occurrences": N, "values": {
//       "wall_ns.median": N, ... },
//         "wall_ns": [...], "busy_ns": [...] } ], "verdict": [ {...} ], "kernels": [ [name, calls,
//         total_ns] ] } ] }
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/digest.hpp"

namespace rangescope::runs {

inline constexpr std::string_view kBaselineFolder = "rangescope-baselines";

struct Baseline {
  std::string name;
  std::string machine;  ///< machine_kind() of its runs
  std::int64_t saved_unix_ns = 0;
  std::vector<model::Digest> runs;
};

/// "nvidia-h100-80gb-hbm3", "2x-nvidia-h200", or the CPU's name and count where no GPU was used:
/// letters, digits and
/// '-'.
[[nodiscard]] std::string machine_kind(const model::Digest& run);

/// What the file is, by its "schema": "rangescope.report/1", "rangescope.baseline/1"; nothing for
/// what is no JSON of ours.
[[nodiscard]] std::optional<std::string> json_schema_of(const std::filesystem::path& path);

/// kNoInput, or kBadData with the place.
[[nodiscard]] base::Result<model::Digest> read_report(const std::filesystem::path& path);
[[nodiscard]] base::Result<Baseline> read_baseline(const std::filesystem::path& path);

/// One run of a baseline as JSON, and back; `samples`: occurrences kept a region, evenly spaced.
/// kBadData.
[[nodiscard]] std::string digest_text(const model::Digest& run, std::size_t samples);
[[nodiscard]] base::Result<model::Digest> read_digest(const std::string& text,
                                                      const std::string& where);

/// <folder>/<name>.<machine>.json, replaced whole. kUsage for a name that is no file name;
/// `samples`: occurrences kept a region and run, evenly spaced.
[[nodiscard]] base::Result<std::filesystem::path> save_baseline(const std::filesystem::path& folder,
                                                                const Baseline& baseline,
                                                                std::size_t samples = 64);

/// The baselines of a folder, by name and machine; files that are none are left out.
[[nodiscard]] std::vector<std::pair<std::filesystem::path, Baseline>> list_baselines(
    const std::filesystem::path& folder);

/// The file of that name for that machine: a path as it is, else in `folder`. kNoInput with the
/// nearest names; kNotComparable where the name exists, but for other machines only.
[[nodiscard]] base::Result<std::filesystem::path> find_baseline(const std::filesystem::path& folder,
                                                                const std::string& written,
                                                                const std::string& machine);

}  // namespace rangescope::runs
