// The answer in a line: what costs a program its time, by how much, and what to look at next.
//
// Made by analyze/verdict/ of a finished report, printed first by every exporter. A verdict rests
// on numbers that are in `evidence` under the names that the JSON report has; one that the data
// cannot carry is not made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rangescope::model {

/// How much a verdict asks of the reader.
enum class Weight : std::uint8_t {
  kNote,     ///< worth knowing: where time goes, what the numbers rest on
  kWarning,  ///< time that the program could save
  kError,    ///< the numbers themselves cannot be trusted as they stand
};
inline constexpr std::string_view kWeightNames[] = {"note", "warning", "error"};
[[nodiscard]] constexpr std::string_view weight_name(Weight weight) {
  return kWeightNames[static_cast<std::size_t>(weight)];
}

/// What a replay of the recording predicts for the ranges of a path, without what recording added.
struct Outcome {
  std::string path;  ///< "loop", around what changes; "" for all GPU work
  /// Index in Report::regions, the first of that path.
  std::optional<std::uint32_t> region;
  /// All instances together: as they are, with the lines above done, and with this one too.
  double before_ns = 0, after_ns = 0;
  bool is_bound = false;  ///< the recording does not replay: this saves at most so much
};

struct Verdict {
  std::string kind;  ///< stable: "waits_for_cpu"; docs/manual/verdicts.md has each
  Weight severity = Weight::kNote;
  std::string path;  ///< as in tables: "step > forward", "layer_#", a kernel; "" for the run
  std::optional<std::uint32_t>
      region;  ///< index in Report::regions, the first of those that the path names
  std::optional<std::uint32_t> process;  ///< index in Report::processes, where one stands out
  std::string text;                      ///< one sentence, with its numbers, without the path
  /// Amdahl: the whole run is shorter by at most so much when what this says is gone; absent where
  /// that is unknown. With a cure: what a replay predicts.
  std::optional<double> saves_ns;
  std::optional<double>
      saves_share;  ///< of the run; of the kernels' time where there is no timeline
  /// The interval of `saves_ns`, of a cure.
  std::optional<double> saves_low_ns, saves_high_ns;
  std::string cure;              ///< its id (analyze/cures/catalog.tsv); "" where none applies
  std::string attempt;           ///< what to try instead of what advice.tsv has for the kind
  std::optional<Outcome> after;  ///< of a cure
  std::map<std::string, double> evidence;
  std::string next;           ///< a command that looks further; "" where there is none
  bool next_is_page = false;  ///< that command writes the HTML page, which has no use for it
};

}  // namespace rangescope::model
