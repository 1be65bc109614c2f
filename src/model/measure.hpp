// The one list of numbers that a region has: tag, title, unit, source and formula, and how to get
// it.
//
// Tables, JSON, CSV, sorting, comparison and the gate all go through it, so that a number has one
// name everywhere. Tags are the paths of the JSON report ("wall_ns.inclusive", "gpu.busy_ns").
// Hardware metrics are not listed: they are named by themselves ("metrics.dram__bytes.sum").
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.hpp"

namespace rangescope::model {

enum class Unit : std::uint8_t { kNs, kCount, kBytes, kShare };

/// "ns", "count", "byte", "ratio"
[[nodiscard]] std::string_view unit_name(Unit unit);

struct Measure {
  std::string_view tag;    ///< "wall_ns.inclusive"
  std::string_view title;  ///< column head: "wall"
  Unit unit;
  std::string_view source;                      ///< "NVTX", "CUPTI activity"
  std::string_view formula;                     ///< one sentence
  std::optional<double> (*get)(const Region&);  ///< nothing where the region does not have it
};

/// All measures, in the order in which a full table shows them. Static storage.
[[nodiscard]] std::span<const Measure> measures();

/// The measure of that tag or of that unambiguous title, or nullptr.
[[nodiscard]] const Measure* find_measure(std::string_view tag);

/// The value of a measure tag or of `metrics.<name>` for a region; nothing where it is absent.
[[nodiscard]] std::optional<double> value_of(const Region& region, std::string_view tag);

/// Every tag, for "did you mean".
[[nodiscard]] std::vector<std::string> measure_tags();

/// "decode > layer0", names as they are; `domain@` in front where it is not the default domain.
[[nodiscard]] std::string path_text(const Region& region);
[[nodiscard]] std::string path_text(const std::string& domain,
                                    const std::vector<std::string>& path);

/// Is the measure counted by an allocator, and not timed, so that one run tells it?
[[nodiscard]] bool is_counted(const Measure& measure);

/// Is the value of that measure a sum over occurrences, so that it is divided by their number when
/// runs are compared?
[[nodiscard]] bool adds_up(const Measure& measure);

}  // namespace rangescope::model
