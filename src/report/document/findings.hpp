// Verdicts, findings of the doctor and the table of losses, as people read them: one place for
// reports, `rangescope doctor` and status files.
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

/// `fail: id: found`, then `why:`, `hint:` and a `try:` for each command, each where there is one.
void add_finding(Section& section, const model::Finding& finding);
/// The same for a terminal.
[[nodiscard]] std::string finding_text(const model::Finding& finding, bool color);

/// The key "findings" with a list of objects.
void write_findings(JsonWriter& json, std::span<const model::Finding> findings);

/// "saves up to 228.6 ms, 6.4 % of the run"; "" where nobody can say.
[[nodiscard]] std::string saving_text(const model::Report& report, const model::Verdict& verdict);
/// "step: warm-up: the first of 5 ... (saves up to 228.6 ms, 6.4 % of the run)", printable, the
/// name cut in the middle.
[[nodiscard]] std::string verdict_text(const model::Report& report, const model::Verdict& verdict,
                                       std::size_t name_width = 120);
/// All of them, worst first: "1. warning: step: ..." with what to try, and the command that looks
/// further: the first one's, on a terminal the others' where `style.explain` is set.
[[nodiscard]] Section verdict_section(const model::Report& report, const Style& style);

/// "the run takes 203 ms instead of 414 ms (saves 211 ± 8 ms, 51.0 %)", and regions of which
/// that is a bound; empty where nothing was supposed.
[[nodiscard]] Section what_if_section(const model::Report& report);

}  // namespace rangescope::report
