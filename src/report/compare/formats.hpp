// Formats of a comparison: table, json, csv, md, html, collapsed. They format; they never compute.
#pragma once

#include <span>
#include <string_view>

#include "base/result.hpp"
#include "model/comparison.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

class JsonWriter;

struct ComparisonFormat {
  std::string_view name;  ///< the -f argument
  void (*write)(const model::Comparison&, const Style&, Sink&);
};

[[nodiscard]] std::span<const ComparisonFormat> comparison_formats();
/// kUsage with the nearest name.
[[nodiscard]] base::Result<const ComparisonFormat*> find_comparison_format(std::string_view name);

/// kNothingCaptured where the format or the style asks for samples of the CPU that the sides lack.
[[nodiscard]] base::Result<void> check_sampled(const model::Comparison& comparison, std::string_view format,
                                               const Style& style);

void write_comparison_table(const model::Comparison& comparison, const Style& style, Sink& sink);
void write_comparison_json(const model::Comparison& comparison, const Style& style, Sink& sink);
/// The same object within another document.
void write_comparison_object(const model::Comparison& comparison, JsonWriter& json);
void write_comparison_csv(const model::Comparison& comparison, const Style& style, Sink& sink);
void write_comparison_markdown(const model::Comparison& comparison, const Style& style, Sink& sink);
/// Call chains as difffolded.pl prints them: `range;function;function SAMPLES SAMPLES`, a number each side.
void write_comparison_collapsed(const model::Comparison& comparison, const Style& style, Sink& sink);
void write_comparison_html(const model::Comparison& comparison, const Style& style, Sink& sink);

}  // namespace rangescope::report
