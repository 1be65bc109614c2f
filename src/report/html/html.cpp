#include "report/html/html.hpp"

#include "report/html/data.hpp"
#include "report/html/template.hpp"
#include "report/json_writer.hpp"

namespace rangescope::report {

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
                        "src/report/html/template.html", "Build it again: ./dev web");
    sink.write(page.substr(0, place));
    ScriptSink escaped(sink);
    JsonWriter json(escaped);
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
