// Verdicts as people read them: one sentence each, with what it could save.
#pragma once

#include <string>

#include "model/report.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

/// "saves up to 228.6 ms, 6.4 % of the run"; "" where nobody can say.
[[nodiscard]] std::string saving_text(const model::Report& report, const model::Verdict& verdict);
inline constexpr std::size_t kNameWidth = 120;  ///< columns that the name of a region or kernel takes at most
/// "step: warm-up: the first of 5 ... (saves up to 228.6 ms, 6.4 % of the run)", printable, the name cut in the middle.
[[nodiscard]] std::string verdict_text(const model::Report& report, const model::Verdict& verdict,
                                       std::size_t name_width = kNameWidth);
/// All of them for a terminal, "1. warning: step: ..." and what to try: wrapped at the style's width, each with the
/// command that looks further where `style.explain` is set, else the first one's.
[[nodiscard]] std::string verdict_lines(const model::Report& report, const Style& style);

}  // namespace rangescope::report
