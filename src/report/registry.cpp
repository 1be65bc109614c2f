#include "base/removed.hpp"
#include "base/text.hpp"
#include "report/document/report_document.hpp"
#include "report/exporter.hpp"
#include "report/formats.hpp"

namespace rangescope::report {

std::span<const Exporter> exporters() {
  using enum Exporter::Kind;
  static constexpr Exporter kExporters[] = {
      {kDefaultFormat, "txt", kText, export_terminal},
      {"json", "json", kData, export_json},
      {"jsonl", "jsonl", kData, export_jsonl},
      {"csv", "csv", kSheet, export_csv},
      {"md", "md", kText, export_markdown},
      {"html", "html", kFile, export_html},
      {"perfetto", "pftrace", kFile, export_perfetto},
      {"openmetrics", "prom", kData, export_openmetrics},
      {"collapsed", "collapsed", kData, export_collapsed},
      {"speedscope", "speedscope.json", kData, export_speedscope},
      {"pprof", "pb.gz", kFile, export_pprof},
      {"annotations", "annotations", kText, export_annotations},
      {"problems", "problems", kText, export_problems}};
  return kExporters;
}

base::Result<const Exporter*> find_exporter(std::string_view name) {
  std::vector<std::string> names;
  for (const Exporter& exporter : exporters()) {
    if (exporter.name == name)
      return &exporter;
    names.emplace_back(exporter.name);
  }
  std::string hint = base::removal_hint("-f " + std::string(name));
  if (hint.empty())
    hint = base::did_you_mean(name, names);
  if (hint.empty())
    hint = "Write one of " + base::join(names, ", ");
  return base::fail(base::Code::kUsage,
                    "there is no report format '" + base::printable(name) + "'",
                    "--format",
                    std::move(hint));
}

base::Result<void> export_terminal(const model::Report& report,
                                   const model::Session*,
                                   const Style& style,
                                   Sink& sink) {
  const auto document = TRY(report_document(report, style));
  render_terminal(document, style, sink);
  return {};
}

base::Result<void> export_markdown(const model::Report& report,
                                   const model::Session*,
                                   const Style& style,
                                   Sink& sink) {
  const auto document = TRY(report_document(report, style));
  render_markdown(document, sink);
  return {};
}

}  // namespace rangescope::report
