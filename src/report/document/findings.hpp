// Verdicts, findings of the doctor, the table of data losses and predictions, as people read them.
// Reports, `rangescope doctor` and status files share these texts.
#pragma once

#include <span>
#include <string>

#include "model/finding.hpp"
#include "model/report.hpp"
#include "report/document/document.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

// The table of losses (model/loss_kinds.hpp) as a page: `rangescope help losses` and
// docs/manual/losses.md.

/// Markdown.
[[nodiscard]] std::string loss_page();

/// `fail: id: found`, then `why:`, `hint:` and a `try:` for each command, as far as it has them.
void add_finding(Section& section, const model::Finding& finding);
/// The same for a terminal.
[[nodiscard]] std::string finding_text(const model::Finding& finding, bool color);

/// The key "findings" with a list of objects.
void write_findings(JsonWriter& json, std::span<const model::Finding> findings);

/// "saves up to 228.6 ms, 6.4 % of the run"; "" if the saving is unknown or in the verdict's text.
[[nodiscard]] std::string saving_text(const model::Report& report, const model::Verdict& verdict);
/// "step: warm-up: the first of 5 ... (saves up to 228.6 ms, 6.4 % of the run)", printable; a
/// range's name longer than `name_width` is cut in the middle.
[[nodiscard]] std::string verdict_text(const model::Report& report,
                                       const model::Verdict& verdict,
                                       std::size_t name_width = 120);
/// All verdicts, worst first: "1. warning: step: ...", what to try and the command for more detail.
/// A terminal shows only the first command, unless `style.explain` is set.
[[nodiscard]] Section verdict_section(const model::Report& report, const Style& style);

/// "the run takes 203 ms instead of 414 ms (saves 211 ± 8 ms, 51.0 %)", and the regions whose
/// savings are upper bounds; empty without --what-if.
[[nodiscard]] Section what_if_section(const model::Report& report);

}  // namespace rangescope::report
