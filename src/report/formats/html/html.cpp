#include "report/formats.hpp"

#include "report/document/json_writer.hpp"
#include "report/document/web_pages.hpp"
#include "report/formats/html/data.hpp"

namespace rangescope::report {

namespace {

class Html final : public Exporter {
 public:
  [[nodiscard]] std::string_view name() const override { return "html"; }
  [[nodiscard]] std::string_view extension() const override { return "html"; }
  [[nodiscard]] Kind kind() const override { return Kind::kFile; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session* session, const Style&,
                                         Sink& sink) const override {
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
};

}  // namespace

std::unique_ptr<Exporter> make_html() {
  return std::make_unique<Html>();
}

}  // namespace rangescope::report
