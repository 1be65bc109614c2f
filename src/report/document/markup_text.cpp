#include "report/document/markup_text.hpp"

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

}  // namespace rangescope::report
