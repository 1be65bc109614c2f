#include "report/formats.hpp"

#include "report/document/report_document.hpp"

namespace rangescope::report {
namespace {

class Text final : public Exporter {
 public:
  explicit Text(bool markdown) : markdown_(markdown) {}
  [[nodiscard]] std::string_view name() const override { return markdown_ ? "md" : kDefaultFormat; }
  [[nodiscard]] std::string_view extension() const override { return markdown_ ? "md" : "txt"; }
  [[nodiscard]] Kind kind() const override { return Kind::kText; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session*, const Style& style,
                                         Sink& sink) const override {
    const auto document = report_document(report, style);
    if (!document) return tl::make_unexpected(document.error());
    markdown_ ? render_markdown(*document, sink) : render_terminal(*document, style, sink);
    return {};
  }

 private:
  bool markdown_;
};

}  // namespace

std::unique_ptr<Exporter> make_terminal() {
  return std::make_unique<Text>(false);
}

std::unique_ptr<Exporter> make_markdown() {
  return std::make_unique<Text>(true);
}

}  // namespace rangescope::report
