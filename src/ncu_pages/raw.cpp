// --page raw: every metric of every result; as CSV one column a metric, names and units in the first two rows.
#include <algorithm>
#include <cmath>

#include "ncu_pages/format.hpp"
#include "ncu_pages/head.hpp"
#include "ncu_pages/pages.hpp"

namespace rangescope::ncu_pages {
namespace {

constexpr std::uint32_t kNoColumn = UINT32_MAX;
constexpr std::size_t kFlush = 64 * 1024;

/// Containers that ncu resolves into other metrics stay hidden.
bool is_hidden(std::string_view name) {
  return name.empty() || is_container(name);
}

class RawCsv {
 public:
  RawCsv(const Selection& selection, const PageOptions& options, const Out& out, NameFilter metrics)
      : selection_(selection),
        options_(options),
        out_(out),
        format_(options),
        filter_(std::move(metrics)),
        head_(selection.file(), options) {}

  void print() {
    column_of_.assign(selection_.file().string_count(), kNoColumn);
    selection_.for_each({.sections = false, .rules = false},
                        [&](std::uint32_t, const Result& result) { survey(result); });
    settle();
    header();
    selection_.for_each({.sections = false, .rules = false},
                        [&](std::uint32_t id, const Result& result) { row(id, result); });
    out_(text_);
  }

 private:
  struct Column {
    std::string_view name;
    std::string unit;  // as shown
    double factor = 1;
    double largest = 0;
    std::string base_unit;
  };

  void survey(const Result& result) {
    head_.see(result);
    for (const MetricEntry& metric : result.metrics) {
      if (metric.name >= column_of_.size()) continue;
      std::uint32_t& at = column_of_[metric.name];
      if (at == kNoColumn) {
        const std::string_view name = selection_.file().string(metric.name);
        if (is_hidden(name) || !filter_.matches(name)) {
          at = kNoColumn - 1;
          continue;
        }
        at = static_cast<std::uint32_t>(columns_.size());
        columns_.push_back({name, {}, 1, 0, model::metric_unit(name, options_.spelling)});
      }
      if (at == kNoColumn - 1 || !metric.value.is_number()) continue;
      const double value = std::abs(metric.value.as_double());
      if (value > columns_[at].largest && std::isfinite(value)) columns_[at].largest = value;
    }
  }

  /// Sorts the columns by name (equal names of several string tables become one) and chooses their scales.
  void settle() {
    std::vector<std::uint32_t> order(columns_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::uint32_t i) { return columns_[i].name; });
    std::vector<Column> sorted;
    std::vector<std::uint32_t> now(columns_.size());
    for (const std::uint32_t i : order) {
      if (sorted.empty() || sorted.back().name != columns_[i].name) sorted.push_back(columns_[i]);
      sorted.back().largest = std::max(sorted.back().largest, columns_[i].largest);
      now[i] = static_cast<std::uint32_t>(sorted.size() - 1);
    }
    for (std::uint32_t& at : column_of_) at = at < now.size() ? now[at] : kNoColumn;
    columns_ = std::move(sorted);
    for (Column& column : columns_) {
      Scale scale{column.base_unit, 1};
      if (!options_.base_units) scale = auto_scale(column.base_unit, column.largest, options_.spelling);
      column.unit = scale.unit;
      column.factor = scale.factor;
    }
  }

  void header() {
    head_.names(text_);
    for (const Column& column : columns_) csv_cell(text_, column.name);
    text_ += '\n';
    head_.blanks(text_);
    for (const Column& column : columns_) csv_cell(text_, column.unit);
    text_ += '\n';
  }

  void value(const Column& column, const MetricEntry& metric) {
    if (!metric.value.is_number() || options_.base_units || column.unit.empty() || column.largest == 0) {
      format_.plain(cell_, metric.value);
    } else if (column.factor == 1 && metric.value.is_integer()) {
      cell_ += std::to_string(metric.value.integer);
    } else {
      Formatter::six(cell_, metric.value.as_double() * (1 / column.factor));
    }
    append_instances(cell_, metric, format_, options_.instances);
  }

  void row(std::uint32_t id, const Result& result) {
    cells_.assign(columns_.size(), nullptr);
    for (const MetricEntry& metric : result.metrics) {
      if (metric.name < column_of_.size() && column_of_[metric.name] != kNoColumn)
        cells_[column_of_[metric.name]] = &metric;
    }
    head_.values(text_, id, result);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      cell_.clear();
      if (cells_[i] != nullptr) value(columns_[i], *cells_[i]);
      csv_cell(text_, cell_);
    }
    text_ += '\n';
    if (text_.size() > kFlush) {
      out_(text_);
      text_.clear();
    }
  }

  const Selection& selection_;
  const PageOptions& options_;
  const Out& out_;
  Formatter format_;
  NameFilter filter_;
  CsvHead head_;
  std::vector<std::uint32_t> column_of_;  // by string id
  std::vector<Column> columns_;
  std::vector<const MetricEntry*> cells_;
  std::string text_, cell_;
};

}  // namespace

base::Result<void> print_raw(const Selection& selection, const PageOptions& options, const Out& out) {
  auto metrics = TRY(NameFilter::make(options.metrics, "--metrics"));
  if (options.csv) {
    RawCsv(selection, options, out, std::move(metrics)).print();
    return {};
  }
  const Formatter format(options);
  TextHead head(selection.file(), options);
  selection.for_each({.sections = false, .rules = false}, [&](std::uint32_t, const Result& result) {
    std::string text;
    head.print(text, result, head.labels().of(result));
    TextTable table({"Metric Name", "Metric Unit", "Metric Value"}, 2);
    table.widen({0, 15, 20});
    std::vector<const MetricEntry*> sorted;
    for (const MetricEntry& metric : result.metrics) {
      const std::string_view name = selection.file().string(metric.name);
      if (!is_hidden(name) && metrics.matches(name)) sorted.push_back(&metric);
    }
    std::ranges::stable_sort(sorted, {},
                             [&](const MetricEntry* metric) { return selection.file().string(metric->name); });
    for (const MetricEntry* metric : sorted) {
      const std::string_view name = selection.file().string(metric->name);
      auto shown = format.details(metric->value, model::metric_unit(name, options.spelling));
      append_instances(shown.value, *metric, format, options.instances);
      table.add({std::string(name), shown.unit, shown.value});
    }
    table.print(text, TextTable::Rules::kBelowHeads);
    text += '\n';
    out(text);
  });
  return {};
}

}  // namespace rangescope::ncu_pages
