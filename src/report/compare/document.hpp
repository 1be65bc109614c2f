// A comparison and the gate's answer as documents: what is different around the runs first, then
// what changed, most first.
#pragma once

#include <string>

#include "model/gate.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// "A", "B", ... of a side.
[[nodiscard]] std::string side_letter(std::size_t side);
/// "1.23 ms", "-" where absent.
[[nodiscard]] std::string side_value(const model::ComparedValue& value, std::size_t side);
/// "+8.3 %", "x 12.5" from a tenfold on, the bare difference where there is no ratio.
[[nodiscard]] std::string change_text(const model::ComparedValue& value, std::size_t side);
/// "slower", "faster" for times, else "more", "less"; "noise"; "untested".
[[nodiscard]] std::string standing_text(const model::ComparedValue& value, std::size_t side);
/// Path of the region, printable; with what it was called before where --rename joined two.
[[nodiscard]] std::string region_label(const model::ComparedRegion& region);
/// The region whose functions are shown: the one that `cpu` names by path or last name, of several
/// the one that changed most; without a name the first where a function changed significantly. Null
/// where there is none.
[[nodiscard]] const model::ComparedRegion* functions_shown(const model::Comparison& comparison,
                                                           const std::string& cpu);
/// The region whose chains are shown, by the same rules; without a name and a function that stands
/// out, the outermost with the most samples of its own.
[[nodiscard]] const model::ComparedRegion* chains_shown(const model::Comparison& comparison,
                                                        const std::string& cpu);

[[nodiscard]] Document comparison_document(const model::Comparison& comparison, const Style& style);
[[nodiscard]] Document gate_document(const model::Gate& gate);
/// What changed: the largest change of a range, of a function and of a kernel; of runs made in
/// turns how much faster a side is.
[[nodiscard]] std::string comparison_headline(const model::Comparison& comparison);
/// Is it worse or better? kNoise where nothing is significant.
[[nodiscard]] model::Standing headline_standing(const model::Comparison& comparison);
/// The range of a check, "encode in step" for a function's.
[[nodiscard]] std::string gate_label(const model::Gate& gate, const model::GateCheck& check);
/// "2 of 12 values regressed (limit 5 %)", and what could not be judged and what it takes.
[[nodiscard]] std::string gate_headline(const model::Gate& gate);

}  // namespace rangescope::report
