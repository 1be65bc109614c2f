// Text in Markdown: what Markdown or HTML would take for its own is escaped.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::report {

/// For a table cell or paragraph.
[[nodiscard]] std::string md_escaped(std::string_view text);
/// `text` as inline code; the fence is longer than any run of backticks in it.
[[nodiscard]] std::string md_code(std::string_view text);

}  // namespace rangescope::report
