// A report as a document, and the pages that every run writes: summary.md with summary.svg for a
// quick look, and kernels.md with every kernel by GPU time. They show the report and judge nothing.
#pragma once

#include <string>

#include "base/result.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// What `rangescope report` prints; with Style::cpu the page of one region. kUsage for an unknown
/// column, sort or range.
[[nodiscard]] base::Result<Document> report_document(const model::Report& report,
                                                     const Style& style);
/// The line below the command: "1.2 s", "CPU 1.0 s (user 0.9 s, system 0.1 s)", "NVIDIA H200", ...
[[nodiscard]] std::vector<std::string> run_facts(const model::Report& report);
[[nodiscard]] Document summary_document(const model::Report& report);
[[nodiscard]] Document kernels_document(const model::Report& report);
/// All operators of a framework's trace.
[[nodiscard]] Document operators_document(const model::Report& report);
/// The summary's figure: self time by range, as SVG.
[[nodiscard]] std::string summary_figure(const model::Report& report);

}  // namespace rangescope::report
