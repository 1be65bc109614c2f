#include "report/document/markup_text.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::report {

std::string markup_escaped(std::string_view text) {
  // U+FFFE and U+FFFF are UTF-8, but no characters of XML.
  const std::string shown = base::replace_all(
      base::replace_all(base::printable(text), "\xEF\xBF\xBE", "\\xef\\xbf\\xbe"), "\xEF\xBF\xBF", "\\xef\\xbf\\xbf");
  std::string out;
  for (const char c : shown) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string md_escaped(std::string_view text) {
  std::string out;
  for (const char c : base::printable(text)) {
    if (std::string_view("\\|`*_[]<>#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string md_code(std::string_view text) {
  const std::string shown = base::printable(text);
  std::size_t longest = 0, run = 0;
  for (const char c : shown) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string pad = longest > 0 ? " " : "";
  return fence + pad + shown + pad + fence;
}

}  // namespace rangescope::report
