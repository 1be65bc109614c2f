// A comparison and the gate's answer as documents: what is different around the runs first, then what changed, most
// first.
#pragma once

#include "model/gate.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

[[nodiscard]] Document comparison_document(const model::Comparison& comparison, const Style& style);
[[nodiscard]] Document gate_document(const model::Gate& gate);
/// "2 of 12 values regressed (limit 5 %)", and what could not be judged and what it takes.
[[nodiscard]] std::string gate_headline(const model::Gate& gate);

}  // namespace rangescope::report
