// Formats of a comparison (table, json, csv, md, html, collapsed) and of the gate's answer. They
// format and compute nothing.
#pragma once

#include <span>
#include <string_view>

#include "base/result.hpp"
#include "model/gate.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

using WriteComparison = void(const model::Comparison& comparison, const Style& style, Sink& sink);

struct ComparisonFormat {
  std::string_view name;       ///< the -f argument
  std::string_view extension;  ///< of the file of -o that chooses it
  WriteComparison* write;
};

[[nodiscard]] std::span<const ComparisonFormat> comparison_formats();
/// kUsage with the nearest name.
[[nodiscard]] base::Result<const ComparisonFormat*> find_comparison_format(std::string_view name);

/// kNothingCaptured if the format or the style needs samples of the CPU that the sides lack.
[[nodiscard]] base::Result<void> check_sampled(const model::Comparison& comparison,
                                               std::string_view format,
                                               const Style& style);

WriteComparison write_comparison_json, write_comparison_csv, write_comparison_html;
/// Call chains as difffolded.pl prints them: `range;function;function SAMPLES SAMPLES`, one number
/// for each side.
WriteComparison write_comparison_collapsed;

// The gate's answer: a table, JSON, JUnit XML for build servers, Markdown for a pull request.

using WriteGate = void(const model::Gate& gate, const Style& style, Sink& sink);
WriteGate write_gate_table, write_gate_json, write_gate_junit, write_gate_markdown;

}  // namespace rangescope::report
