// Every kind of loss: what `rangescope help losses` prints, and docs/manual/losses.md holds. The
// rows are in loss_kinds.tsv; `check.losses` compares them with the ids in the sources.
//
// Information leaves every number as it is. A warning or an error makes `--strict` fail; with an
// error, numbers of the report are known to be too small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rangescope::model {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };
[[nodiscard]] constexpr std::string_view severity_name(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

/// Where it was lost; the chapters of the page.
enum class LossArea : std::uint8_t {
  kProgram,
  kCapture,
  kGpu,
  kCpu,
  kCounters,
  kFile,
  kNsys,
  kNcu,
  kAnalysis,
  kStage
};

struct LossEntry {
  std::string_view id;  ///< stable, lower_snake_case
  Severity severity;
  LossArea area;
  std::string_view meaning;
  std::string_view cure;  ///< imperative; empty where nothing can be done
};

/// Why a program that uses NVTX was not recorded: each explains why a report has no ranges.
inline constexpr std::string_view kNotRecordedKinds[] = {"musl_program",
                                                         "cleared_environment",
                                                         "replaced_injection",
                                                         "nvtx_2_program",
                                                         "static_program",
                                                         "hidden_run_folder",
                                                         "other_user"};

[[nodiscard]] std::span<const LossEntry> loss_table();
/// Its row; that of "unknown_loss" for an id that the table lacks.
[[nodiscard]] const LossEntry& loss_entry(std::string_view id);

}  // namespace rangescope::model
