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

constexpr std::size_t kDefaultRows = 20;  // where no number is given: a screen
constexpr const char* kWholeRun = model::kWholeRun.data();
constexpr std::size_t kBarWidth = 6;
constexpr std::size_t kMostTurned = 8;  // regions or kernels beside each other in a turned table
constexpr std::size_t kMostLabel = 24;  // columns of a head there
constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

/// "████▌ " of a share of the largest one; "█████▶" of what is longer than the scale.
std::string bar(double part) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
  const auto eighths =
      static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * 8 * kBarWidth));
  std::string text;
  for (std::size_t i = 0; i < kBarWidth; ++i) {
    const std::size_t of_this = std::min<std::size_t>(8, eighths - std::min(eighths, 8 * i));
    text += of_this == 0 ? " " : i + 1 == kBarWidth && part > 1 ? "▶" : kEighths[of_this];
  }
  return text;
}

/// What is no region: what lies outside all ranges, and the run.
Region row_of(const char* name, double wall, const Report& report,
              const base::Held<model::GpuWork>& work) {
  Region out;
  out.path = {name};
  out.occurrences = -1;
  out.wall = {wall,
              kNotKnown,
              {kNotKnown, kNotKnown, kNotKnown, kNotKnown, kNotKnown, kNotKnown},
              kNotKnown,
              kNotKnown};
  if (report.run.duration_ns > 0) out.wall.share = wall / report.run.duration_ns;
  out.gpu = work;
  if (out.gpu) out.gpu->launch_latency_ns.reset();
  return out;
}

/// A cell of a row, with what a paused timeline makes of sums: those of one occurrence.
std::string text_of(const Region& region, const ColumnView& column, double largest_share) {
  if (column.tag == kShareTag) {
    const auto share = share_of(region);
    return share ? bar(largest_share > 0 ? *share / largest_share : 0) +
                       fmt::format("{:>8}", base::format_share(*share))
                 : std::string("-");
  }
  if (column.tag == kBoundTag && region.bound && region.bound->kind == "unknown") return "-";
  const model::Measure* measure = model::find_measure(column.tag);
  // Graphs recorded as a whole: which kernels they ran is not known.
  if (region.gpu && region.gpu->graph_launches > 0 && region.gpu->graph_kernels == 0 &&
      !region.gpu->partial) {
    const std::string graphs =
        base::counted(static_cast<std::uint64_t>(region.gpu->graph_launches), "graph");
    if (column.tag == "gpu.kernels")
      return region.gpu->kernels > 0 ? cell(region, column) + " + " + graphs : graphs;
    if (column.tag == "gpu.kernel_ns" && region.gpu->kernels == 0) return "-";
  }
  const bool sum =
      measure != nullptr && measure->tag.starts_with("gpu.") && model::adds_up(*measure);
  if (!sum || !region.gpu || !region.gpu->partial) return cell(region, column);
  const auto value = measure->get(region);
  if (!value) return "-";
  if (*value == 0) return region.occurrences < 0 ? "-" : cell(region, column);
  if (region.occurrences < 0)
    return format_value(*value, column.unit) + "+";  // outside ranges: what was seen of it
  if (region.gpu->recorded_occurrences <= 0) return "-";
  if (region.gpu->recorded_occurrences >= region.occurrences) return cell(region, column);
  return format_value(*value / static_cast<double>(region.gpu->recorded_occurrences), column.unit) +
         " each";
}

/// A table in the making: its columns, and the regions that its rows show.
struct RegionTable {
  std::vector<ColumnView> columns;
  std::vector<const Region*> regions;  ///< null for what is none
  Grid grid;                           ///< its first column has the labels
};

ScopeView folded_rows(const Report& report) {
  ScopeView scope{"all processes", {}, 0};
  for (ShownRow& row : shown_rows(report)) {
    const std::size_t regions = row.regions();
    scope.rows.push_back({row.region, std::move(row.label), row.depth, row.parent, regions,
                          std::move(row.siblings)});
  }
  return scope;
}

/// Regions without their tree: whole paths, what takes most time of its own first.
void flatten(std::vector<RowView>& all, std::string_view own) {
  for (RowView& one : all) {
    one.label =
        base::printable(model::path_text(*one.region)) +
        (one.region->kind == model::RangeKind::kStartEnd ? std::string(model::kStartEndMark) : "") +
        one.siblings;
    one.parent = model::kNone;
    one.depth = 0;
  }
  std::stable_sort(all.begin(), all.end(), [&](const RowView& a, const RowView& b) {
    return model::value_of(*a.region, own).value_or(-1) >
           model::value_of(*b.region, own).value_or(-1);
  });
}

void drop_column(RegionTable& table, std::size_t column) {
  table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(column));
  for (auto& row : table.grid.rows)
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(column) + 1);
}

/// Columns that nobody asked for, and that say nothing here: zeros, "idle" beside how busy the GPU
/// was, and self times of ranges that hold no others.
void drop_empty(RegionTable& table) {
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const std::string& tag = table.columns[i].tag;
    const bool zeros = tag == "gpu.copy_bytes" || tag == "wall_ns.profiler";
    const auto wall = static_cast<std::size_t>(
        std::ranges::find(table.columns, "wall_ns.inclusive", &ColumnView::tag) -
        table.columns.begin());
    const bool self = tag == "wall_ns.exclusive" && wall < table.columns.size();
    bool says = false;
    for (std::size_t r = 0; r < table.regions.size() && !says; ++r) {
      const std::string& text = table.grid.rows[r][i + 1].text;
      says = text != "-" && !(tag == kBoundTag && text == "idle") &&
             !(self && text == table.grid.rows[r][wall + 1].text) &&
             !(zeros && (text.starts_with("0 B") || text.starts_with("0 ns")));
    }
    if (!says) drop_column(table, i);
  }
}

std::string metric_cell(const std::map<std::string, model::Metric>& metrics,
                        const std::string& name) {
  const auto found = metrics.find(name);
  if (found == metrics.end() || !found->second.absent.empty()) return "-";
  return format_value(found->second.value, found->second.unit);
}

/// Metrics as rows, beside each other those of a few regions or kernels.
Grid turned(const Report& report, const std::vector<std::string>& heads,
            const std::vector<const std::map<std::string, model::Metric>*>& metrics) {
  Grid grid({{"metric", false, true}});
  const std::size_t shown = std::min(heads.size(), kMostTurned);
  for (std::size_t i = 0; i < shown; ++i)
    grid.columns.push_back(
        {base::elide(heads[i], kMostLabel), true, false, static_cast<int>(shown - i)});
  grid.least = 36;
  if (heads.size() > shown)
    grid.more = base::counted(heads.size() - shown, "more column") + ": -f csv has all";
  for (const model::MetricColumn& column : report.metric_columns) {
    std::vector<GridCell> row = {{base::printable(column.title)}};
    for (std::size_t i = 0; i < shown; ++i)
      row.push_back({metrics[i] == nullptr ? "-" : metric_cell(*metrics[i], column.name)});
    if (std::any_of(row.begin() + 1, row.end(),
                    [](const GridCell& one) { return one.text != "-"; }))
      grid.add(std::move(row));
  }
  return grid;
}

/// Metric columns with long names leave the table and become rows of one of their own.
Grid turn(const Report& report, RegionTable& table) {
  const auto is_metric = [](const ColumnView& column) {
    return column.tag.starts_with("metrics.");
  };
  const bool wide =
      std::any_of(table.columns.begin(), table.columns.end(), [&](const ColumnView& column) {
        return is_metric(column) && base::display_width(column.title) > kLongTitle;
      });
  if (!wide) return Grid();
  for (std::size_t i = table.columns.size(); i-- > 0;)
    if (is_metric(table.columns[i])) drop_column(table, i);
  std::vector<std::string> heads;
  std::vector<const std::map<std::string, model::Metric>*> metrics;
  for (std::size_t i = 0; i < table.regions.size(); ++i) {
    const Region* region = table.regions[i];
    const bool has =
        region != nullptr && std::ranges::any_of(report.metric_columns, [&](const auto& column) {
          return metric_cell(region->metrics, column.name) != "-";
        });
    if (!has) continue;
    heads.push_back(table.grid.rows[i].front().text);
    metrics.push_back(&region->metrics);
  }
  return turned(report, heads, metrics);
}

base::Tone tone_of(const std::string& text, const Region* region) {
  const bool nothing = text == "-" || text == "0" || text == "0 ns" || text == "0 B";
  return nothing || region == nullptr ? base::Tone::kDim : base::Tone::kPlain;
}

/// Adds the section of one table, and that of its turned metrics. `whole`: of the aggregate.
base::Result<std::vector<ColumnView>> add_table(const Report& report, const Style& style,
                                                ScopeView scope, bool whole, std::string_view sort,
                                                std::vector<Section>& sections) {
  RegionTable table;
  table.columns = TRY(columns(report, style));
  const bool timed = std::any_of(scope.rows.begin(), scope.rows.end(), [](const RowView& one) {
    return model::value_of(*one.region, "wall_ns.inclusive").has_value();
  });
  const std::string_view own = timed ? "wall_ns.exclusive" : "gpu.exclusive_kernel_ns";
  const std::string_view cost = !sort.empty() ? sort
                                : style.flat  ? own
                                : timed       ? "wall_ns.inclusive"
                                              : "gpu.kernel_ns";
  if (style.flat) flatten(scope.rows, own);
  choose_rows(scope, style.depth,
              style.top > 0                  ? style.top
              : style.all || style.depth > 0 ? 0
                                             : kDefaultRows,
              sort, cost);
  double largest =
      0;  // of the regions: what lies outside is often most of the run, and would leave them no bar
  for (const RowView& row : scope.rows)
    largest = std::max(largest, share_of(*row.region).value_or(0));
  const auto add = [&](const std::string& label, std::size_t depth, const Region& region,
                       const Region* real) {
    std::vector<GridCell> cells = {{label, tone_of("", real), depth}};
    for (const ColumnView& column : table.columns) {
      std::string text = text_of(region, column, largest);
      const base::Tone tone = tone_of(text, real);
      cells.push_back({std::move(text), tone});
    }
    table.grid.add(std::move(cells));
    table.regions.push_back(real);
  };
  for (const RowView& row : scope.rows) add(row.label, row.depth, *row.region, row.region);
  if (whole && ((report.outside && report.outside->wall_ns > 0) ||
                (report.unattributed && !work_sentence(*report.unattributed).empty()))) {
    const double wall = report.outside ? report.outside->wall_ns : kNotKnown;
    add(kOutsideRanges, 0, row_of(kOutsideRanges, wall, report, report.unattributed), nullptr);
    if (report.run.duration_ns > 0)
      add(kWholeRun, 0, row_of(kWholeRun, report.run.duration_ns, report, report.total), nullptr);
  }
  Grid metrics;
  if (style.columns.empty()) {
    metrics = turn(report, table);
    drop_empty(table);
  }
  table.grid.columns = {{"range", false, true}};
  for (const ColumnView& column : table.columns)
    table.grid.columns.push_back({column.title, true, false, column.importance});
  if (scope.hidden > 0)
    table.grid.more = base::counted(scope.hidden, "more region") +
                      (style.depth > 0 ? ": --depth 0 has all levels"
                       : style.all     ? ""
                                       : ": --all shows each, --top 50 the largest");
  sections.push_back({"Regions: " + scope.title});
  sections.back().add(std::move(table.grid));
  const bool first_table = sections.size() == 1;
  if (!metrics.rows.empty())
    sections.push_back({"Metrics: " + scope.title, true, false, {std::move(metrics)}});
  if (!first_table) return std::move(table.columns);
  for (const Region* region : table.regions) {
    if (region == nullptr) continue;
    const std::string name = model::path_text(*region);
    if (region->unclosed > 0)
      sections.back().add({.text = base::format_count(region->unclosed) +
                                   " started and never ended: not in the statistics",
                           .name = name});
    if (region->bound && style.explain)
      sections.back().add(
          {.text = "limiter " + region->bound->kind + ": " + region->bound->reason, .name = name});
    for (const std::string& note : region->notes)
      if (style.explain) sections.back().add({.text = note, .name = name});
  }
  return std::move(table.columns);
}

/// The share of what is attainable at the nearest roof: the highest point of a kernel under its
/// roofs.
std::optional<double> under_roof(const std::vector<model::RooflinePoint>& points) {
  std::optional<double> most;
  for (const model::RooflinePoint& point : points)
    if (point.level == "dram" && point.roof_flop_per_s > 0)
      most = std::max(most.value_or(0), point.flop_per_s / point.roof_flop_per_s);
  return most;
}

}  // namespace

base::Result<std::vector<Section>> region_sections(const Report& report, const Style& style,
                                                   std::vector<ColumnView>& explained) {
  const auto sort = TRY(sort_tag(report, style));
  std::vector<Section> sections;
  const bool folded = !style.all && !report.rows.empty();
  const auto add = [&](ScopeView scope, bool whole) -> base::Result<void> {
    auto columns = TRY(add_table(report, style, std::move(scope), whole, sort, sections));
    if (explained.empty()) explained = std::move(columns);
    return {};
  };
  if (folded) TRY(add(folded_rows(report), true));
  for (ScopeView& scope : all_scopes(report)) {
    // Each process only with --all; threads were asked for by --per-thread.
    const Region& first = *scope.rows.front().region;
    if (folded && !first.thread && !(style.per_rank && first.process)) continue;
    TRY(add(std::move(scope), !first.process && !first.thread));
  }
  const auto tables = std::count_if(sections.begin(), sections.end(), [](const Section& one) {
    return one.title.starts_with("Regions");
  });
  if (tables == 1) {
    sections.front().title = "Regions";
    sections.front().quiet = true;
  }
  return sections;
}

KernelGrids kernel_grids(const Report& report, std::size_t most) {
  const std::size_t shown = std::min(most, report.kernels.size());
  std::vector<const model::KernelCounters*> counters;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto found =
        std::find_if(report.kernel_counters.begin(), report.kernel_counters.end(),
                     [&](const auto& each) { return each.name == report.kernels[i].name; });
    counters.push_back(found == report.kernel_counters.end() ? nullptr : &*found);
  }
  const auto any = [&](auto has) {
    return std::any_of(counters.begin(), counters.end(),
                       [&](const auto* each) { return each != nullptr && has(*each); });
  };
  std::vector<const model::MetricColumn*> columns;
  bool wide = false;
  for (const model::MetricColumn& column : report.metric_columns) {
    if (!any([&](const auto& each) { return metric_cell(each.metrics, column.name) != "-"; }))
      continue;
    columns.push_back(&column);
    wide |= base::display_width(column.title) > kLongTitle;
  }
  const bool roofs = any([](const auto& each) { return under_roof(each.roofline).has_value(); });
  const bool bounds =
      any([](const auto& each) { return each.bound && each.bound->kind != "unknown"; });
  KernelGrids out;
  Grid& grid = out.kernels;
  grid = Grid({{"kernel", false, true},
               {"calls"},
               {"total"},
               {"median", true, false, 1},
               {"max", true, false, 1},
               {"share"}});
  grid.least = 30;
  if (report.kernels.size() > shown)
    grid.more = base::counted(report.kernels.size() - shown, "more kernel") + ": --top-kernels 50";
  if (!wide)
    for (const auto* column : columns)
      grid.columns.push_back({base::printable(column->title), true, false, 2});
  if (roofs) grid.columns.push_back({"% of roofline", true, false, 3});
  if (bounds) grid.columns.push_back({"bound", true, false, 3});
  std::vector<std::string> names;
  std::vector<const std::map<std::string, model::Metric>*> metrics;
  for (std::size_t i = 0; i < shown; ++i) {
    const model::KernelRow& row = report.kernels[i];
    const model::KernelCounters* of = counters[i];
    names.push_back(base::printable(!row.label.empty()        ? row.label
                                    : !row.short_name.empty() ? row.short_name
                                                              : row.name));
    metrics.push_back(of == nullptr ? nullptr : &of->metrics);
    std::vector<GridCell> cells = {{names.back()},
                                   {base::format_count(row.calls)},
                                   {base::format_ns(row.total_ns)},
                                   {base::format_ns(row.duration_ns.median)},
                                   {base::format_ns(row.duration_ns.max)},
                                   {base::format_share(row.share)}};
    if (!wide)
      for (const auto* column : columns)
        cells.push_back({of == nullptr ? "-" : metric_cell(of->metrics, column->name)});
    if (roofs) {
      const auto roof = of == nullptr ? std::nullopt : under_roof(of->roofline);
      cells.push_back({roof ? base::format_share(*roof) : "-"});
    }
    if (bounds) cells.push_back({of != nullptr && of->bound ? of->bound->kind : "-"});
    grid.add(std::move(cells));
  }
  if (wide) out.metrics = turned(report, names, metrics);
  return out;
}

Grid stall_grid(const Report& report, std::size_t most) {
  struct Row {
    const model::KernelRow* kernel;
    std::string in;
  };
  std::vector<Row> rows;
  const auto of = [](const model::Region& region,
                     const std::string& kernel) -> const model::Stalls* {
    if (!region.gpu) return nullptr;
    for (const model::KernelRow& row : region.gpu->top_kernels)
      if (row.stalls && row.name == kernel) return &*row.stalls;
    return nullptr;
  };
  for (const model::Region& region : report.regions) {
    if (region.process || region.thread || !region.gpu) continue;
    for (const model::KernelRow& row : region.gpu->top_kernels) {
      const auto inside = [&](const model::Region& child) {  // a range inside has all of it
        const model::Stalls* stalls = child.parent == region.id ? of(child, row.name) : nullptr;
        return stalls != nullptr && stalls->samples == row.stalls->samples;
      };
      if (row.stalls && std::none_of(report.regions.begin(), report.regions.end(), inside))
        rows.push_back({&row, model::path_text(region)});
    }
  }
  const auto saves = [](const Row& row) { return row.kernel->stalls->saves_ns.value_or(0); };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return saves(a) > saves(b); });
  Grid grid({{"kernel", false, true, 0},
             {"in", false, false, 1},
             {"samples", true, false, 2},
             {"warps wait for", false, false, 0},
             {"at", false, false, 0},
             {"saves at most", true, false, 0}});
  for (const Row& row : std::span(rows).first(std::min(most, rows.size()))) {
    const model::Stalls& stalls = *row.kernel->stalls;
    std::vector<std::string> reasons;
    for (const model::StallShare& each : stalls.reasons)
      if (model::is_stall(each.reason) && reasons.size() < 2)
        reasons.push_back(base::format_share(each.share) + " " + each.reason);
    const std::string& name =
        row.kernel->label.empty() ? row.kernel->short_name : row.kernel->label;
    std::string at = "-";
    if (!stalls.lines.empty()) {
      const model::StallLine& line = stalls.lines.front();
      at = model::place_text(line);
      if (line.line == 0 && line.function == row.kernel->short_name)
        at.erase(0, line.function.size());
      at = base::printable(at) + " (" + base::format_share(line.share) + ")";
    }
    grid.add({{base::printable(name)},
              {base::printable(row.in)},
              {base::format_count(stalls.samples)},
              {base::join(reasons, ", ")},
              {at},
              {stalls.saves_ns ? base::format_ns(*stalls.saves_ns) : "-"}});
  }
  if (rows.size() > grid.rows.size())
    grid.more = base::counted(rows.size() - grid.rows.size(), "more kernel") + ": -f json has all";
  return grid;
}

std::vector<Section> communication_sections(const Report& report, std::size_t most) {
  const auto rate = [](const std::optional<double>& value) {
    return value ? base::format_si(*value, "B/s") : "-";
  };
  const auto where = [](const std::vector<std::string>& path) {
    return path.empty() ? std::string("-") : base::join(path, " > ");
  };
  const auto begin = [](std::initializer_list<const char*> heads) {
    Grid grid;
    for (const char* head : heads)
      grid.columns.push_back(
          {head, grid.columns.size() > 1, grid.columns.empty(), grid.columns.empty() ? 0 : 2});
    return grid;
  };
  std::vector<Section> sections;
  const auto end = [&](const char* title, const char* what, Grid grid, std::size_t all) {
    if (all > grid.rows.size())
      grid.more = base::counted(all - grid.rows.size(), what) + ": -f json has all";
    if (!grid.rows.empty()) sections.push_back({title, true, false, {std::move(grid)}});
  };
  Grid collectives = begin({"collective", "in", "bytes", "ranks", "calls", "transfer", "wait",
                            "overlapped", "bus", "last"});
  for (const model::Collective& row :
       std::span(report.collectives).first(std::min(most, report.collectives.size()))) {
    const auto last =
        std::max_element(row.by_rank.begin(), row.by_rank.end(),
                         [](const auto& a, const auto& b) { return a.last < b.last; });
    collectives.add({{row.operation},
                     {where(row.path)},
                     {base::format_bytes(row.bytes)},
                     {std::to_string(row.ranks)},
                     {base::format_count(row.calls)},
                     {base::format_ns(row.transfer_ns)},
                     {base::format_ns(row.wait_ns)},
                     {row.hidden_share ? base::format_share(*row.hidden_share) : "-"},
                     {rate(row.bus_bytes_per_s)},
                     {last == row.by_rank.end() ? "-"
                                                : fmt::format("rank {}, {} of {}", last->rank,
                                                              base::format_count(last->last),
                                                              base::format_count(row.calls))}});
  }
  end("Collectives", "more collective", std::move(collectives), report.collectives.size());
  Grid messages = begin({"messages", "in", "bytes", "calls", "transfer", "late sender",
                         "late receiver", "bandwidth"});
  for (const model::PointToPoint& row :
       std::span(report.messages).first(std::min(most, report.messages.size())))
    messages.add({{fmt::format("rank {} to {}", row.from, row.to)},
                  {where(row.path)},
                  {base::format_bytes(row.bytes)},
                  {base::format_count(row.calls)},
                  {base::format_ns(row.transfer_ns)},
                  {base::format_ns(row.late_sender_ns)},
                  {base::format_ns(row.late_receiver_ns)},
                  {rate(row.bytes_per_s)}});
  end("Messages", "more pair", std::move(messages), report.messages.size());
  return sections;
}

Grid operator_grid(const Report& report, std::size_t most) {
  const bool gpu = !report.operators.empty() && !std::isnan(report.operators.front().gpu_ns);
  Grid grid({{"operator", false, true}, {"calls"}, {"CPU", true, false, 1}, {"CPU self"}});
  if (gpu) grid.columns.insert(grid.columns.end(), {{"GPU", true, false, 1}, {"GPU self"}});
  for (const model::OperatorRow& row :
       std::span(report.operators).first(std::min(most, report.operators.size()))) {
    grid.add({{row.name},
              {base::format_count(row.calls)},
              {base::format_ns(row.cpu_ns)},
              {base::format_ns(row.exclusive_cpu_ns)}});
    if (gpu)
      grid.rows.back().insert(grid.rows.back().end(), {{base::format_ns(row.gpu_ns)},
                                                       {base::format_ns(row.exclusive_gpu_ns)}});
  }
  if (report.operators.size() > grid.rows.size())
    grid.more = base::counted(report.operators.size() - grid.rows.size(), "more operator");
  return grid;
}

}  // namespace rangescope::report
