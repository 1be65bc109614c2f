#include "report/document/web_pages.hpp"

#include "base/embedded.hpp"

RANGESCOPE_EMBED(html, RANGESCOPE_HTML_TEMPLATE);
RANGESCOPE_EMBED(flame, RANGESCOPE_HTML_FLAME);

namespace rangescope::report {

std::string_view html_template() {
  return rangescope_html;
}

std::string_view html_flame() {
  return rangescope_flame;
}

void ScriptSink::write(std::string_view bytes) {
  std::string joined;
  if (!kept_.empty()) {
    joined = kept_;
    joined += bytes;
    kept_.clear();
    bytes = joined;
  }
  buffer_.clear();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    switch (c) {
      case '<': buffer_ += "\\u003c"; break;
      case '>': buffer_ += "\\u003e"; break;
      case '&': buffer_ += "\\u0026"; break;
      case '\xE2':
        if (bytes.size() - i < 3) {
          kept_ = bytes.substr(i);
          i = bytes.size();
          break;
        }
        if (bytes[i + 1] == '\x80' && (bytes[i + 2] == '\xA8' || bytes[i + 2] == '\xA9')) {
          buffer_ += bytes[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
          i += 2;
          break;
        }
        [[fallthrough]];
      default: buffer_ += c;
    }
  }
  to_.write(buffer_);
}

}  // namespace rangescope::report
