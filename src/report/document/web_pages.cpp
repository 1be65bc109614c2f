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

}  // namespace rangescope::report
