#include "report/document/shown_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/module_name.hpp"
#include "model/table_row.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::Region;
using model::TableRow;

/// "model (LlamaModel)" is "model": in a chain only the last module shows its type.
std::string without_type(std::string label, const Region& region) {
  if (region.module && label.ends_with(')'))
    label.resize(model::without_class(label).size());
  return label;
}

}  // namespace

std::size_t ShownRow::regions() const {
  std::size_t count = row->members.size();
  for (const TableRow* outer : joined)
    count += outer->members.size();
  return count;
}

bool has_folded_rows(const model::Report& report) {
  return std::ranges::any_of(
      report.rows, [](const TableRow& row) { return row.merged.has_value() || row.joins_child; });
}

std::vector<ShownRow> shown_rows(const model::Report& report) {
  std::vector<ShownRow> shown;
  std::vector<std::uint32_t> shown_as(report.rows.size(), model::kNone);  // index in `shown`
  ShownRow chain;
  std::int64_t siblings = 1;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const TableRow& row = report.rows[i];
    const Region& region = model::region_of(report, row);
    const bool is_top = row.parent == model::kNone;
    const Region* above = is_top ? nullptr : &model::region_of(report, report.rows[row.parent]);
    if (chain.joined.empty() && !is_top) {
      chain.parent = shown_as[row.parent];
      chain.depth = shown[chain.parent].depth + 1;
    }
    const std::string label = label_of(region, above);
    siblings = std::max(siblings, row.siblings);
    if (row.joins_child) {
      chain.label += without_type(label, region) + " > ";
      chain.joined.push_back(&row);
      continue;
    }
    chain.label += label;
    if (siblings > 1)
      chain.siblings = fmt::format(" x{}", siblings);
    chain.label += chain.siblings;
    chain.row = &row;
    chain.region = &region;
    shown_as[i] = static_cast<std::uint32_t>(shown.size());
    shown.push_back(std::move(chain));
    chain = {};
    siblings = 1;
  }
  return shown;
}

}  // namespace rangescope::report
