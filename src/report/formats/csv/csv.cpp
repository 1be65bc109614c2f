#include "report/formats.hpp"

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

/// The columns before the values.
constexpr std::string_view kCsvColumns[] = {
    "id", "parent", "process", "pid", "thread", "domain", "kind", "depth", "name", "path"};
constexpr std::size_t kKindColumn = 6, kNameColumn = 8;

/// A row that is not a region.
std::vector<std::string> row_of_kind(const char* kind, const std::string& name) {
  std::vector<std::string> fields(std::size(kCsvColumns));
  fields[kKindColumn] = kind;
  fields[kNameColumn] = csv_field(name);
  return fields;
}

/// Counters of a kernel outside every range: only its name and its metrics are known.
std::vector<std::string> result_fields(const model::KernelMetrics& result,
                                       const std::vector<ColumnView>& columns) {
  constexpr std::string_view kMetrics = "metrics.";
  std::vector<std::string> fields = row_of_kind("result", result.name);
  for (const ColumnView& column : columns) {
    std::string value;
    if (column.tag.starts_with(kMetrics)) {
      const auto metric = result.metrics.find(column.tag.substr(kMetrics.size()));
      const bool has_value = metric != result.metrics.end() && metric->second.absent.empty();
      if (has_value)
        value = csv_number(metric->second.value);
    }
    fields.push_back(std::move(value));
  }
  return fields;
}

std::string verdicts_of(const model::Report& report, std::uint32_t region) {
  std::vector<std::string> texts;
  for (const model::Verdict& verdict : report.verdict)
    if (verdict.region == region)
      texts.push_back(verdict.text);
  return base::join(texts, "; ");
}

std::string text_of(std::optional<std::uint32_t> number) {
  if (!number)
    return {};
  return std::to_string(*number);
}

std::vector<std::string> region_fields(const model::Report& report,
                                       const model::Region& region,
                                       const std::vector<ColumnView>& columns) {
  std::vector<std::string> fields = {std::to_string(region.id),
                                     text_of(indexed(region.parent)),
                                     text_of(region.process),
                                     text_of(pid_of(report, region.process)),
                                     text_of(region.thread),
                                     csv_field(region.domain),
                                     std::string(model::range_kind_key(region.kind)),
                                     std::to_string(region.depth),
                                     csv_field(region.path.empty() ? "" : region.path.back()),
                                     csv_field(model::path_text(region))};
  for (const ColumnView& column : columns) {
    const bool is_text = column.tag == kBoundTag || column.tag == kSlowestTag;
    if (is_text)
      fields.push_back(csv_field(cell(region, column)));
    else
      fields.push_back(csv_number(model::value_of(region, column.tag)));
  }
  return fields;
}

}  // namespace

base::Result<void> export_csv(const model::Report& report,
                              const model::Session*,
                              const Style& style,
                              Sink& sink) {
  // Without --columns: every value, and a last column with the region's verdicts.
  const bool has_verdicts = style.columns.empty();
  std::vector<ColumnView> values;
  if (has_verdicts) {
    for (const std::string& name : value_names(report))
      values.push_back({name, name, {}, 0});
  } else {
    values = TRY(columns(report, style));
  }
  auto views = TRY(scopes(report, style));
  const auto write_row = [&](std::vector<std::string> fields, const std::string& verdict) {
    if (has_verdicts)
      fields.push_back(csv_field(verdict));
    csv_row(sink, fields);
  };
  std::vector<std::string> heads(std::begin(kCsvColumns), std::end(kCsvColumns));
  for (const ColumnView& value : values)
    heads.push_back(csv_field(value.tag));
  write_row(heads, "verdict");
  for (const ScopeView& scope : views) {
    for (const RowView& row : scope.rows)
      write_row(region_fields(report, *row.region, values), verdicts_of(report, row.region->id));
  }
  for (const model::KernelMetrics& result : report.unattributed_results)
    write_row(result_fields(result, values), "");
  if (!has_verdicts)
    return {};
  for (const model::Verdict& verdict : report.verdict) {  // those of the run or a kernel
    if (verdict.region)
      continue;
    std::vector<std::string> fields = row_of_kind("verdict", verdict.path);
    fields.resize(heads.size());
    write_row(std::move(fields), verdict.text);
  }
  return {};
}

}  // namespace rangescope::report
