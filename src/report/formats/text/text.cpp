#include "report/document/report_document.hpp"
#include "report/formats.hpp"

namespace rangescope::report {

base::Result<void> export_terminal(const model::Report& report, const model::Session*, const Style& style, Sink& sink) {
  const auto document = TRY(report_document(report, style));
  render_terminal(document, style, sink);
  return {};
}

base::Result<void> export_markdown(const model::Report& report, const model::Session*, const Style& style, Sink& sink) {
  const auto document = TRY(report_document(report, style));
  render_markdown(document, sink);
  return {};
}

}  // namespace rangescope::report
