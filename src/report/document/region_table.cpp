#include "report/document/region_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/range_expression.hpp"
#include "report/document/shown_rows.hpp"

namespace rangescope::report {
namespace {

using model::Region;
using model::Report;

constexpr std::size_t kDefaultRows = 20;  // a screen
constexpr const char* kWholeRun = model::kWholeRun.data();
constexpr std::size_t kBarWidth = 6;
// Of a table whose rows are metrics: its columns (regions or kernels), and the width of their
// heads.
constexpr std::size_t kMaxTransposedColumns = 8;
constexpr std::size_t kMaxHeadWidth = 24;
constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

/// "████▌ " for a part of the scale; "█████▶" for more than all of it.
std::string bar(double part) {
  static constexpr const char* kEighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
  const auto eighths =
      static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * 8 * kBarWidth));
  std::string text;
  for (std::size_t i = 0; i < kBarWidth; ++i) {
    const std::size_t eighths_left = eighths - std::min(eighths, 8 * i);
    text += kEighths[std::min<std::size_t>(8, eighths_left)];
  }
  if (part <= 1)
    return text;
  const std::string_view last_block = kEighths[8];
  return text.replace(text.size() - last_block.size(), last_block.size(), "▶");
}

/// The bar, and the share in percent.
std::string share_text(const Region& region, double largest_share) {
  const auto share = share_of(region);
  if (!share)
    return "-";
  double part = 0;
  if (largest_share > 0)
    part = *share / largest_share;
  return bar(part) + fmt::format("{:>8}", base::format_share(*share));
}

/// Marks the rows that are not regions.
constexpr std::int64_t kNoInstances = -1;

/// A row that is not a region: the time outside all ranges, or the whole run.
Region pseudo_region(const char* name,
                     double wall_ns,
                     const Report& report,
                     const base::Held<model::GpuWork>& work) {
  Region row;
  row.path = {name};
  row.occurrences = kNoInstances;
  row.wall = {wall_ns,
              kNotKnown,
              {kNotKnown, kNotKnown, kNotKnown, kNotKnown, kNotKnown, kNotKnown},
              kNotKnown,
              kNotKnown};
  if (report.run.duration_ns > 0)
    row.wall.share = wall_ns / report.run.duration_ns;
  row.gpu = work;
  if (row.gpu)
    row.gpu->launch_latency_ns.reset();
  return row;
}

/// A sum of GPU work of which only some instances were recorded.
std::string partial_sum_text(const Region& region, const ColumnView& column, double sum) {
  const bool is_region = region.occurrences != kNoInstances;
  if (!is_region && sum == 0)
    return "-";
  if (!is_region)
    return format_value(sum, column.unit) + "+";  // a lower bound
  if (sum == 0)
    return cell(region, column);
  const std::int64_t recorded = region.gpu->recorded_occurrences;
  if (recorded <= 0)
    return "-";
  if (recorded >= region.occurrences)
    return cell(region, column);
  return format_value(sum / static_cast<double>(recorded), column.unit) + " each";
}

/// The text of a cell. Sums of a timeline that was paused at times are shown per instance.
std::string text_of(const Region& region, const ColumnView& column, double largest_share) {
  if (column.tag == kShareTag)
    return share_text(region, largest_share);
  if (column.tag == kBoundTag && !has_limiter(region.bound))
    return "-";
  if (column.tag == kBoundTag || !region.gpu)
    return cell(region, column);
  const model::GpuWork& gpu = *region.gpu;
  // Graphs that were recorded as a whole: their kernels are unknown.
  if (gpu.graph_launches > 0 && gpu.graph_kernels == 0 && !gpu.partial) {
    if (column.tag == "gpu.kernels") {
      std::string graphs = base::counted(static_cast<std::uint64_t>(gpu.graph_launches), "graph");
      if (gpu.kernels > 0)
        return cell(region, column) + " + " + graphs;
      return graphs;
    }
    if (column.tag == "gpu.kernel_ns" && gpu.kernels == 0)
      return "-";
  }
  const model::Measure* measure = model::find_measure(column.tag);
  const bool is_gpu_sum =
      measure != nullptr && measure->tag.starts_with("gpu.") && model::adds_up(*measure);
  if (!is_gpu_sum || !gpu.partial)
    return cell(region, column);
  return or_dash(measure->get(region),
                 [&](double sum) { return partial_sum_text(region, column, sum); });
}

/// A table under construction: its columns, and the regions of its rows.
struct RegionTable {
  std::vector<ColumnView> columns;
  std::vector<const Region*> regions;  ///< null for a row that is not a region
  Grid grid;                           ///< first the labels, then `columns`
};

ScopeView folded_rows(const Report& report) {
  ScopeView scope{"all processes", {}, 0};
  for (ShownRow& row : shown_rows(report)) {
    const std::size_t count = row.regions();
    scope.rows.push_back(
        {row.region, std::move(row.label), row.depth, row.parent, count, std::move(row.siblings)});
  }
  return scope;
}

/// Turns the tree into a list: labels are paths, rows are sorted by the measure `sort`.
void flatten(std::vector<RowView>& rows, std::string_view sort) {
  for (RowView& row : rows) {
    row.label = base::printable(model::path_text(*row.region));
    if (row.region->kind == model::RangeKind::kStartEnd)
      row.label += model::kStartEndMark;
    row.label += row.siblings;
    row.parent = model::kNone;
    row.depth = 0;
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), [&](const RowView& row) {
    return model::value_of(*row.region, sort).value_or(-1);
  });
}

void drop_column(RegionTable& table, std::size_t column) {
  table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(column));
  for (auto& row : table.grid.rows)
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(column) + 1);
}

/// Removes default columns without information: all zero, all unknown, or equal to the wall time.
void remove_uninformative_columns(RegionTable& table) {
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const std::string& tag = table.columns[i].tag;
    const bool hides_zeros = tag == "gpu.copy_bytes" || tag == "wall_ns.profiler";
    const auto wall = static_cast<std::size_t>(
        std::ranges::find(table.columns, "wall_ns.inclusive", &ColumnView::tag) -
        table.columns.begin());
    const bool is_self_time = tag == "wall_ns.exclusive" && wall < table.columns.size();
    const auto is_informative = [&](const std::vector<GridCell>& row) {
      const std::string& text = row[i + 1].text;
      if (text == "-")
        return false;
      if (tag == kBoundTag && text == "idle")
        return false;  // the GPU's busy share shows that
      if (is_self_time && text == row[wall + 1].text)
        return false;
      const bool is_zero = text.starts_with("0 B") || text.starts_with("0 ns");
      return !(hides_zeros && is_zero);
    };
    if (std::ranges::none_of(table.grid.rows, is_informative))
      drop_column(table, i);
  }
}

std::string metric_cell(const std::map<std::string, model::Metric>& metrics,
                        const std::string& name) {
  const auto found = metrics.find(name);
  if (found == metrics.end() || !found->second.absent.empty())
    return "-";
  return format_value(found->second.value, found->second.unit);
}

/// A table whose rows are metrics and whose columns are regions or kernels.
Grid transposed_metrics(const Report& report,
                        const std::vector<std::string>& heads,
                        const std::vector<const std::map<std::string, model::Metric>*>& metrics) {
  Grid grid({{"metric", false, true}});
  const std::size_t shown = std::min(heads.size(), kMaxTransposedColumns);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto importance = static_cast<int>(shown - i);
    grid.columns.push_back({base::elide(heads[i], kMaxHeadWidth), true, false, importance});
  }
  grid.min_shrunk_width = 36;
  if (heads.size() > shown)
    grid.omitted = base::counted(heads.size() - shown, "more column") + ": -f csv has all";
  for (const model::MetricColumn& column : report.metric_columns) {
    std::vector<GridCell> row = {{base::printable(column.title)}};
    bool has_value = false;
    for (std::size_t i = 0; i < shown; ++i) {
      std::string text = "-";
      if (metrics[i] != nullptr)
        text = metric_cell(*metrics[i], column.name);
      has_value |= text != "-";
      row.push_back({std::move(text)});
    }
    if (has_value)
      grid.add(std::move(row));
  }
  return grid;
}

/// If a metric has a long name, moves all metrics out of the table into one of their own.
Grid move_long_metrics(const Report& report, RegionTable& table) {
  const auto is_metric = [](const ColumnView& column) {
    return column.tag.starts_with("metrics.");
  };
  const auto is_long_metric = [&](const ColumnView& column) {
    return is_metric(column) && base::display_width(column.title) > kLongTitle;
  };
  if (std::ranges::none_of(table.columns, is_long_metric))
    return Grid();
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    if (is_metric(table.columns[i]))
      drop_column(table, i);
  }
  std::vector<std::string> heads;
  std::vector<const std::map<std::string, model::Metric>*> metrics;
  for (std::size_t i = 0; i < table.regions.size(); ++i) {
    const Region* region = table.regions[i];
    if (region == nullptr)
      continue;
    const bool has_metric = std::ranges::any_of(report.metric_columns, [&](const auto& column) {
      return metric_cell(region->metrics, column.name) != "-";
    });
    if (!has_metric)
      continue;
    heads.push_back(table.grid.rows[i].front().text);
    metrics.push_back(&region->metrics);
  }
  return transposed_metrics(report, heads, metrics);
}

base::Tone cell_tone(const std::string& text, const Region* region) {
  const bool is_nothing = text == "-" || text == "0" || text == "0 ns" || text == "0 B";
  return is_nothing || region == nullptr ? base::Tone::kDim : base::Tone::kPlain;
}

/// Appends a row. `real_region` is null for a row that is not a region.
void add_region_row(RegionTable& table,
                    GridCell label,
                    const Region& region,
                    const Region* real_region,
                    double largest_share) {
  std::vector<GridCell> cells = {std::move(label)};
  for (const ColumnView& column : table.columns) {
    std::string text = text_of(region, column, largest_share);
    const base::Tone tone = cell_tone(text, real_region);
    cells.push_back({std::move(text), tone});
  }
  table.grid.add(std::move(cells));
  table.regions.push_back(real_region);
}

/// The last rows of the table over all processes: the time outside all ranges, and the run.
void add_run_rows(const Report& report, RegionTable& table, double largest_share) {
  const bool has_wall = report.outside && report.outside->wall_ns > 0;
  const bool has_work = report.unattributed && !work_sentence(*report.unattributed).empty();
  if (!has_wall && !has_work)
    return;
  const auto add = [&](const char* name, double wall_ns, const base::Held<model::GpuWork>& work) {
    const Region row = pseudo_region(name, wall_ns, report, work);
    add_region_row(table, {name, base::Tone::kDim}, row, nullptr, largest_share);
  };
  double outside_ns = kNotKnown;
  if (report.outside)
    outside_ns = report.outside->wall_ns;
  add(kOutsideRanges, outside_ns, report.unattributed);
  if (report.run.duration_ns > 0)
    add(kWholeRun, report.run.duration_ns, report.total);
}

/// How many rows the table may have, 0 for all.
std::size_t row_limit(const Style& style) {
  if (style.top > 0)
    return style.top;
  if (style.all || style.depth > 0)
    return 0;
  return kDefaultRows;
}

std::string hidden_rows_text(const ScopeView& scope, const Style& style) {
  if (scope.hidden == 0)
    return {};
  const std::string count = base::counted(scope.hidden, "more region");
  if (style.depth > 0)
    return count + ": --depth 0 has all levels";
  if (style.all)
    return count;
  return count + ": --all shows each, --top 50 the largest";
}

/// Drops rows that the style hides, and turns the tree into a list if it says so.
void arrange_rows(ScopeView& scope, const Style& style, std::string_view sort) {
  const bool has_wall = std::ranges::any_of(scope.rows, [](const RowView& row) {
    return model::value_of(*row.region, "wall_ns.inclusive").has_value();
  });
  std::string_view self_time = "gpu.exclusive_kernel_ns", cost = "gpu.kernel_ns";
  if (has_wall) {
    self_time = "wall_ns.exclusive";
    cost = "wall_ns.inclusive";
  }
  if (style.flat) {
    flatten(scope.rows, self_time);
    cost = self_time;
  }
  if (!sort.empty())
    cost = sort;
  choose_rows(scope, style.depth, row_limit(style), sort, cost);
}

/// What a reader should know of the table's regions.
void add_region_notes(const RegionTable& table, const Style& style, Section& section) {
  for (const Region* region : table.regions) {
    if (region == nullptr)
      continue;
    const std::string name = model::path_text(*region);
    const auto add = [&](std::string text) {
      section.add({.text = std::move(text), .name = name});
    };
    if (region->unclosed > 0)
      add(base::format_count(region->unclosed) + " started and never ended: not in the statistics");
    if (!style.explain)
      continue;
    if (region->bound)
      add("limiter " + region->bound->kind + ": " + region->bound->reason);
    for (const std::string& note : region->notes)
      add(note);
  }
}

/// Adds the section of one table and that of its metrics with long names; returns its columns.
/// `is_total`: it is the table over all processes.
base::Result<std::vector<ColumnView>> add_table(const Report& report,
                                                const Style& style,
                                                ScopeView scope,
                                                bool is_total,
                                                std::string_view sort,
                                                std::vector<Section>& sections) {
  RegionTable table;
  table.columns = TRY(columns(report, style));
  arrange_rows(scope, style, sort);
  // Without the time outside ranges: it is often most of the run and would leave them no bar.
  double largest_share = 0;
  for (const RowView& row : scope.rows)
    largest_share = std::max(largest_share, share_of(*row.region).value_or(0));
  for (const RowView& row : scope.rows) {
    GridCell label{row.label, base::Tone::kPlain, row.depth};
    add_region_row(table, std::move(label), *row.region, row.region, largest_share);
  }
  if (is_total)
    add_run_rows(report, table, largest_share);
  Grid metrics;
  if (style.columns.empty()) {
    metrics = move_long_metrics(report, table);
    remove_uninformative_columns(table);
  }
  table.grid.columns = {{"range", false, true}};
  for (const ColumnView& column : table.columns)
    table.grid.columns.push_back({column.title, true, false, column.importance});
  table.grid.omitted = hidden_rows_text(scope, style);
  const bool is_first_table = sections.empty();
  sections.push_back({"Regions: " + scope.title});
  sections.back().add(std::move(table.grid));
  if (!metrics.rows.empty())
    sections.push_back({"Metrics: " + scope.title, true, false, {std::move(metrics)}});
  if (is_first_table)
    add_region_notes(table, style, sections.back());
  return std::move(table.columns);
}

}  // namespace

base::Result<std::vector<Section>> region_sections(const Report& report,
                                                   const Style& style,
                                                   std::vector<ColumnView>& first_columns) {
  const auto sort = TRY(sort_tag(report, style));
  std::vector<Section> sections;
  const auto add = [&](ScopeView scope, bool is_total) -> base::Result<void> {
    auto columns = TRY(add_table(report, style, std::move(scope), is_total, sort, sections));
    if (first_columns.empty())
      first_columns = std::move(columns);
    return {};
  };
  const bool is_folded = !style.all && !report.rows.empty();
  if (is_folded)
    TRY(add(folded_rows(report), true));
  for (ScopeView& scope : all_scopes(report)) {
    // The folded table replaces those of processes, without --all; threads come with --per-thread.
    const Region& first = *scope.rows.front().region;
    const bool is_rank = style.per_rank && first.process;
    if (is_folded && !first.thread && !is_rank)
      continue;
    TRY(add(std::move(scope), !first.process && !first.thread));
  }
  const auto table_count = std::ranges::count_if(
      sections, [](const Section& section) { return section.title.starts_with("Regions"); });
  if (table_count == 1) {
    sections.front().title = "Regions";
    sections.front().quiet = true;
  }
  return sections;
}

namespace {

/// The highest share of its roof that a kernel attained.
std::optional<double> roofline_share(const std::vector<model::RooflinePoint>& points) {
  std::optional<double> highest;
  for (const model::RooflinePoint& point : points) {
    const bool has_roof = point.level == "dram" && point.roof_flop_per_s > 0;
    if (has_roof)
      highest = std::max(highest.value_or(0), point.flop_per_s / point.roof_flop_per_s);
  }
  return highest;
}

/// Rows of kernels, with the columns that at least one of them has a value for.
class KernelTable {
 public:
  KernelTable(const Report& report, std::size_t top)
      : report_(report), shown_(std::min(top, report.kernels.size())) {
    for (std::size_t i = 0; i < shown_; ++i)
      counters_.push_back(counters_of(report, report.kernels[i].name));
    for (const model::MetricColumn& column : report.metric_columns) {
      if (!any([&](const auto& kernel) { return metric_cell(kernel.metrics, column.name) != "-"; }))
        continue;
      metrics_.push_back(&column);
      has_long_metric_ |= base::display_width(column.title) > kLongTitle;
    }
    has_roofline_ =
        any([](const auto& kernel) { return roofline_share(kernel.roofline).has_value(); });
    has_limiter_ = any([](const auto& kernel) { return has_limiter(kernel.bound); });
  }

  [[nodiscard]] KernelGrids grids() const {
    KernelGrids grids;
    Grid& grid = grids.kernels;
    grid = Grid(heads());
    grid.min_shrunk_width = 30;
    if (report_.kernels.size() > shown_)
      grid.omitted =
          base::counted(report_.kernels.size() - shown_, "more kernel") + ": --top-kernels 50";
    for (std::size_t i = 0; i < shown_; ++i)
      grid.add(cells(report_.kernels[i], counters_[i]));
    if (has_long_metric_)
      grids.metrics = metrics_by_kernel();
    return grids;
  }

 private:
  /// Has a kernel counters of which that holds?
  template <class Predicate>
  [[nodiscard]] bool any(Predicate predicate) const {
    return std::ranges::any_of(counters_, [&](const model::KernelCounters* kernel) {
      return kernel != nullptr && predicate(*kernel);
    });
  }

  static std::string label(const model::KernelRow& row) {
    return base::printable(text_or(row.label, text_or(row.short_name, row.name)));
  }

  /// Null where no counters of the kernel were collected.
  static const model::KernelCounters* counters_of(const Report& report, const std::string& name) {
    const auto counters =
        std::ranges::find(report.kernel_counters, name, &model::KernelCounters::name);
    if (counters == report.kernel_counters.end())
      return nullptr;
    return &*counters;
  }

  [[nodiscard]] std::vector<base::Table::Column> heads() const {
    std::vector<base::Table::Column> heads = {{"kernel", false, true},
                                              {"calls"},
                                              {"total"},
                                              {"median", true, false, 1},
                                              {"max", true, false, 1},
                                              {"share"}};
    if (!has_long_metric_) {
      for (const model::MetricColumn* metric : metrics_)
        heads.push_back({base::printable(metric->title), true, false, 2});
    }
    if (has_roofline_)
      heads.push_back({"% of roofline", true, false, 3});
    if (has_limiter_)
      heads.push_back({"bound", true, false, 3});
    return heads;
  }

  /// `counters` may be null.
  [[nodiscard]] std::vector<GridCell> cells(const model::KernelRow& row,
                                            const model::KernelCounters* counters) const {
    std::vector<GridCell> cells = {{label(row)},
                                   {base::format_count(row.calls)},
                                   {base::format_ns(row.total_ns)},
                                   {base::format_ns(row.duration_ns.median)},
                                   {base::format_ns(row.duration_ns.max)},
                                   {base::format_share(row.share)}};
    static const model::KernelCounters kNoCounters;
    const model::KernelCounters& kernel = counters == nullptr ? kNoCounters : *counters;
    if (!has_long_metric_) {
      for (const model::MetricColumn* metric : metrics_)
        cells.push_back({metric_cell(kernel.metrics, metric->name)});
    }
    if (has_roofline_)
      cells.push_back({or_dash(roofline_share(kernel.roofline), base::format_share)});
    if (has_limiter_) {
      std::string limiter = "-";
      if (kernel.bound)
        limiter = kernel.bound->kind;
      cells.push_back({std::move(limiter)});
    }
    return cells;
  }

  [[nodiscard]] Grid metrics_by_kernel() const {
    std::vector<std::string> names;
    std::vector<const std::map<std::string, model::Metric>*> metrics;
    for (std::size_t i = 0; i < shown_; ++i) {
      names.push_back(label(report_.kernels[i]));
      metrics.push_back(nullptr);
      if (counters_[i] != nullptr)
        metrics.back() = &counters_[i]->metrics;
    }
    return transposed_metrics(report_, names, metrics);
  }

  const Report& report_;
  std::size_t shown_;
  std::vector<const model::KernelCounters*> counters_;  ///< of each shown kernel, or null
  std::vector<const model::MetricColumn*> metrics_;
  bool has_long_metric_ = false;
  bool has_roofline_ = false;
  bool has_limiter_ = false;
};

}  // namespace

KernelGrids kernel_grids(const Report& report, std::size_t top) {
  return KernelTable(report, top).grids();
}

namespace {

struct StallRow {
  const model::KernelRow* kernel;  ///< with stalls
  std::string region;
};

/// Does a range inside `region` have all samples of the kernel?
bool has_inner_region(const Report& report, const Region& region, const model::KernelRow& kernel) {
  return std::ranges::any_of(report.regions, [&](const Region& child) {
    if (child.parent != region.id || !child.gpu)
      return false;
    const auto inner = std::ranges::find_if(
        child.gpu->top_kernels,
        [&](const model::KernelRow& row) { return row.stalls && row.name == kernel.name; });
    return inner != child.gpu->top_kernels.end() &&
           inner->stalls->samples == kernel.stalls->samples;
  });
}

/// Kernels with stalls, each in the innermost range; largest possible saving first.
std::vector<StallRow> stall_rows(const Report& report) {
  std::vector<StallRow> rows;
  for (const Region& region : report.regions) {
    if (region.process || region.thread || !region.gpu)
      continue;
    for (const model::KernelRow& kernel : region.gpu->top_kernels) {
      if (kernel.stalls && !has_inner_region(report, region, kernel))
        rows.push_back({&kernel, model::path_text(region)});
    }
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), [](const StallRow& row) {
    return row.kernel->stalls->saves_ns.value_or(0);
  });
  return rows;
}

/// The two most frequent reasons: "41.0 % memory, 12.0 % barrier".
std::string stall_reasons_text(const model::Stalls& stalls) {
  constexpr std::size_t kMaxReasons = 2;
  std::vector<std::string> reasons;
  for (const model::StallShare& reason : stalls.reasons) {
    if (model::is_stall(reason.reason) && reasons.size() < kMaxReasons)
      reasons.push_back(base::format_share(reason.share) + " " + reason.reason);
  }
  return base::join(reasons, ", ");
}

/// The source line with most stalls. Without a line its offset in the kernel.
std::string stall_line_text(const model::KernelRow& kernel) {
  if (kernel.stalls->lines.empty())
    return "-";
  const model::StallLine& line = kernel.stalls->lines.front();
  std::string place = model::place_text(line);
  if (line.line == 0 && line.function == kernel.short_name)
    place.erase(0, line.function.size());
  return base::printable(place) + " (" + base::format_share(line.share) + ")";
}

}  // namespace

Grid stall_grid(const Report& report, std::size_t max_rows) {
  const std::vector<StallRow> rows = stall_rows(report);
  Grid grid({{"kernel", false, true, 0},
             {"in", false, false, 1},
             {"samples", true, false, 2},
             {"warps wait for", false, false, 0},
             {"at", false, false, 0},
             {"saves at most", true, false, 0}});
  for (const StallRow& row : std::span(rows).first(std::min(max_rows, rows.size()))) {
    const model::KernelRow& kernel = *row.kernel;
    grid.add({{base::printable(text_or(kernel.label, kernel.short_name))},
              {base::printable(row.region)},
              {base::format_count(kernel.stalls->samples)},
              {stall_reasons_text(*kernel.stalls)},
              {stall_line_text(kernel)},
              {or_dash(kernel.stalls->saves_ns, base::format_ns)}});
  }
  if (rows.size() > grid.rows.size())
    grid.omitted =
        base::counted(rows.size() - grid.rows.size(), "more kernel") + ": -f json has all";
  return grid;
}

namespace {

std::string bandwidth_text(const std::optional<double>& bytes_per_s) {
  return or_dash(bytes_per_s, [](double value) { return base::format_si(value, "B/s"); });
}

std::string range_text(const std::vector<std::string>& path) {
  if (path.empty())
    return "-";
  return base::join(path, " > ");
}

/// Names, the range, then numbers.
Grid communication_grid(std::initializer_list<const char*> heads) {
  Grid grid;
  for (const char* head : heads) {
    const bool is_name = grid.columns.empty();
    const bool is_number = grid.columns.size() > 1;
    const int importance = is_name ? 0 : 2;
    grid.columns.push_back({head, is_number, is_name, importance});
  }
  return grid;
}

/// "rank 3, 12 of 40": the rank that arrived last most often.
std::string last_rank_text(const model::Collective& collective) {
  const auto last = std::ranges::max_element(
      collective.by_rank, std::ranges::less(), [](const auto& rank) { return rank.last; });
  if (last == collective.by_rank.end())
    return "-";
  return fmt::format("rank {}, {} of {}",
                     last->rank,
                     base::format_count(last->last),
                     base::format_count(collective.calls));
}

Grid collective_grid(const Report& report, std::size_t max_rows) {
  Grid grid = communication_grid({"collective",
                                  "in",
                                  "bytes",
                                  "ranks",
                                  "calls",
                                  "transfer",
                                  "wait",
                                  "overlapped",
                                  "bus",
                                  "last"});
  grid.columns.back().importance = 3;  // whom the others wait for stays longer than rates
  const std::size_t shown = std::min(max_rows, report.collectives.size());
  for (const model::Collective& row : std::span(report.collectives).first(shown)) {
    grid.add({{row.operation},
              {range_text(row.path)},
              {base::format_bytes(row.bytes)},
              {std::to_string(row.ranks)},
              {base::format_count(row.calls)},
              {base::format_ns(row.transfer_ns)},
              {base::format_ns(row.wait_ns)},
              {or_dash(row.hidden_share, base::format_share)},
              {bandwidth_text(row.bus_bytes_per_s)},
              {last_rank_text(row)}});
  }
  return grid;
}

Grid message_grid(const Report& report, std::size_t max_rows) {
  Grid grid = communication_grid({"messages",
                                  "in",
                                  "bytes",
                                  "calls",
                                  "transfer",
                                  "late sender",
                                  "late receiver",
                                  "bandwidth"});
  const std::size_t shown = std::min(max_rows, report.messages.size());
  for (const model::PointToPoint& row : std::span(report.messages).first(shown)) {
    grid.add({{fmt::format("rank {} to {}", row.from, row.to)},
              {range_text(row.path)},
              {base::format_bytes(row.bytes)},
              {base::format_count(row.calls)},
              {base::format_ns(row.transfer_ns)},
              {base::format_ns(row.late_sender_ns)},
              {base::format_ns(row.late_receiver_ns)},
              {bandwidth_text(row.bytes_per_s)}});
  }
  return grid;
}

}  // namespace

std::vector<Section> communication_sections(const Report& report, std::size_t max_rows) {
  std::vector<Section> sections;
  const auto add = [&](const char* title, const char* noun, Grid grid, std::size_t total) {
    if (grid.rows.empty())
      return;
    if (total > grid.rows.size())
      grid.omitted = base::counted(total - grid.rows.size(), noun) + ": -f json has all";
    sections.push_back({title, true, false, {std::move(grid)}});
  };
  add("Collectives",
      "more collective",
      collective_grid(report, max_rows),
      report.collectives.size());
  add("Messages", "more pair", message_grid(report, max_rows), report.messages.size());
  return sections;
}

Grid operator_grid(const Report& report, std::size_t max_rows) {
  const bool has_gpu_times =
      !report.operators.empty() && !std::isnan(report.operators.front().gpu_ns);
  Grid grid({{"operator", false, true}, {"calls"}, {"CPU", true, false, 1}, {"CPU self"}});
  if (has_gpu_times)
    grid.columns.insert(grid.columns.end(), {{"GPU", true, false, 1}, {"GPU self"}});
  const std::size_t shown = std::min(max_rows, report.operators.size());
  for (const model::OperatorRow& row : std::span(report.operators).first(shown)) {
    std::vector<GridCell> cells = {{row.name},
                                   {base::format_count(row.calls)},
                                   {base::format_ns(row.cpu_ns)},
                                   {base::format_ns(row.exclusive_cpu_ns)}};
    if (has_gpu_times) {
      cells.push_back({base::format_ns(row.gpu_ns)});
      cells.push_back({base::format_ns(row.exclusive_gpu_ns)});
    }
    grid.add(std::move(cells));
  }
  if (report.operators.size() > shown)
    grid.omitted = base::counted(report.operators.size() - shown, "more operator");
  return grid;
}

}  // namespace rangescope::report
