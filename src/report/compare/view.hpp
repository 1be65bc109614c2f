// A comparison in words and figures, as tables, Markdown and HTML show it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/comparison.hpp"

namespace rangescope::report {

/// "A", "B", ... of a side.
[[nodiscard]] std::string side_letter(std::size_t side);
/// "A = before: 5 runs of ./llm --layers 2"
[[nodiscard]] std::string side_sentence(const model::Comparison& comparison, std::size_t side);
/// What changed, in one or two sentences: the largest change that stands out, how many others, or that nothing does.
[[nodiscard]] std::string comparison_sentence(const model::Comparison& comparison);
/// "1.23 ms", "-" where absent.
[[nodiscard]] std::string side_value(const model::ComparedValue& value, std::size_t side);
/// "252", or "252, 126" where the sides differ; "-" where a side does not have the region.
[[nodiscard]] std::string counts_text(const std::vector<std::optional<double>>& counts);
/// "+8.3 %", "x 12.5" from a tenfold on, the bare difference where there is no ratio.
[[nodiscard]] std::string change_text(const model::ComparedValue& value, std::size_t side);
/// "+5.1 ... +11.2 %", "" without an interval; "(90 %)" behind it where fewer runs than needed for 95 % were there.
[[nodiscard]] std::string between_text(const model::Change& change);
/// "slower", "faster" for times, else "more", "less"; "noise"; "untested".
[[nodiscard]] std::string standing_text(const model::ComparedValue& value, std::size_t side);
/// "0.004", "< 0.001"
[[nodiscard]] std::string p_text(const model::Change& change);
/// "wall_ns.median: median occurrence" or "gpu.busy_ns, per occurrence: ..."
[[nodiscard]] std::string value_heading(const model::ComparedValue& value);

/// The region whose functions are shown: the one that `cpu` names by path or last name, of several the one that changed
/// most; without a name the first where a function stands out. Null where there is none.
[[nodiscard]] const model::ComparedRegion* functions_shown(const model::Comparison& comparison, const std::string& cpu);
/// "12 %, 45 %" of wall time, a side each.
[[nodiscard]] std::string shares_text(const std::vector<std::optional<double>>& shares);
/// "functions of decode, self time an occurrence"
[[nodiscard]] std::string functions_heading(const model::ComparedRegion& region);
/// Its functions: all where `cpu` asked for them, else the ten that changed most.
[[nodiscard]] std::span<const model::ComparedFunction> functions_of(const model::ComparedRegion& region,
                                                                    const std::string& cpu);
/// The region whose chains are shown, by the same rules; without a name and a function that stands out, the
/// outermost with the most samples of its own.
[[nodiscard]] const model::ComparedRegion* chains_shown(const model::Comparison& comparison, const std::string& cpu);
/// Is it the region, or below it?
[[nodiscard]] bool is_within(const model::ComparedRegion& region, const model::ComparedRegion& whole);

/// "GPU: A 'x', B 'y'"
[[nodiscard]] std::string difference_sentence(const model::EnvironmentDifference& difference);
[[nodiscard]] std::string rename_sentence(const model::RenameOffer& offer);
/// Why values could not be tested, each reason once with how often.
[[nodiscard]] std::vector<std::string> untested_sentences(const model::Comparison& comparison);
/// Path of the region, printable; with what it was called before where --rename joined two.
[[nodiscard]] std::string region_label(const model::ComparedRegion& region);
/// "only A: x", for regions that are not on all sides.
[[nodiscard]] std::string missing_sentence(const model::ComparedRegion& region);

}  // namespace rangescope::report
