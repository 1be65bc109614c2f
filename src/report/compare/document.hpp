// A comparison and the gate's answer as documents: the sides and how their environments differ,
// then what changed, largest change first.
#pragma once

#include <string>

#include "model/gate.hpp"
#include "report/compare/value_texts.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// The region whose functions are shown. `cpu` names it by its path or its last name; of several
/// with that last name the one that changed most is meant. With "", the first region in which a
/// function changed significantly. Null if there is none.
[[nodiscard]] const model::ComparedRegion* functions_shown(const model::Comparison& comparison,
                                                           const std::string& cpu);
/// The region whose call chains are shown, by the same rules; with "" and no significant change,
/// the outermost region with most samples.
[[nodiscard]] const model::ComparedRegion* chains_shown(const model::Comparison& comparison,
                                                        const std::string& cpu);

[[nodiscard]] Document comparison_document(const model::Comparison& comparison, const Style& style);
[[nodiscard]] Document gate_document(const model::Gate& gate);
/// What changed: the largest change of a range, of a function and of a kernel; for runs that
/// alternated between the sides, how much faster one is.
[[nodiscard]] std::string comparison_headline(const model::Comparison& comparison);
/// Is it worse or better? kNoise if nothing changed significantly.
[[nodiscard]] model::Standing headline_standing(const model::Comparison& comparison);
/// The range of a check; "encode in step" for that of a function.
[[nodiscard]] std::string gate_label(const model::Gate& gate, const model::GateCheck& check);
/// "2 of 12 values regressed (limit 5 %)", and how many were not decided.
[[nodiscard]] std::string gate_headline(const model::Gate& gate);

}  // namespace rangescope::report
