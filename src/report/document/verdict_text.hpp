// Verdicts as people read them: one sentence each, with what it could save and what to try.
#pragma once

#include <string>

#include "model/report.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// "saves up to 228.6 ms, 6.4 % of the run"; "" where nobody can say.
[[nodiscard]] std::string saving_text(const model::Report& report, const model::Verdict& verdict);
/// "step: warm-up: the first of 5 ... (saves up to 228.6 ms, 6.4 % of the run)", printable, the name cut in the middle.
[[nodiscard]] std::string verdict_text(const model::Report& report, const model::Verdict& verdict,
                                       std::size_t name_width = 120);
/// All of them, worst first: "1. warning: step: ..." with what to try, and the command that looks further: the first
/// one's, on a terminal the others' where `style.explain` is set.
[[nodiscard]] Section verdict_section(const model::Report& report, const Style& style);

}  // namespace rangescope::report
