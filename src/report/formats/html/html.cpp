#include "report/formats.hpp"

#include "report/document/json_writer.hpp"
#include "report/document/web_pages.hpp"
#include "report/formats/html/data.hpp"

namespace rangescope::report {

base::Result<void> export_html(const model::Report& report, const model::Session* session, const Style&, Sink& sink) {
  const std::string_view page = html_template();
  const auto place = page.find(kDataPlace);
  if (place == std::string_view::npos)
    return base::fail(base::Code::kInternal, "the embedded page has no place for the data",
                      "src/report/formats/html/template.html", "Build it again: ./dev web");
  sink.write(page.substr(0, place));
  ScriptSink escaped(sink);
  JsonWriter json(escaped, true);
  write_html_data(report, session, json);
  json.finish();
  sink.write(page.substr(place + kDataPlace.size()));
  return {};
}

}  // namespace rangescope::report
