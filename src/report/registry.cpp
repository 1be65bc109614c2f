#include <array>

#include "base/text.hpp"
#include "report/exporter.hpp"
#include "report/formats.hpp"

namespace rangescope::report {

std::span<const std::unique_ptr<Exporter>> exporters() {
  static const std::array kExporters = {
      make_terminal(), make_json(),   make_jsonl(),       make_csv(),       make_markdown(),   make_html(),
      make_perfetto(), make_chrome(), make_openmetrics(), make_collapsed(), make_speedscope(), make_pprof(),
  };
  return kExporters;
}

base::Result<const Exporter*> find_exporter(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& exporter : exporters()) {
    if (exporter->name() == name) return exporter.get();
    known.emplace_back(exporter->name());
  }
  std::string hint = base::did_you_mean(name, known);
  if (hint.empty()) hint = "Write one of " + base::join(known, ", ");
  return base::fail(base::Code::kUsage, "there is no report format '" + base::printable(name) + "'", "--format",
                    std::move(hint));
}

}  // namespace rangescope::report
