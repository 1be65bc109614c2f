// The assembler puts the files in as they are: half a megabyte as a C++ literal costs seconds and standard C++20 has no
// #embed.
#include "report/document/web_pages.hpp"

#define EMBED(name, path)        \
  __asm__(                       \
      ".pushsection .rodata\n"   \
      ".hidden rangescope_" name \
      "_begin\n"                 \
      ".global rangescope_" name \
      "_begin\n"                 \
      "rangescope_" name         \
      "_begin:\n"                \
      ".incbin \"" path          \
      "\"\n"                     \
      ".hidden rangescope_" name \
      "_end\n"                   \
      ".global rangescope_" name \
      "_end\n"                   \
      "rangescope_" name         \
      "_end:\n"                  \
      ".byte 0\n"                \
      ".popsection\n")
EMBED("html", RANGESCOPE_HTML_TEMPLATE);
EMBED("flame", RANGESCOPE_HTML_FLAME);
#undef EMBED

extern "C" const char rangescope_html_begin[], rangescope_html_end[], rangescope_flame_begin[], rangescope_flame_end[];

namespace rangescope::report {

std::string_view html_template() {
  return {rangescope_html_begin, static_cast<std::size_t>(rangescope_html_end - rangescope_html_begin)};
}

std::string_view html_flame() {
  return {rangescope_flame_begin, static_cast<std::size_t>(rangescope_flame_end - rangescope_flame_begin)};
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
