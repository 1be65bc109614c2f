#include "report/document/region_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::report {
namespace {

using model::Region;
using model::Report;

constexpr std::size_t kBarWidth = 6;
constexpr std::size_t kMostTurned = 8;  // regions or kernels beside each other in a turned table
constexpr std::size_t kMostLabel = 24;  // columns of a head there
constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

const Region& region_of(const Report& report, const model::TableRow& row) {
  return row.merged ? *row.merged : report.regions[row.members.front()];
}

/// "████▌ " of a share of the largest one; "█████▶" of what is longer than the scale.
std::string bar(double part) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
  const auto eighths = static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * 8 * kBarWidth));
  std::string text;
  for (std::size_t i = 0; i < kBarWidth; ++i) {
    const std::size_t of_this = std::min<std::size_t>(8, eighths - std::min(eighths, 8 * i));
    text += of_this == 0 ? " " : i + 1 == kBarWidth && part > 1 ? "▶" : kEighths[of_this];
  }
  return text;
}

/// What the GPU did outside all ranges, as a region.
Region outside_region(const Report& report) {
  Region out;
  out.path = {kOutsideRanges};
  out.occurrences = -1;
  const double wall = report.outside ? report.outside->wall_ns : kNotKnown;
  out.wall = {
      wall, kNotKnown, {kNotKnown, kNotKnown, kNotKnown, kNotKnown, kNotKnown, kNotKnown}, kNotKnown, kNotKnown};
  if (report.outside && report.run.duration_ns > 0) out.wall.share = wall / report.run.duration_ns;
  out.gpu = report.unattributed;
  if (out.gpu) out.gpu->launch_latency_ns.reset();
  return out;
}

/// A cell of a row, with what a paused timeline makes of sums: those of one occurrence.
std::string text_of(const Region& region, const ColumnView& column, double largest_share) {
  if (column.tag == kShareTag) {
    const auto share = share_of(region);
    return share
               ? bar(largest_share > 0 ? *share / largest_share : 0) + fmt::format("{:>8}", base::format_share(*share))
               : std::string("-");
  }
  if (column.tag == kBoundTag && region.bound && region.bound->kind == "unknown") return "-";
  const model::Measure* measure = model::find_measure(column.tag);
  // Graphs recorded as a whole: which kernels they ran is not known.
  if (region.gpu && region.gpu->graph_launches > 0 && region.gpu->graph_kernels == 0 && !region.gpu->partial) {
    const std::string graphs = base::counted(static_cast<std::uint64_t>(region.gpu->graph_launches), "graph");
    if (column.tag == "gpu.kernels") return region.gpu->kernels > 0 ? cell(region, column) + " + " + graphs : graphs;
    if (column.tag == "gpu.kernel_ns" && region.gpu->kernels == 0) return "-";
  }
  const bool sum = measure != nullptr && measure->tag.starts_with("gpu.") && model::adds_up(*measure);
  if (!sum || !region.gpu || !region.gpu->partial) return cell(region, column);
  const auto value = measure->get(region);
  if (!value) return "-";
  if (*value == 0) return region.occurrences < 0 ? "-" : cell(region, column);
  if (region.occurrences < 0) return format_value(*value, column.unit) + "+";  // outside ranges: what was seen of it
  if (region.gpu->recorded_occurrences <= 0) return "-";
  if (region.gpu->recorded_occurrences >= region.occurrences) return cell(region, column);
  return format_value(*value / static_cast<double>(region.gpu->recorded_occurrences), column.unit) + " each";
}

struct Candidate {
  std::uint32_t parent = model::kNone;  ///< index of another candidate
  std::size_t depth = 0;
  const Region* region = nullptr;
  std::string label;
  std::size_t stands_for = 1;
};

/// Which of the candidates are shown, in what order.
struct Shown {
  std::vector<std::size_t> order;
  std::size_t hidden = 0;
};

Shown choose(const std::vector<Candidate>& all, const Style& style, std::string_view sort, std::string_view cost) {
  const std::size_t top = style.top > 0 ? style.top : style.all || style.depth > 0 ? 0 : kDefaultRows;
  std::vector<char> kept(all.size(), top == 0);
  const auto value = [&](std::size_t i, std::string_view tag) {
    return model::value_of(*all[i].region, tag).value_or(-1);
  };
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return value(a, cost) > value(b, cost); });
  for (std::size_t i = 0; i < order.size() && i < top; ++i) {
    for (std::size_t at = order[i]; at < all.size() && kept[at] == 0; at = all[at].parent) kept[at] = 1;
  }
  std::map<std::uint32_t, std::vector<std::size_t>> children;
  for (std::size_t i = 0; i < all.size(); ++i) children[all[i].parent].push_back(i);
  if (!sort.empty()) {
    for (auto& [parent, list] : children)
      std::stable_sort(list.begin(), list.end(), [&](auto a, auto b) { return value(a, sort) > value(b, sort); });
  }
  Shown out;
  std::vector<std::size_t> pending;  // a stack of our own: a path may be thousands of levels deep
  const auto push = [&](std::uint32_t parent) {
    if (const auto found = children.find(parent); found != children.end())
      pending.insert(pending.end(), found->second.rbegin(), found->second.rend());
  };
  push(model::kNone);
  while (!pending.empty()) {
    const std::size_t i = pending.back();
    pending.pop_back();
    const bool deep = style.depth > 0 && all[i].depth >= static_cast<std::size_t>(style.depth);
    if (deep || kept[i] == 0)
      out.hidden += all[i].stands_for;
    else
      out.order.push_back(i);
    push(static_cast<std::uint32_t>(i));
  }
  return out;
}

std::vector<Candidate> candidates(const Report& report) {
  std::vector<Candidate> out;
  for (const model::TableRow& row : report.rows) {
    Candidate one;
    one.parent = row.parent;
    one.depth = row.depth;
    one.region = &region_of(report, row);
    const Region* above = row.parent == model::kNone ? nullptr : out[row.parent].region;
    one.label = label_of(*one.region, above);
    if (row.siblings > 1) one.label += fmt::format(" x{}", row.siblings);
    one.stands_for = row.members.size();
    out.push_back(std::move(one));
  }
  return out;
}

/// Regions of one scope.
std::vector<Candidate> candidates(const ScopeView& scope) {
  std::vector<Candidate> out;
  std::map<std::uint32_t, std::uint32_t> at;
  for (const RowView& row : scope.rows) {
    const auto parent = at.find(row.region->parent);
    at.emplace(row.region->id, static_cast<std::uint32_t>(out.size()));
    out.push_back({parent == at.end() ? model::kNone : parent->second, row.depth, row.region, row.label, 1});
  }
  return out;
}

/// Regions without their tree: whole paths, what takes most time of its own first.
std::vector<Candidate> flattened(std::vector<Candidate> all, std::string_view own) {
  for (Candidate& one : all) {
    const std::size_t count = one.label.rfind(" x");  // of rows that stand for several
    const std::string siblings = one.stands_for > 1 && count != std::string::npos ? one.label.substr(count) : "";
    one.label = base::printable(model::path_text(*one.region)) +
                (one.region->kind == model::RangeKind::kStartEnd ? " [start/end]" : "") + siblings;
    one.parent = model::kNone;
    one.depth = 0;
  }
  std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
    return model::value_of(*a.region, own).value_or(-1) > model::value_of(*b.region, own).value_or(-1);
  });
  return all;
}

void drop_column(RegionTable& table, std::size_t column) {
  table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(column));
  for (TableLine& line : table.lines) line.cells.erase(line.cells.begin() + static_cast<std::ptrdiff_t>(column));
}

/// Columns that nobody asked for, and that say nothing here: zeros, "idle" beside how busy the GPU was, and self times
/// of ranges that hold no others.
void drop_empty(RegionTable& table) {
  const auto place_of = [&](std::string_view tag) {
    return std::ranges::find(table.columns, tag, &ColumnView::tag) - table.columns.begin();
  };
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const std::string& tag = table.columns[i].tag;
    const bool zeros = tag == "gpu.copy_bytes" || tag == "wall_ns.profiler";
    const auto wall = static_cast<std::size_t>(place_of("wall_ns.inclusive"));
    const bool self = tag == "wall_ns.exclusive" && wall < table.columns.size();
    const bool says = std::any_of(table.lines.begin(), table.lines.end(), [&](const TableLine& line) {
      const std::string& text = line.cells[i];
      if (tag == kBoundTag && text == "idle") return false;
      if (self && text == line.cells[wall]) return false;
      return text != "-" && !(zeros && (text.starts_with("0 B") || text.starts_with("0 ns")));
    });
    if (!says) drop_column(table, i);
  }
}

std::string metric_cell(const std::map<std::string, model::Metric>& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  if (found == metrics.end() || !found->second.absent.empty()) return "-";
  return format_value(found->second.value, found->second.unit);
}

/// Metric columns with long names leave the table and become rows of one of their own.
void turn(const Report& report, RegionTable& table) {
  const auto is_metric = [](const ColumnView& column) { return column.tag.starts_with("metrics."); };
  const bool wide = std::any_of(table.columns.begin(), table.columns.end(), [&](const ColumnView& column) {
    return is_metric(column) && base::display_width(column.title) > kLongTitle;
  });
  if (!wide) return;
  for (std::size_t i = table.columns.size(); i-- > 0;)
    if (is_metric(table.columns[i])) drop_column(table, i);
  std::vector<const TableLine*> lines;
  for (const TableLine& line : table.lines) {
    const bool has = line.region != nullptr &&
                     std::any_of(report.metric_columns.begin(), report.metric_columns.end(), [&](const auto& column) {
                       return metric_cell(line.region->metrics, column.name) != "-";
                     });
    if (has) lines.push_back(&line);
  }
  for (std::size_t i = 0; i < lines.size() && i < kMostTurned; ++i)
    table.metrics.heads.push_back(base::elide(lines[i]->label, kMostLabel));
  table.metrics.hidden = lines.size() - table.metrics.heads.size();
  for (const model::MetricColumn& column : report.metric_columns) {
    std::vector<std::string> row = {base::printable(column.title)};
    for (std::size_t i = 0; i < table.metrics.heads.size(); ++i)
      row.push_back(metric_cell(lines[i]->region->metrics, column.name));
    if (std::any_of(row.begin() + 1, row.end(), [](const std::string& text) { return text != "-"; }))
      table.metrics.rows.push_back(std::move(row));
  }
}

base::Result<RegionTable> make_table(const Report& report, const Style& style, std::string title,
                                     std::vector<Candidate> all, bool whole, std::string_view sort) {
  RegionTable table;
  table.title = std::move(title);
  auto chosen = columns(report, style);
  if (!chosen) return base::fail(std::move(chosen));
  table.columns = std::move(*chosen);
  const bool timed = std::any_of(all.begin(), all.end(), [](const Candidate& one) {
    return model::value_of(*one.region, "wall_ns.inclusive").has_value();
  });
  const std::string_view own = timed ? "wall_ns.exclusive" : "gpu.exclusive_kernel_ns";
  const std::string_view cost = !sort.empty() ? sort : style.flat ? own : timed ? "wall_ns.inclusive" : "gpu.kernel_ns";
  if (style.flat) all = flattened(std::move(all), own);
  const Shown shown = choose(all, style, sort, cost);
  table.hidden = shown.hidden;
  const Region outside = outside_region(report);
  const bool with_outside = whole && ((report.outside && report.outside->wall_ns > 0) ||
                                      (report.unattributed && !work_sentence(*report.unattributed).empty()));
  double largest = 0;  // of the regions: what lies outside is often most of the run, and would leave them no bar
  for (const std::size_t i : shown.order) largest = std::max(largest, share_of(*all[i].region).value_or(0));
  const auto add = [&](std::string label, std::size_t depth, const Region& region, bool real) {
    TableLine line{std::move(label), depth, real ? &region : nullptr, {}};
    for (const ColumnView& column : table.columns) line.cells.push_back(text_of(region, column, largest));
    table.lines.push_back(std::move(line));
  };
  for (const std::size_t i : shown.order) add(all[i].label, all[i].depth, *all[i].region, true);
  if (with_outside) add(kOutsideRanges, 0, outside, false);
  if (style.columns.empty()) {
    turn(report, table);
    drop_empty(table);
  }
  return table;
}

/// The share of what is attainable at the nearest roof: the highest point of a kernel under its roofs.
std::optional<double> under_roof(const std::vector<model::RooflinePoint>& points) {
  std::optional<double> most;
  for (const model::RooflinePoint& point : points)
    if (point.level == "dram" && point.roof_flop_per_s > 0)
      most = std::max(most.value_or(0), point.flop_per_s / point.roof_flop_per_s);
  return most;
}

std::string time_text(double ns) {
  return std::isnan(ns) ? "-" : base::format_ns(ns);
}

}  // namespace

base::Result<std::vector<RegionTable>> region_tables(const Report& report, const Style& style) {
  Style every = style;
  every.depth = 0;
  every.top = 0;
  auto views = scopes(report, every);  // also says what is wrong with --sort
  if (!views) return base::fail(std::move(views));
  std::string sort;
  if (!style.sort.empty()) {
    const model::Measure* measure = model::find_measure(style.sort);
    sort = measure != nullptr ? std::string(measure->tag) : style.sort;
  }
  std::vector<RegionTable> tables;
  const bool folded = !style.all && !report.rows.empty();
  if (folded) {
    auto table = make_table(report, style, "all processes", candidates(report), true, sort);
    if (!table) return base::fail(std::move(table));
    tables.push_back(std::move(*table));
  }
  for (const ScopeView& scope : *views) {
    // Each process only with --all; threads were asked for by --per-thread.
    const Region& first = *scope.rows.front().region;
    if (folded && !first.thread && !(style.per_rank && first.process)) continue;
    auto table = make_table(report, style, scope.title, candidates(scope), !first.process && !first.thread, sort);
    if (!table) return base::fail(std::move(table));
    tables.push_back(std::move(*table));
  }
  return tables;
}

KernelTable kernel_table(const Report& report, const Style& style) {
  KernelTable table;
  table.heads = {"kernel", "calls", "total", "median", "max", "share"};
  const std::size_t shown = std::min(style.top_kernels, report.kernels.size());
  table.hidden = report.kernels.size() - shown;
  std::vector<const model::KernelCounters*> counters;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto found = std::find_if(report.kernel_counters.begin(), report.kernel_counters.end(),
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
    if (!any([&](const auto& each) { return metric_cell(each.metrics, column.name) != "-"; })) continue;
    columns.push_back(&column);
    wide |= base::display_width(column.title) > kLongTitle;
  }
  const bool roofs = any([](const auto& each) { return under_roof(each.roofline).has_value(); });
  const bool bounds = any([](const auto& each) { return each.bound && each.bound->kind != "unknown"; });
  if (!wide)
    for (const auto* column : columns) table.heads.push_back(base::printable(column->title));
  if (roofs) table.heads.emplace_back("% of roofline");
  if (bounds) table.heads.emplace_back("bound");
  for (std::size_t i = 0; i < shown; ++i) {
    const model::KernelRow& row = report.kernels[i];
    const std::string& name = !row.label.empty() ? row.label : !row.short_name.empty() ? row.short_name : row.name;
    std::vector<std::string> cells = {
        base::printable(name),          base::format_count(row.calls),
        time_text(row.total_ns),        time_text(row.duration_ns.median),
        time_text(row.duration_ns.max), std::isnan(row.share) ? "-" : base::format_share(row.share)};
    if (!wide)
      for (const auto* column : columns)
        cells.push_back(counters[i] == nullptr ? "-" : metric_cell(counters[i]->metrics, column->name));
    if (roofs) {
      const auto roof = counters[i] == nullptr ? std::nullopt : under_roof(counters[i]->roofline);
      cells.push_back(roof ? base::format_share(*roof) : "-");
    }
    if (bounds)
      cells.push_back(counters[i] != nullptr && counters[i]->bound ? base::printable(counters[i]->bound->kind) : "-");
    table.rows.push_back(std::move(cells));
  }
  if (!wide) return table;
  for (std::size_t i = 0; i < shown && i < kMostTurned; ++i)
    table.metrics.heads.push_back(base::elide(table.rows[i].front(), kMostLabel));
  table.metrics.hidden = shown - table.metrics.heads.size();
  for (const auto* column : columns) {
    std::vector<std::string> row = {base::printable(column->title)};
    for (std::size_t i = 0; i < table.metrics.heads.size(); ++i)
      row.push_back(counters[i] == nullptr ? "-" : metric_cell(counters[i]->metrics, column->name));
    table.metrics.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace rangescope::report
