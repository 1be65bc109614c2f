#include "report/document/view.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "model/module_name.hpp"
#include "model/range_expression.hpp"

namespace rangescope::report {
namespace {

using model::Region;

struct Choice {
  std::string_view tag;
  int importance;  ///< a narrow terminal drops the lowest first
};
// In the order of the table.
constexpr std::array kNvtxColumns = {
    Choice{"occurrences", 9},
    Choice{"wall_ns.inclusive", 10},
    Choice{"wall_ns.exclusive", 6},
    Choice{"wall_ns.median", 8},
    Choice{"wall_ns.p95", 3},
    Choice{"wall_ns.max", 7},
};
constexpr std::array kGpuColumns = {
    Choice{"occurrences", 8},
    Choice{"wall_ns.inclusive", 10},
    Choice{"wall_ns.median", 6},
    Choice{"wall_ns.max", 4},
    Choice{"gpu.busy_share", 9},
    Choice{"gpu.kernels", 7},
    Choice{"gpu.kernel_ns", 2},
    Choice{"gpu.copy_bytes", 3},
};
// With several processes.
constexpr std::array kProcessColumns = {
    Choice{"across.min_ns", 3}, Choice{"across.max_ns", 4}, Choice{"across.imbalance", 5}};

// With several ranks of a job.
constexpr std::array kRankColumns = {Choice{"ranks.mean_ns", 5},
                                     Choice{"ranks.min_ns", 4},
                                     Choice{"ranks.max_ns", 6},
                                     Choice{"ranks.stddev_ns", 2},
                                     Choice{"ranks.imbalance", 7}};
// With calls of NCCL and MPI that were matched between ranks.
constexpr std::array kCommunicationColumns = {Choice{"communication.wait_ns", 6},
                                              Choice{"communication.transfer_ns", 2},
                                              Choice{"communication.overlap_ns", 1}};

// With allocations of a framework.
constexpr Choice kMemoryColumns[] = {
    {"memory.peak_bytes", 7},
    {"memory.allocated_bytes", 3},
    {"memory.held_bytes", 5},
};

constexpr std::size_t kMaxMetricColumns = 4;
/// Ends the title of a column whose values are per instance.
constexpr std::string_view kPerInstance = " each";

const model::Metric* find_metric(const model::Report& report, std::string_view name) {
  for (const Region& region : report.regions) {
    const auto found = region.metrics.find(std::string(name));
    if (found != region.metrics.end())
      return &found->second;
  }
  return nullptr;
}

constexpr std::string_view kMetricPrefix = "metrics.";

/// A column that does not depend on the metrics of the report.
std::optional<ColumnView> fixed_column(std::string_view name, int importance) {
  if (name == kBoundTag)
    return ColumnView{std::string(kBoundTag), "bound", {}, importance};
  if (name == kSlowestTag)
    return ColumnView{std::string(kSlowestTag), "slowest", {}, importance};
  const model::Measure* measure = model::find_measure(name);
  if (measure == nullptr)
    return {};
  const std::string_view unit = model::unit_name(measure->unit);
  return ColumnView{
      std::string(measure->tag), std::string(measure->title), std::string(unit), importance};
}

/// The name most similar to `name`, among `names` and the titles of measures.
std::string nearest_value(std::string_view name, std::vector<std::string> names) {
  for (const model::Measure& measure : model::measures())
    names.emplace_back(measure.title);
  return base::did_you_mean(name, names);
}

tl::unexpected<base::Error> no_such_value(std::string_view name,
                                          std::string_view option,
                                          std::string hint) {
  if (hint.empty())
    hint = "See the names with: rangescope help columns";
  const std::string problem = "no region has a value named '" + base::printable(name) + "'";
  return base::fail(base::Code::kUsage, problem, std::string(option), std::move(hint));
}

base::Result<ColumnView> column_of(const model::Report& report,
                                   std::string_view name,
                                   int importance,
                                   std::string_view option) {
  if (auto column = fixed_column(name, importance))
    return std::move(*column);
  std::string_view metric_name = name;
  if (metric_name.starts_with(kMetricPrefix))
    metric_name.remove_prefix(kMetricPrefix.size());
  if (const model::Metric* metric = find_metric(report, metric_name)) {
    const std::string tag = std::string(kMetricPrefix) + std::string(metric_name);
    return ColumnView{tag, base::printable(metric_name), metric->unit, importance};
  }
  return no_such_value(name, option, nearest_value(name, value_names(report)));
}

/// CUPTI's metrics have `__` in their names; CPU events have an underscore and no dot. Which of
/// them exist is known only after the run.
bool may_be_metric(std::string_view name) {
  const bool has_underscore = name.find('_') != std::string_view::npos;
  const bool has_dot = name.find('.') != std::string_view::npos;
  return name.find("__") != std::string_view::npos || (has_underscore && !has_dot);
}

base::Result<void> check_value(std::string_view name,
                               std::string_view option,
                               MetricNames metrics) {
  if (name.starts_with(kMetricPrefix) || fixed_column(name, 0))
    return {};
  if (std::ranges::find(metrics, name) != metrics.end())
    return {};
  std::vector<std::string> names = model::measure_tags();
  names.insert(names.end(), metrics.begin(), metrics.end());
  std::string hint = nearest_value(name, std::move(names));
  if (hint.empty() && may_be_metric(name))
    return {};
  return no_such_value(name, option, std::move(hint));
}

tl::unexpected<base::Error> not_sortable(const std::string& tag) {
  const std::string problem = "'" + tag + "' is text, not a number";
  return base::fail(base::Code::kUsage, problem, "--sort", "Sort by wall or gpu.busy_ns");
}

bool has_gpu(const model::Report& report) {
  const auto busy = [](const base::Held<model::GpuWork>& work) {
    return work && (work->kernels > 0 || work->busy_ns > 0);
  };
  if (busy(report.total) || busy(report.unattributed))
    return true;
  return std::any_of(report.regions.begin(), report.regions.end(), [&](const Region& region) {
    return busy(region.gpu);
  });
}

std::string process_title(const model::Report& report, std::uint32_t index) {
  if (index >= report.processes.size())
    return fmt::format("process {}", index);
  const model::ReportProcess& process = report.processes[index];
  const std::string title =
      fmt::format("process {} {}", process.pid, base::printable(process.name));
  if (process.rank)
    return fmt::format("rank {} ({})", *process.rank, title);
  return title;
}

std::string scope_title(const model::Report& report, const Region& region) {
  std::string process = "all processes";
  if (region.process)
    process = process_title(report, *region.process);
  if (region.thread)
    return fmt::format("thread {} of {}", *region.thread, process);
  return process;
}

/// "GPU (compute capability 9.0)" of a device without a name, "" without that too.
std::string device_name(const model::Report& report, std::size_t index) {
  if (index < report.device_names.size() && !report.device_names[index].empty())
    return report.device_names[index];
  const model::Device& device = report.devices[index];
  if (device.compute_major <= 0)
    return {};
  return fmt::format("GPU (compute capability {}.{})", device.compute_major, device.compute_minor);
}

/// Chooses the columns of a table for which none were requested.
class DefaultColumns {
 public:
  explicit DefaultColumns(const model::Report& report) : report_(report) {}

  std::vector<ColumnView> choose(bool flat) {
    add_time(flat);
    add_processes();
    if (any([](const Region& region) { return region.memory.has_value(); }))
      add_all(kMemoryColumns);
    if (any([](const Region& region) { return region.wall.profiler_ns > 0; }))
      add("wall_ns.profiler", 7);
    for (std::size_t i = 0; i < report_.metric_columns.size() && i < kMaxMetricColumns; ++i) {
      // Requested metrics are wider than most columns: the first two stay longer.
      const int importance = i < 2 ? 7 : 5;
      add_metric(report_.metric_columns[i], importance);
    }
    for (const std::string_view tag :
         {"utilization.executed", "utilization.useful", "utilization.bandwidth"}) {
      if (any([&](const Region& region) { return model::value_of(region, tag).has_value(); }))
        add(tag, 6);
    }
    if (any([](const Region& region) { return has_limiter(region.bound); }))
      add(kBoundTag, 9);
    return std::move(columns_);
  }

 private:
  template <class Predicate>
  [[nodiscard]] bool any(Predicate predicate) const {
    return std::ranges::any_of(report_.regions, predicate);
  }

  void add(std::string_view tag, int importance) {
    columns_.push_back(*column_of(report_, tag, importance, ""));
  }

  void add_all(std::span<const Choice> choices) {
    for (const Choice& choice : choices)
      add(choice.tag, choice.importance);
  }

  /// A flat list starts with the self times that it is sorted by.
  void add_time(bool flat) {
    columns_.push_back({std::string(kShareTag), "share", "ratio", 11});
    if (flat) {
      add("wall_ns.exclusive", 11);
      add("gpu.exclusive_kernel_ns", 11);
    }
    std::span<const Choice> choices = kNvtxColumns;
    if (has_gpu(report_))
      choices = kGpuColumns;
    for (const Choice& choice : choices) {
      const bool is_repeated = flat && choice.tag == "wall_ns.exclusive";
      if (!is_repeated)
        add(choice.tag, choice.importance);
    }
  }

  void add_processes() {
    const bool has_ranks = any([](const Region& region) { return region.ranks.has_value(); });
    if (has_ranks) {
      add_all(kRankColumns);
      add(kSlowestTag, 8);
      if (any([](const Region& region) { return region.communication.has_value(); }))
        add_all(kCommunicationColumns);
      return;
    }
    const bool has_processes =
        any([](const Region& region) { return region.across && !region.across->of_threads; });
    if (has_processes)
      add_all(kProcessColumns);
  }

  void add_metric(const model::MetricColumn& metric, int importance) {
    auto column = column_of(report_, "metrics." + metric.name, importance, "--columns");
    if (!column)
      return;  // no region has it
    column->title = base::printable(metric.title);
    const bool has_room = column->title.size() + kPerInstance.size() <= kLongTitle;
    if (has_room && is_per_instance(*column, metric.name))
      column->title += kPerInstance;
    columns_.push_back(std::move(*column));
  }

  /// Are the column's values amounts of one instance? Other columns are totals of the region, so
  /// its title has to say so. cell() omits amounts of all instances from such a column.
  [[nodiscard]] bool is_per_instance(const ColumnView& column, const std::string& name) const {
    constexpr std::string_view kAmounts[] = {"ns", "byte", "FLOP", "count", "J"};
    if (std::ranges::find(kAmounts, column.unit) == std::end(kAmounts))
      return false;
    const auto is_of_all_instances = [&](const Region& region) {
      const auto metric = region.metrics.find(name);
      return metric != region.metrics.end() && metric->second.of_all;
    };
    const auto is_of_one_instance = [&](const Region& region) {
      const auto metric = region.metrics.find(name);
      if (metric == region.metrics.end())
        return false;
      return metric->second.absent.empty() && !metric->second.of_all;
    };
    return !any(is_of_all_instances) || any(is_of_one_instance);
  }

  const model::Report& report_;
  std::vector<ColumnView> columns_;
};

}  // namespace

std::vector<std::string> device_texts(const model::Report& report) {
  struct DeviceModel {
    std::string name;
    std::set<std::string> uuids;
    std::map<std::uint32_t, std::size_t> count_by_process;
  };
  std::vector<DeviceModel> models;
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const std::string name = device_name(report, i);
    if (name.empty())
      continue;
    auto found = std::ranges::find(models, name, &DeviceModel::name);
    if (found == models.end())
      found = models.insert(models.end(), {name, {}, {}});
    if (i < report.device_uuids.size() && !report.device_uuids[i].empty())
      found->uuids.insert(report.device_uuids[i]);
    ++found->count_by_process[report.devices[i].process];
  }
  const bool has_names = std::ranges::any_of(report.device_names,
                                             [](const std::string& name) { return !name.empty(); });
  std::vector<std::string> texts;
  for (const DeviceModel& gpu : models) {
    // The same GPUs, listed by a tool that prints no names.
    const bool is_repeated = has_names && gpu.name.starts_with("GPU (");
    if (is_repeated)
      continue;
    std::size_t count = gpu.uuids.size();
    for (const auto& [process, process_count] : gpu.count_by_process)
      count = std::max(count, process_count);
    if (count > 1)
      texts.push_back(fmt::format("{}x {}", count, gpu.name));
    else
      texts.push_back(gpu.name);
  }
  return texts;
}

std::optional<std::uint32_t> pid_of(const model::Report& report,
                                    std::optional<std::uint32_t> process) {
  if (!process || *process >= report.processes.size())
    return {};
  return report.processes[*process].pid;
}

std::vector<std::string> value_names(const model::Report& report) {
  std::vector<std::string> names = model::measure_tags();
  std::set<std::string> metrics;
  for (const Region& region : report.regions) {
    for (const auto& [name, metric] : region.metrics)
      metrics.insert("metrics." + name);
  }
  for (const model::KernelMetrics& result : report.unattributed_results) {
    for (const auto& [name, metric] : result.metrics)
      metrics.insert("metrics." + name);
  }
  names.insert(names.end(), metrics.begin(), metrics.end());
  return names;
}

base::Result<std::vector<ColumnView>> columns(const model::Report& report, const Style& style) {
  if (style.columns.empty())
    return DefaultColumns(report).choose(style.flat);
  std::vector<ColumnView> requested;
  for (const std::string& name : style.columns) {
    auto column = TRY(column_of(report, name, 0, "--columns"));
    requested.push_back(std::move(column));
  }
  return requested;
}

base::Result<void> check_values(const Style& style, MetricNames metrics) {
  for (const std::string& name : style.columns)
    TRY(check_value(name, "--columns", metrics));
  if (style.sort.empty())
    return {};
  if (style.sort == kBoundTag || style.sort == kSlowestTag)
    return not_sortable(style.sort);
  return check_value(style.sort, "--sort", metrics);
}

std::vector<std::string> remove_absent_metrics(const model::Report& report, Style& style) {
  std::vector<std::string> absent;
  const auto is_absent = [&](const std::string& name) {
    const bool is_metric = name.starts_with(kMetricPrefix) || may_be_metric(name);
    return is_metric && !column_of(report, name, 0, "");
  };
  for (const std::string& name : style.columns)
    if (is_absent(name))
      absent.push_back(name);
  std::erase_if(style.columns, is_absent);
  if (!style.sort.empty() && is_absent(style.sort))
    absent.push_back(std::exchange(style.sort, std::string()));
  return absent;
}

base::Result<std::string> sort_tag(const model::Report& report, const Style& style) {
  if (style.sort.empty())
    return std::string();
  auto column = TRY(column_of(report, style.sort, 0, "--sort"));
  if (column.tag == kBoundTag || column.tag == kSlowestTag)
    return not_sortable(column.tag);
  return std::move(column.tag);
}

std::vector<ScopeView> all_scopes(const model::Report& report) {
  std::vector<ScopeView> views;
  std::vector<std::uint32_t> row_of(report.regions.size(), model::kNone);
  const Region* previous = nullptr;
  for (std::uint32_t id = 0; id < report.regions.size(); ++id) {
    const Region& region = report.regions[id];
    const bool is_same_scope = previous != nullptr && previous->process == region.process &&
                               previous->thread == region.thread;
    if (!is_same_scope)
      views.push_back({scope_title(report, region), {}, 0});
    previous = &region;
    std::vector<RowView>& rows = views.back().rows;
    row_of[id] = static_cast<std::uint32_t>(rows.size());
    const Region* parent = nullptr;
    std::uint32_t parent_row = model::kNone;
    if (region.parent < report.regions.size()) {
      parent = &report.regions[region.parent];
      parent_row = row_of[region.parent];
    }
    rows.push_back({&region, label_of(region, parent), region.depth, parent_row, 1});
  }
  return views;
}

void choose_rows(
    ScopeView& scope, int depth, std::size_t top, std::string_view sort, std::string_view cost) {
  const std::vector<RowView>& rows = scope.rows;
  const auto descending_by = [&](std::string_view tag) {
    return [&rows, tag](std::size_t a, std::size_t b) {
      return model::value_of(*rows[a].region, tag).value_or(-1) >
             model::value_of(*rows[b].region, tag).value_or(-1);
    };
  };
  std::vector<char> is_kept(rows.size(), top == 0);
  if (top > 0) {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, descending_by(cost));
    for (std::size_t i = 0; i < order.size() && i < top; ++i) {
      // With the rows above it, up to one that is kept already.
      for (std::size_t row = order[i]; row < rows.size() && is_kept[row] == 0;
           row = rows[row].parent)
        is_kept[row] = 1;
    }
  }
  std::map<std::uint32_t, std::vector<std::size_t>> children_of;
  for (std::size_t row = 0; row < rows.size(); ++row)
    children_of[rows[row].parent].push_back(row);
  if (!sort.empty()) {
    for (auto& [parent, children] : children_of)
      std::ranges::stable_sort(children, descending_by(sort));
  }
  std::vector<RowView> chosen;
  std::vector<std::size_t> pending;  // no recursion: a path may be thousands of levels deep
  const auto push_children = [&](std::uint32_t parent) {
    if (const auto children = children_of.find(parent); children != children_of.end())
      pending.insert(pending.end(), children->second.rbegin(), children->second.rend());
  };
  push_children(model::kNone);
  while (!pending.empty()) {
    const std::size_t row = pending.back();
    pending.pop_back();
    push_children(static_cast<std::uint32_t>(row));
    const bool is_too_deep = depth > 0 && rows[row].depth >= static_cast<std::size_t>(depth);
    if (is_kept[row] != 0 && !is_too_deep)
      chosen.push_back(rows[row]);
    else
      scope.hidden += rows[row].regions;
  }
  scope.rows = std::move(chosen);
}

base::Result<std::vector<ScopeView>> scopes(const model::Report& report, const Style& style) {
  const auto sort = TRY(sort_tag(report, style));
  std::vector<ScopeView> views = all_scopes(report);
  for (ScopeView& view : views)
    choose_rows(view, style.depth, style.top, sort, sort.empty() ? "wall_ns.inclusive" : sort);
  return views;
}

std::string format_value(double value, std::string_view unit) {
  if (unit == "ns")
    return base::format_ns(value);
  if (unit == "byte")
    return base::format_bytes(value);
  if (unit == "ratio")
    return base::format_share(value);
  if (unit == "count")
    return base::format_count(std::llround(value));
  if (unit.starts_with("byte/"))
    return base::format_si(value, "B" + std::string(unit.substr(4)));
  return base::format_si(value, unit);
}

std::string format_utilization(double share) {
  const double percent = std::fabs(share) * 100;
  const bool would_print_as_zero = percent > 0 && percent < 0.05;
  if (!would_print_as_zero)
    return base::format_share(share);
  const int digits = static_cast<int>(std::ceil(-std::log10(percent)));
  return fmt::format("{:.{}f} %", share * 100, std::min(12, digits));
}

/// A share up to 100 %, then a factor. GPU work belongs to the range that launched it, may outlast
/// the range and may run on several GPUs: above 1 it is not a share of the range's time.
std::string format_busy(double share) {
  if (share < 1.0005)
    return base::format_share(share);
  if (share < 9.995)
    return fmt::format("{:.2f}x", share);
  if (share < 99.95)
    return fmt::format("{:.1f}x", share);
  return base::format_count(std::llround(std::min(share, 1e15))) + "x";
}

/// Do its calls mostly wait for a rank that comes later? Then the one that is in them longest came
/// first: it is the least slow.
bool is_mostly_waiting(const Region& region) {
  if (!region.communication)
    return false;
  const model::Communication& calls = *region.communication;
  return !calls.held_up_by.empty() && calls.wait_ns > calls.time_ns / 2;
}

std::string slowest_rank_text(const Region& region) {
  if (!region.ranks)
    return "-";
  if (is_mostly_waiting(region))
    return fmt::format("rank {} is late", region.communication->held_up_by.front().rank);
  const auto& ranks = *region.ranks;
  return fmt::format("rank {}, {} of {}",
                     ranks.slowest,
                     base::format_count(ranks.slowest_in),
                     base::format_count(ranks.compared));
}

/// The metric that the column shows, or null.
const model::Metric* metric_of(const Region& region, const ColumnView& column) {
  if (!column.tag.starts_with(kMetricPrefix))
    return nullptr;
  const auto metric = region.metrics.find(column.tag.substr(kMetricPrefix.size()));
  if (metric == region.metrics.end())
    return nullptr;
  return &metric->second;
}

std::string cell(const Region& region, const ColumnView& column) {
  if (column.tag == kSlowestTag)
    return slowest_rank_text(region);
  if (column.tag == kBoundTag) {
    if (!region.bound)
      return "-";
    return base::printable(region.bound->kind);
  }
  const auto value = model::value_of(region, column.tag);
  if (!value)
    return "-";
  if (column.tag.starts_with("utilization."))
    return format_utilization(*value);
  if (column.tag == "gpu.busy_share")
    return format_busy(*value);
  std::string text = format_value(*value, column.unit);
  const bool is_estimated = region.module && column.tag.starts_with("wall_ns.");
  if (is_estimated && *value > 0)
    text.insert(0, "~");
  const model::Metric* metric = metric_of(region, column);
  if (metric == nullptr)
    return text;
  if (metric->of_all && column.title.ends_with(kPerInstance))
    return "-";
  // Energy is extrapolated from some instances: it is shown with its interval.
  const bool is_extrapolated = metric->source.find(" energy / ") != std::string::npos;
  if (*value <= 0 || !is_extrapolated)
    return text;
  return fmt::format("{} ±{:.2g} %", text, 50 * (metric->max - metric->min) / *value);
}

std::optional<double> share_of(const Region& region) {
  if (const auto wall = model::value_of(region, "wall_ns.share"); wall && *wall > 0)
    return wall;
  return model::value_of(region, "gpu.share");
}

std::string label_of(const Region& region, const Region* parent) {
  std::string label = "?";
  if (!region.path.empty())
    label = base::printable(region.path.back());
  if (label.empty())
    label = "\"\"";
  if (region.module && parent != nullptr && parent->module) {
    // Below "model.layers.3 (Layer)", "model.layers.3.mlp (Mlp)" is "mlp (Mlp)".
    const std::string parent_label = base::printable(parent->path.back());
    const std::string prefix = std::string(model::without_class(parent_label)) + ".";
    if (label.starts_with(prefix))
      label.erase(0, prefix.size());
  }
  if (parent == nullptr && region.path.size() > 1) {
    for (std::size_t i = region.path.size() - 1; i-- > 0;)
      label = base::printable(region.path[i]) + " > " + label;
  }
  const bool shows_domain = parent == nullptr || parent->domain != region.domain;
  if (!region.domain.empty() && shows_domain)
    label.insert(0, base::printable(region.domain) + "@");
  if (region.kind == model::RangeKind::kStartEnd)
    label += model::kStartEndMark;
  return label;
}

std::string_view copy_kind_name(model::CopyKind kind) {
  constexpr std::string_view kNames[] = {"unknown",
                                         "host_to_device",
                                         "device_to_host",
                                         "host_to_array",
                                         "array_to_host",
                                         "array_to_array",
                                         "array_to_device",
                                         "device_to_array",
                                         "device_to_device",
                                         "host_to_host",
                                         "peer_to_peer"};
  const auto index = static_cast<std::size_t>(kind);
  if (index >= std::size(kNames))
    return kNames[0];
  return kNames[index];
}

std::string work_sentence(const model::GpuWork& work) {
  std::vector<std::string> parts;
  if (work.kernels > 0)
    parts.push_back(fmt::format(
        "{} ({})", base::counted(work.kernels, "kernel"), base::format_ns(work.kernel_ns)));
  if (work.copies > 0)
    parts.push_back(fmt::format("{} ({}, {})",
                                base::counted(work.copies, "copy"),
                                base::format_bytes(work.copy_bytes),
                                base::format_ns(work.copy_ns)));
  if (work.memsets > 0)
    parts.push_back(base::counted(work.memsets, "memset"));
  if (work.graph_launches > 0)
    parts.push_back(base::counted(work.graph_launches, "graph launch"));
  if (!parts.empty())
    parts.push_back("GPU busy " + base::format_ns(work.busy_ns));
  return base::join(parts, ", ");
}

}  // namespace rangescope::report
