// Findings of the doctor as text and as JSON: one place for reports, `rangescope doctor` and status files.
#pragma once

#include <span>
#include <string>

#include "model/finding.hpp"
#include "report/document/document.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

// The table of losses (model/loss_kinds.hpp) as a page: `rangescope help losses` and docs/manual/losses.md.

/// Markdown.
[[nodiscard]] std::string loss_page();

/// `fail: id: found`, then `why:`, `hint:` and a `try:` for each command, each where there is one.
void add_finding(Section& section, const model::Finding& finding);
/// The same for a terminal.
[[nodiscard]] std::string finding_text(const model::Finding& finding, bool color);

/// The key "findings" with a list of objects.
void write_findings(JsonWriter& json, std::span<const model::Finding> findings);

}  // namespace rangescope::report
