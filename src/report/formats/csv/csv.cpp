#include "report/formats.hpp"

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

/// What was measured outside every range: no region, so that only its name and its counters are
/// known.
void results_row(Sink& sink, const model::KernelMetrics& result,
                 const std::vector<ColumnView>& values, bool verdict) {
  std::vector<std::string> fields{"", "", "", "", "", "", "result", "", csv_field(result.name), ""};
  for (const ColumnView& value : values) {
    const std::string_view metric = value.tag;
    constexpr std::string_view kMetrics = "metrics.";
    const auto found = metric.starts_with(kMetrics)
                           ? result.metrics.find(std::string(metric.substr(kMetrics.size())))
                           : result.metrics.end();
    const bool known = found != result.metrics.end() && found->second.absent.empty();
    fields.push_back(known ? csv_number(found->second.value) : std::string());
  }
  if (verdict) fields.emplace_back();
  csv_row(sink, fields);
}

std::string said_of(const model::Report& report, std::uint32_t region) {
  std::vector<std::string> texts;
  for (const model::Verdict& one : report.verdict)
    if (one.region == region) texts.push_back(one.text);
  return base::join(texts, "; ");
}

std::string text_of(std::optional<std::uint32_t> number) {
  return number ? std::to_string(*number) : std::string();
}

}  // namespace

base::Result<void> export_csv(const model::Report& report, const model::Session*,
                              const Style& style, Sink& sink) {
  std::vector<ColumnView> values;
  if (style.columns.empty()) {
    for (const std::string& name : value_names(report)) values.push_back({name, name, {}, 0});
  } else {
    values = TRY(columns(report, style));
  }
  auto views = TRY(scopes(report, style));
  std::vector<std::string> fields = {"id",     "parent", "process", "pid",  "thread",
                                     "domain", "kind",   "depth",   "name", "path"};
  for (const ColumnView& value : values) fields.push_back(csv_field(value.tag));
  const bool verdict = style.columns.empty();  // the last column: the region's verdicts
  if (verdict) fields.emplace_back("verdict");
  csv_row(sink, fields);
  for (const ScopeView& scope : views) {
    for (const RowView& shown : scope.rows) {
      const model::Region& region = *shown.region;
      fields = {std::to_string(region.id),
                text_of(indexed(region.parent)),
                text_of(region.process),
                text_of(pid_of(report, region.process)),
                text_of(region.thread),
                csv_field(region.domain),
                std::string(kind_name(region.kind)),
                std::to_string(region.depth),
                csv_field(region.path.empty() ? "" : region.path.back()),
                csv_field(model::path_text(region))};
      for (const ColumnView& value : values) {
        const bool word = value.tag == kBoundTag || value.tag == kSlowestTag;
        fields.push_back(word ? csv_field(cell(region, value))
                              : csv_number(model::value_of(region, value.tag)));
      }
      if (verdict) fields.push_back(csv_field(said_of(report, region.id)));
      csv_row(sink, fields);
    }
  }
  for (const model::KernelMetrics& result : report.unattributed_results)
    results_row(sink, result, values, verdict);
  for (const model::Verdict& one : report.verdict) {  // of the run, or of a kernel
    if (!verdict || one.region) continue;
    fields.assign(10 + values.size(), "");
    fields[6] = "verdict";
    fields[8] = csv_field(one.path);
    fields.push_back(csv_field(one.text));
    csv_row(sink, fields);
  }
  return {};
}

}  // namespace rangescope::report
