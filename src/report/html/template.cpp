// The assembler puts the file in as it is: half a megabyte as a C++ literal costs seconds and standard C++20 has no
// #embed.
#include "report/html/template.hpp"

__asm__(
    ".pushsection .rodata\n"
    ".hidden rangescope_html_begin\n"
    ".global rangescope_html_begin\n"
    "rangescope_html_begin:\n"
    ".incbin \"" RANGESCOPE_HTML_TEMPLATE
    "\"\n"
    ".hidden rangescope_html_end\n"
    ".global rangescope_html_end\n"
    "rangescope_html_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char rangescope_html_begin[];
extern "C" const char rangescope_html_end[];

namespace rangescope::report {

std::string_view html_template() {
  return {rangescope_html_begin, static_cast<std::size_t>(rangescope_html_end - rangescope_html_begin)};
}

}  // namespace rangescope::report
