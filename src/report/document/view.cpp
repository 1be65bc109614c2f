#include "report/document/view.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "model/range_expression.hpp"

namespace rangescope::report {
namespace {

using model::Region;

struct Choice {
  std::string_view tag;
  int importance;
};
// In the order of the table; the least important gives way first.
constexpr std::array kNvtxColumns = {
    Choice{"occurrences", 9},    Choice{"wall_ns.inclusive", 10}, Choice{"wall_ns.exclusive", 6},
    Choice{"wall_ns.median", 8}, Choice{"wall_ns.p95", 3},        Choice{"wall_ns.max", 7},
};
constexpr std::array kGpuColumns = {
    Choice{"occurrences", 8},   Choice{"wall_ns.inclusive", 10}, Choice{"wall_ns.median", 6},
    Choice{"wall_ns.max", 4},   Choice{"gpu.busy_share", 9},     Choice{"gpu.kernels", 7},
    Choice{"gpu.kernel_ns", 2}, Choice{"gpu.copy_bytes", 3},
};
// Where several processes ran: what each has of a region.
constexpr std::array kProcessColumns = {Choice{"across.min_ns", 3}, Choice{"across.max_ns", 4},
                                        Choice{"across.imbalance", 5}};

// Where the processes are ranks of a job.
constexpr std::array kRankColumns = {Choice{"ranks.mean_ns", 5}, Choice{"ranks.min_ns", 4},
                                     Choice{"ranks.max_ns", 6}, Choice{"ranks.stddev_ns", 2},
                                     Choice{"ranks.imbalance", 7}};
// Where their calls of NCCL and MPI were joined.
constexpr std::array kCommunicationColumns = {Choice{"communication.wait_ns", 6},
                                              Choice{"communication.transfer_ns", 2},
                                              Choice{"communication.overlap_ns", 1}};

// Where an allocator of a framework was recorded.
constexpr Choice kMemoryColumns[] = {
    {"memory.peak_bytes", 7},
    {"memory.allocated_bytes", 3},
    {"memory.held_bytes", 5},
};

constexpr std::size_t kMostMetricColumns = 4;
constexpr std::string_view kEach = " each";  // of one instance, as in cells

const model::Metric* find_metric(const model::Report& report, std::string_view name) {
  for (const Region& region : report.regions) {
    const auto found = region.metrics.find(std::string(name));
    if (found != region.metrics.end()) return &found->second;
  }
  return nullptr;
}

constexpr std::string_view kMetricPrefix = "metrics.";

/// A column that every report can have.
std::optional<ColumnView> fixed_column(std::string_view name, int importance) {
  if (name == kBoundTag) return ColumnView{std::string(kBoundTag), "bound", {}, importance};
  if (name == kSlowestTag) return ColumnView{std::string(kSlowestTag), "slowest", {}, importance};
  const model::Measure* measure = model::find_measure(name);
  if (measure == nullptr) return {};
  const std::string_view unit = model::unit_name(measure->unit);
  return ColumnView{std::string(measure->tag), std::string(measure->title), std::string(unit),
                    importance};
}

/// The nearest of these names, or of the titles of measures.
std::string nearest_value(std::string_view name, std::vector<std::string> names) {
  for (const model::Measure& measure : model::measures()) names.emplace_back(measure.title);
  return base::did_you_mean(name, names);
}

tl::unexpected<base::Error> no_such_value(std::string_view name, std::string_view at,
                                          std::string hint) {
  if (hint.empty()) hint = "See the names with: rangescope help columns";
  const std::string problem = "no region has a value named '" + base::printable(name) + "'";
  return base::fail(base::Code::kUsage, problem, std::string(at), std::move(hint));
}

base::Result<ColumnView> column_of(const model::Report& report, std::string_view name,
                                   int importance, std::string_view option) {
  if (auto column = fixed_column(name, importance)) return std::move(*column);
  std::string_view bare = name;
  if (bare.starts_with(kMetricPrefix)) bare.remove_prefix(kMetricPrefix.size());
  if (const model::Metric* metric = find_metric(report, bare)) {
    const std::string tag = std::string(kMetricPrefix) + std::string(bare);
    return ColumnView{tag, base::printable(bare), metric->unit, importance};
  }
  return no_such_value(name, option, nearest_value(name, value_names(report)));
}

/// CUPTI's names have `__` in them, those of CPU events an underscore and no dot. Which ones there
/// are, only the finished report knows.
bool may_be_metric(std::string_view name) {
  const bool has_underscore = name.find('_') != std::string_view::npos;
  const bool has_dot = name.find('.') != std::string_view::npos;
  return name.find("__") != std::string_view::npos || (has_underscore && !has_dot);
}

base::Result<void> check_value(std::string_view name, std::string_view at, MetricNames metrics) {
  if (name.starts_with(kMetricPrefix) || fixed_column(name, 0)) return {};
  if (std::ranges::find(metrics, name) != metrics.end()) return {};
  std::vector<std::string> known = model::measure_tags();
  known.insert(known.end(), metrics.begin(), metrics.end());
  std::string hint = nearest_value(name, std::move(known));
  if (hint.empty() && may_be_metric(name)) return {};
  return no_such_value(name, at, std::move(hint));
}

tl::unexpected<base::Error> not_sortable(const std::string& tag) {
  const std::string problem = "'" + tag + "' is text, not a number";
  return base::fail(base::Code::kUsage, problem, "--sort", "Sort by wall or gpu.busy_ns");
}

bool has_gpu(const model::Report& report) {
  const auto busy = [](const base::Held<model::GpuWork>& work) {
    return work && (work->kernels > 0 || work->busy_ns > 0);
  };
  if (busy(report.total) || busy(report.unattributed)) return true;
  return std::any_of(report.regions.begin(), report.regions.end(),
                     [&](const Region& region) { return busy(region.gpu); });
}

std::string scope_title(const model::Report& report, const Region& region) {
  std::string process = "all processes";
  if (region.process) {
    process = fmt::format("process {}", *region.process);
    if (*region.process < report.processes.size()) {
      const auto& known = report.processes[*region.process];
      process = fmt::format("process {} {}", known.pid, base::printable(known.name));
      if (known.rank) process = fmt::format("rank {} ({})", *known.rank, process);
    }
  }
  return region.thread ? fmt::format("thread {} of {}", *region.thread, process) : process;
}

}  // namespace

std::vector<std::string> device_texts(const model::Report& report) {
  // Processes see the same GPU: its UUID tells, else how many of a kind one process has.
  struct Kind {
    std::string name;
    std::set<std::string> uuids;
    std::map<std::uint32_t, std::size_t> by_process;
  };
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const model::Device& device = report.devices[i];
    std::string name = i < report.device_names.size() ? report.device_names[i] : std::string();
    if (name.empty() && device.compute_major > 0)
      name =
          fmt::format("GPU (compute capability {}.{})", device.compute_major, device.compute_minor);
    if (name.empty()) continue;
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const Kind& known) { return known.name == name; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {name, {}, {}});
    if (i < report.device_uuids.size() && !report.device_uuids[i].empty())
      kind->uuids.insert(report.device_uuids[i]);
    ++kind->by_process[device.process];
  }
  const bool named = std::any_of(report.device_names.begin(), report.device_names.end(),
                                 [](const std::string& name) { return !name.empty(); });
  std::vector<std::string> texts;
  for (const Kind& kind : kinds) {
    if (named && kind.name.starts_with("GPU ("))
      continue;  // the same ones, seen by a tool that prints no names
    std::size_t count = kind.uuids.size();
    for (const auto& [process, of_process] : kind.by_process) count = std::max(count, of_process);
    texts.push_back(count > 1 ? fmt::format("{}x {}", count, kind.name) : kind.name);
  }
  return texts;
}

std::optional<std::uint32_t> pid_of(const model::Report& report,
                                    std::optional<std::uint32_t> process) {
  if (!process || *process >= report.processes.size()) return {};
  return report.processes[*process].pid;
}

std::vector<std::string> value_names(const model::Report& report) {
  std::vector<std::string> names = model::measure_tags();
  std::set<std::string> metrics;
  for (const Region& region : report.regions) {
    for (const auto& [name, metric] : region.metrics) metrics.insert("metrics." + name);
  }
  for (const model::KernelMetrics& result : report.unattributed_results) {
    for (const auto& [name, metric] : result.metrics) metrics.insert("metrics." + name);
  }
  names.insert(names.end(), metrics.begin(), metrics.end());
  return names;
}

base::Result<std::vector<ColumnView>> columns(const model::Report& report, const Style& style) {
  std::vector<ColumnView> chosen;
  for (const std::string& name : style.columns) {
    auto column = TRY(column_of(report, name, 0, "--columns"));
    chosen.push_back(std::move(column));
  }
  if (!chosen.empty()) return chosen;
  const auto add = [&](std::string_view tag, int importance) {  // of a measure
    chosen.push_back(*column_of(report, tag, importance, ""));
  };
  const auto add_all = [&](std::span<const Choice> choices) {
    for (const Choice& choice : choices) add(choice.tag, choice.importance);
  };
  chosen.push_back({std::string(kShareTag), "share", "ratio", 11});
  const auto defaults = has_gpu(report) ? std::span<const Choice>(kGpuColumns)
                                        : std::span<const Choice>(kNvtxColumns);
  if (style.flat)  // what the list is in order of
    for (const std::string_view tag : {"wall_ns.exclusive", "gpu.exclusive_kernel_ns"})
      add(tag, 11);
  for (const Choice& choice : defaults)
    if (!style.flat || choice.tag != "wall_ns.exclusive") add(choice.tag, choice.importance);
  const auto any = [&](auto has) {
    return std::any_of(report.regions.begin(), report.regions.end(), has);
  };
  if (any([](const Region& region) { return region.ranks.has_value(); })) {
    add_all(kRankColumns);
    add(kSlowestTag, 8);
    if (any([](const Region& region) { return region.communication.has_value(); }))
      add_all(kCommunicationColumns);
  } else if (any([](const Region& region) {
               return region.across && !region.across->of_threads;
             })) {
    add_all(kProcessColumns);
  }
  const auto has_memory = [](const Region& region) { return region.memory.has_value(); };
  if (any(has_memory)) add_all(kMemoryColumns);
  if (any([](const Region& region) { return region.wall.profiler_ns > 0; }))
    add("wall_ns.profiler", 7);
  // Who asked for metrics wants to see them: before kernels and the slowest, after what the rest
  // means nothing without.
  for (std::size_t i = 0; i < report.metric_columns.size() && i < kMostMetricColumns; ++i) {
    auto column =
        column_of(report, "metrics." + report.metric_columns[i].name, i < 2 ? 7 : 5, "--columns");
    if (!column) continue;  // no region has it
    column->title = base::printable(report.metric_columns[i].title);
    // Beside totals of the region.
    constexpr std::string_view kAmounts[] = {"ns", "byte", "FLOP", "count", "J"};
    const bool amount = std::ranges::find(kAmounts, column->unit) != std::end(kAmounts);
    const auto of_all = [&](const Region& region) {
      const auto metric = region.metrics.find(report.metric_columns[i].name);
      return metric != region.metrics.end() && metric->second.of_all;
    };
    // Amounts of one instance and of all never share a column (cell() leaves the latter out of the
    // former).
    const auto of_one = [&](const Region& region) {
      const auto metric = region.metrics.find(report.metric_columns[i].name);
      return metric != region.metrics.end() && metric->second.absent.empty() &&
             !metric->second.of_all;
    };
    if (amount && (!any(of_all) || any(of_one)) &&
        column->title.size() + kEach.size() <= kLongTitle)
      column->title += kEach;
    chosen.push_back(std::move(*column));
  }
  for (const std::string_view tag :
       {"utilization.executed", "utilization.useful", "utilization.bandwidth"}) {
    if (any([&](const Region& region) { return model::value_of(region, tag).has_value(); }))
      add(tag, 6);
  }
  if (any([](const Region& region) { return region.bound && region.bound->kind != "unknown"; }))
    add(kBoundTag, 9);
  return chosen;
}

base::Result<void> check_values(const Style& style, MetricNames metrics) {
  for (const std::string& name : style.columns) TRY(check_value(name, "--columns", metrics));
  if (style.sort.empty()) return {};
  if (style.sort == kBoundTag || style.sort == kSlowestTag) return not_sortable(style.sort);
  return check_value(style.sort, "--sort", metrics);
}

std::vector<std::string> remove_absent_metrics(const model::Report& report, Style& style) {
  std::vector<std::string> absent;
  const auto is_absent = [&](const std::string& name) {
    const bool is_metric = name.starts_with(kMetricPrefix) || may_be_metric(name);
    return is_metric && !column_of(report, name, 0, "");
  };
  for (const std::string& name : style.columns)
    if (is_absent(name)) absent.push_back(name);
  std::erase_if(style.columns, is_absent);
  if (!style.sort.empty() && is_absent(style.sort))
    absent.push_back(std::exchange(style.sort, std::string()));
  return absent;
}

base::Result<std::string> sort_tag(const model::Report& report, const Style& style) {
  if (style.sort.empty()) return std::string();
  auto column = TRY(column_of(report, style.sort, 0, "--sort"));
  if (column.tag == kBoundTag || column.tag == kSlowestTag) return not_sortable(column.tag);
  return std::move(column.tag);
}

std::vector<ScopeView> all_scopes(const model::Report& report) {
  std::vector<ScopeView> views;
  std::vector<std::uint32_t> row_of(report.regions.size(), model::kNone);
  const Region* before = nullptr;
  for (std::uint32_t id = 0; id < report.regions.size(); ++id) {
    const Region& region = report.regions[id];
    if (before == nullptr || before->process != region.process || before->thread != region.thread)
      views.push_back({scope_title(report, region), {}, 0});
    before = &region;
    const bool top = region.parent >= report.regions.size();
    row_of[id] = static_cast<std::uint32_t>(views.back().rows.size());
    views.back().rows.push_back({&region,
                                 label_of(region, top ? nullptr : &report.regions[region.parent]),
                                 region.depth, top ? model::kNone : row_of[region.parent], 1});
  }
  return views;
}

void choose_rows(ScopeView& scope, int depth, std::size_t top, std::string_view sort,
                 std::string_view cost) {
  std::vector<RowView>& all = scope.rows;
  std::vector<char> kept(all.size(), top == 0);
  const auto value = [&](std::size_t i, std::string_view tag) {
    return model::value_of(*all[i].region, tag).value_or(-1);
  };
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return value(a, cost) > value(b, cost); });
  for (std::size_t i = 0; i < order.size() && i < top; ++i)
    for (std::size_t at = order[i]; at < all.size() && kept[at] == 0; at = all[at].parent)
      kept[at] = 1;
  std::map<std::uint32_t, std::vector<std::size_t>> children;
  for (std::size_t i = 0; i < all.size(); ++i) children[all[i].parent].push_back(i);
  if (!sort.empty()) {
    for (auto& [parent, list] : children)
      std::stable_sort(list.begin(), list.end(),
                       [&](auto a, auto b) { return value(a, sort) > value(b, sort); });
  }
  std::vector<RowView> chosen;
  std::vector<std::size_t> pending;  // a stack of our own: a path may be thousands of levels deep
  const auto push = [&](std::uint32_t parent) {
    if (const auto found = children.find(parent); found != children.end())
      pending.insert(pending.end(), found->second.rbegin(), found->second.rend());
  };
  push(model::kNone);
  while (!pending.empty()) {
    const std::size_t i = pending.back();
    pending.pop_back();
    push(static_cast<std::uint32_t>(i));
    if (kept[i] != 0 && (depth == 0 || all[i].depth < static_cast<std::size_t>(depth)))
      chosen.push_back(all[i]);
    else
      scope.hidden += all[i].stands_for;
  }
  all = std::move(chosen);
}

base::Result<std::vector<ScopeView>> scopes(const model::Report& report, const Style& style) {
  const auto sort = TRY(sort_tag(report, style));
  std::vector<ScopeView> views = all_scopes(report);
  for (ScopeView& view : views)
    choose_rows(view, style.depth, style.top, sort, sort.empty() ? "wall_ns.inclusive" : sort);
  return views;
}

std::string format_value(double value, std::string_view unit) {
  if (unit == "ns") return base::format_ns(value);
  if (unit == "byte") return base::format_bytes(value);
  if (unit == "ratio") return base::format_share(value);
  if (unit == "count") return base::format_count(std::llround(value));
  if (unit.starts_with("byte/")) return base::format_si(value, "B" + std::string(unit.substr(4)));
  return base::format_si(value, unit);
}

std::string format_utilization(double share) {
  const double size = std::fabs(share) * 100;
  if (!(size > 0 && size < 0.05)) return base::format_share(share);
  return fmt::format("{:.{}f} %", share * 100,
                     std::min(12, static_cast<int>(std::ceil(-std::log10(size)))));
}

/// GPU work belongs to the range that launched it and may outlast it, or run on several GPUs: above
/// 1 it is no share of the range's time.
std::string format_busy(double share) {
  if (share < 1.0005) return base::format_share(share);
  return share < 99.95 ? fmt::format("{:.{}f}x", share, share < 9.995 ? 2 : 1)
                       : base::format_count(std::llround(std::min(share, 1e15))) + "x";
}

std::string cell(const Region& region, const ColumnView& column) {
  if (column.tag == kSlowestTag)
    return region.ranks ? fmt::format("rank {}, {} of {}", region.ranks->slowest,
                                      base::format_count(region.ranks->slowest_in),
                                      base::format_count(region.ranks->compared))
                        : "-";
  if (column.tag == kBoundTag) return region.bound ? base::printable(region.bound->kind) : "-";
  const auto value = model::value_of(region, column.tag);
  if (value && column.tag.starts_with("utilization.")) return format_utilization(*value);
  if (!value) return "-";
  if (column.tag == "gpu.busy_share") return format_busy(*value);
  const bool estimated = region.module && column.tag.starts_with("wall_ns.");
  const std::string text = (estimated && *value > 0 ? "~" : "") + format_value(*value, column.unit);
  // What was worked out from some for all is no number without its interval.
  constexpr std::string_view kPrefix = "metrics.";
  const auto metric = column.tag.starts_with(kPrefix)
                          ? region.metrics.find(column.tag.substr(kPrefix.size()))
                          : region.metrics.end();
  if (metric == region.metrics.end()) return text;
  if (metric->second.of_all && column.title.ends_with(kEach)) return "-";
  if (*value <= 0) return text;
  const model::Metric& one = metric->second;
  if (one.source.find(" energy / ") == std::string::npos) return text;
  return fmt::format("{} ±{:.2g} %", text, 50 * (one.max - one.min) / *value);
}

std::optional<double> share_of(const Region& region) {
  if (const auto wall = model::value_of(region, "wall_ns.share"); wall && *wall > 0) return wall;
  return model::value_of(region, "gpu.share");
}

std::string label_of(const Region& region, const Region* parent) {
  std::string label = region.path.empty() ? std::string("?") : base::printable(region.path.back());
  if (label.empty()) label = "\"\"";
  if (region.module && parent != nullptr &&
      parent->module) {  // below "model.layers.3 (Layer)" it is "mlp (Mlp)"
    const std::string above = base::printable(parent->path.back());
    const std::string path = above.substr(0, above.rfind(" (")) + ".";
    if (label.starts_with(path)) label.erase(0, path.size());
  }
  if (parent == nullptr && region.path.size() > 1) {
    for (std::size_t i = region.path.size() - 1; i-- > 0;)
      label = base::printable(region.path[i]) + " > " + label;
  }
  if (!region.domain.empty() && (parent == nullptr || parent->domain != region.domain)) {
    label.insert(0, "@");
    label.insert(0, base::printable(region.domain));
  }
  if (region.kind == model::RangeKind::kStartEnd) label += model::kStartEndMark;
  return label;
}

std::string_view kind_name(model::RangeKind kind) {
  return kind == model::RangeKind::kStartEnd ? "start_end" : "push_pop";
}

std::string_view copy_kind_name(model::CopyKind kind) {
  constexpr std::string_view kNames[] = {"unknown",         "host_to_device",  "device_to_host",
                                         "host_to_array",   "array_to_host",   "array_to_array",
                                         "array_to_device", "device_to_array", "device_to_device",
                                         "host_to_host",    "peer_to_peer"};
  const auto place = static_cast<std::size_t>(kind);
  return kNames[place < std::size(kNames) ? place : 0];
}

std::string work_sentence(const model::GpuWork& work) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (work.kernels > 0)
    add(base::counted(work.kernels, "kernel") + " (" + base::format_ns(work.kernel_ns) + ")");
  if (work.copies > 0)
    add(fmt::format("{} ({}, {})", base::counted(work.copies, "copy"),
                    base::format_bytes(work.copy_bytes), base::format_ns(work.copy_ns)));
  if (work.memsets > 0) add(base::counted(work.memsets, "memset"));
  if (work.graph_launches > 0) add(base::counted(work.graph_launches, "graph launch"));
  if (!text.empty()) add("GPU busy " + base::format_ns(work.busy_ns));
  return text;
}

}  // namespace rangescope::report
