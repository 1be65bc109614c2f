// Text in HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::report {

// Text in Markdown: what Markdown or HTML would take for its own is escaped.

/// For a table cell or paragraph.
[[nodiscard]] std::string md_escaped(std::string_view text);
/// `text` as inline code; the fence is longer than any run of backticks in it.
[[nodiscard]] std::string md_code(std::string_view text);

/// Fit for an element or an attribute in double quotes: & < > " ' as entities, control characters and what is not UTF-8
/// made printable first (XML 1.0 has no way to write them).
[[nodiscard]] std::string markup_escaped(std::string_view text);

}  // namespace rangescope::report
