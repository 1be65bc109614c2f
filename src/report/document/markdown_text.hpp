// Text in Markdown: what Markdown or HTML would take for its own is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/exporter.hpp"

namespace rangescope::report {

/// For a table cell or paragraph.
[[nodiscard]] std::string md_escaped(std::string_view text);
/// `text` as inline code; the fence is longer than any run of backticks in it.
[[nodiscard]] std::string md_code(std::string_view text);
/// A row of a table.
void md_row(Sink& sink, const std::vector<std::string>& cells);
/// The line below the head: one column of text, then numbers.
void md_rule(Sink& sink, std::size_t numbers);

}  // namespace rangescope::report
