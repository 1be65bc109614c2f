#include "report/document/web_pages.hpp"

#include "base/embedded.hpp"

RANGESCOPE_EMBED(html, RANGESCOPE_HTML_TEMPLATE);
RANGESCOPE_EMBED(flame, RANGESCOPE_HTML_FLAME);
RANGESCOPE_EMBED(comparison, RANGESCOPE_HTML_COMPARISON);

namespace rangescope::report {

std::string_view html_template() {
  return rangescope_html;
}

std::string_view html_flame() {
  return rangescope_flame;
}

std::string_view html_comparison() {
  return rangescope_comparison;
}

}  // namespace rangescope::report
