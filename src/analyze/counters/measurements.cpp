#include "analyze/counters/measurements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "analyze/gpu/gpu.hpp"
#include "analyze/statistics/spread.hpp"
#include "analyze/tree/groups.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::MeasuredScope;
using model::Measurement;
using model::OpenRange;
using model::RangeKind;
using model::Session;

using Chain = std::vector<OpenRange>;  ///< outermost first

/// The paths a result belongs to: one a domain for push/pop ranges, one for each start/end range.
/// For a range result only that of its last range.
std::vector<Chain> chains_of(const Session& session, const Measurement& result, bool nested) {
  std::vector<Chain> chains;
  std::map<std::uint32_t, std::size_t> of_domain;
  std::size_t last = 0;
  for (const OpenRange& range : result.ranges) {
    if (range.domain >= session.domains.size())
      continue;
    if (range.kind == RangeKind::kStartEnd) {
      last = chains.size();
      chains.push_back({range});
      continue;
    }
    const auto [at, added] = of_domain.emplace(nested ? 0 : range.domain, chains.size());
    if (added)
      chains.emplace_back();
    last = at->second;
    chains[last].push_back(range);
  }
  if (result.scope == MeasuredScope::kRange && chains.size() > 1)
    return {std::move(chains[last])};
  return chains;
}

using PathKey = std::tuple<std::uint32_t,
                           std::uint32_t,
                           model::StringId,
                           RangeKind>;  // parent, domain, name, kind

std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
  seed = (seed ^ value) * 0x9e3779b97f4a7c15ull;
  return seed ^ (seed >> 31);
}

/// The metric that is the time of a result; kNone where none is.
std::uint32_t time_metric(const Session& session) {
  for (std::uint32_t m = 0; m < session.metrics.size(); ++m)
    if (session.metrics[m].name == "gpu__time_duration.sum")
      return m;
  return kNone;
}

/// Running sums of one metric of one region, by occurrence.
struct Summed {
  std::vector<double> by_occurrence;
  std::vector<bool> present;
};

/// Rows of kernels with their counters that one region lists. A report of thousands of results with
/// hundreds of metrics each would else be gigabytes of numbers that no one reads; its sums are of
/// all of them in any case.
constexpr std::size_t kMostKernels = 1000;

/// What results say about one node, in one process or over all.
struct Collected {
  std::map<std::uint32_t, std::vector<double>> range_values;  ///< metric: one value a range result
  std::unordered_map<std::uint64_t, std::uint32_t> occurrences;
  std::map<std::uint32_t, Summed> sums;  ///< summable metrics of kernels
  std::set<std::uint32_t> not_summable;
  /// (kernel name, ordinal): indexes of its results
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> kernels;
  bool occurrence_unknown = false;
  // Without a timeline:
  std::int64_t range_results = 0;  ///< each of them is an occurrence
  std::int64_t count = 0, exclusive = 0, inherited = 0, graphs = 0;
  double exclusive_ns = 0;
  /// By kernel name: nanoseconds, and how many launches they are the mean of.
  std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::int64_t>>> durations;
  std::map<std::uint32_t, std::map<std::uint32_t, std::int64_t>> shapes;
  std::vector<std::uint32_t> results;
  std::set<std::string> notes;
};

/// What ncu calls a result that is no kernel.
std::string_view scope_name(MeasuredScope scope) {
  switch (scope) {
    case MeasuredScope::kKernel: return "kernel";
    case MeasuredScope::kRange: return "range";
    case MeasuredScope::kGraph: return "graph";
    case MeasuredScope::kCommandList: return "cmdlist";
  }
  return {};
}

model::Metric metric_of(const model::MetricDef& def,
                        std::vector<double> values,
                        std::string_view how) {
  model::Metric metric;
  metric.unit = def.unit;
  metric.rounds = static_cast<std::int64_t>(values.size());
  metric.min = *std::min_element(values.begin(), values.end());
  metric.max = *std::max_element(values.begin(), values.end());
  metric.value = median_of(values);
  metric.source = def.source + std::string(how);
  return metric;
}

class Joiner {
 public:
  Joiner(const Session& session,
         const Options& options,
         const Tree& tree,
         const std::vector<char>& chosen)
      : session_(session), nested_(options.domains == Domains::kNested), chosen_(chosen) {
    for (std::uint32_t n = 0; n < tree.nodes.size(); ++n) {
      const Node& node = tree.nodes[n];
      nodes_.emplace(PathKey{node.parent, node.domain, node.name, node.kind}, n);
    }
    time_ = time_metric(session);
  }

  void take(const Measurement& result) {
    const bool is_kernel = result.scope == MeasuredScope::kKernel;
    if (is_kernel && result.kernel_name < chosen_.size() && !chosen_[result.kernel_name])
      return;
    const auto chains = chains_of(session_, result, nested_);
    const NodesAround around = nodes_around(result, chains);
    if (!around.joined) {
      note_unjoined(result, chains.empty());
      if (chains.empty())
        take_outside(result);
    }
    if (is_kernel)
      count(total_, result, false, false);
    const auto index = static_cast<std::uint32_t>(&result - session_.measurements.data());
    for (const std::uint32_t process : {kNone, result.process}) {
      for (const std::uint32_t node : around.nodes)
        collected_[{node, process}].results.push_back(index);
      if (is_kernel)
        take_kernel(result, around, process);
      else
        take_range(result, around, process);
    }
  }

  void finish(const std::vector<RegionKey>& keys,
              bool timeline,
              bool gpu_timeline,
              std::size_t top,
              model::Report& report) {
    for (std::size_t r = 0; r < keys.size(); ++r) {
      model::Region& region = report.regions[r];
      const auto found = collected_.find({keys[r].node, keys[r].process});
      if (found != collected_.end())
        for (const std::uint32_t index : found->second.results)
          if (keys[r].thread == kNone || keys[r].thread == session_.measurements[index].thread)
            region.results.push_back(index);
      if (keys[r].thread != kNone)
        continue;  // sums are over all threads
      if (!timeline)
        forget_wall(region);
      if (found == collected_.end())
        continue;
      Collected& at = found->second;
      fill_metrics(at, region);
      list_kernels(at, region.kernels, region.notes);
      region.notes.insert(region.notes.end(), at.notes.begin(), at.notes.end());
      if (timeline)
        continue;
      if (!at.occurrence_unknown) {
        region.occurrences =
            std::max(at.range_results, static_cast<std::int64_t>(at.occurrences.size()));
      }
      if (!gpu_timeline && (at.count > 0 || at.graphs > 0))
        region.gpu = work_of(at, top);
    }
    if (!timeline && !gpu_timeline && total_.count > 0) {
      report.total = work_of(total_, top);
      report.kernels = work_of(total_, std::numeric_limits<std::size_t>::max()).top_kernels;
      report.unattributed = outside_.count > 0 ? work_of(outside_, top) : model::GpuWork{};
    }
    list_kernels(outside_, report.unattributed_results, report.notes);
    for (const std::uint32_t index : outside_wholes_)
      report.unattributed_results.push_back(
          kernel_metrics(kNone, session_.measurements[index].ordinal, {index}));
    std::ranges::stable_sort(report.unattributed_results, {}, &model::KernelMetrics::ordinal);
    if (unjoined_ > 0) {
      std::vector<std::string> shown(unjoined_paths_.begin(), unjoined_paths_.end());
      report.losses.push_back({"measurement_without_region",
                               unjoined_,
                               fmt::format("{} measured in ranges that no other input has: {}{}.",
                                           base::counted(unjoined_, "result"),
                                           base::join(shown, ", "),
                                           shown.size() == kShown ? " ..." : "")});
    }
  }

 private:
  /// The nodes that a result was measured in.
  struct NodesAround {
    std::set<std::uint32_t> nodes, innermost, with_child;
    std::set<std::uint32_t> inherited;
    std::map<std::uint32_t, std::uint64_t> occurrence;  ///< by node
    std::set<std::uint32_t> unknown;                    ///< nodes whose occurrence is not known
    bool joined = false;                                ///< there are nodes for all of its ranges
  };

  [[nodiscard]] NodesAround nodes_around(const Measurement& result,
                                         const std::vector<Chain>& chains) const {
    NodesAround around;
    around.joined = !chains.empty();
    for (const Chain& chain : chains) {
      std::uint32_t node = kNone;
      std::uint64_t instance = mix(result.process + 1, result.thread);
      bool has_instances = true;
      for (const OpenRange& range : chain) {
        const auto found = nodes_.find(PathKey{node, range.domain, range.name, range.kind});
        if (found == nodes_.end()) {
          around.joined = false;
          node = kNone;
          break;
        }
        if (node != kNone)
          around.with_child.insert(node);
        node = found->second;
        has_instances &= range.instance != 0;
        instance = mix(instance, range.instance);
        around.nodes.insert(node);
        around.occurrence[node] = instance;
        if (!has_instances)
          around.unknown.insert(node);
        if (range.inherited)
          around.inherited.insert(node);
      }
      if (node != kNone)
        around.innermost.insert(node);
    }
    return around;
  }

  /// A result of a range or a graph.
  void take_range(const Measurement& result, const NodesAround& around, std::uint32_t process) {
    for (const std::uint32_t node : around.innermost) {
      Collected& collected = collected_[{node, process}];
      ++collected.range_results;
      for (const model::MetricValue& value : result.values) {
        if (value.metric < session_.metrics.size())
          collected.range_values[value.metric].push_back(value.value);
      }
      if (!result.note.empty())
        collected.notes.insert(result.note);
    }
    for (const std::uint32_t node : around.nodes) {
      Collected& collected = collected_[{node, process}];
      occurrence_number(collected, around.occurrence.at(node));
      collected.occurrence_unknown |= around.unknown.contains(node);
      if (result.scope == MeasuredScope::kGraph)
        ++collected.graphs;
    }
  }

  void take_kernel(const Measurement& result, const NodesAround& around, std::uint32_t process) {
    for (const std::uint32_t node : around.nodes) {
      Collected& collected = collected_[{node, process}];
      const bool is_unknown = around.unknown.contains(node);
      collected.occurrence_unknown |= is_unknown;
      const std::uint32_t number =
          occurrence_number(collected, is_unknown ? 0 : around.occurrence.at(node));
      for (const model::MetricValue& value : result.values) {
        // A summary's line is the mean of its launches.
        if (value.metric < session_.metrics.size())
          add_sum(collected, value.metric, value.value * result.launches, number);
      }
      count(collected, result, !around.with_child.contains(node), around.inherited.contains(node));
      if (!result.note.empty())
        collected.notes.insert(result.note);
    }
    const auto index = static_cast<std::uint32_t>(&result - session_.measurements.data());
    for (const std::uint32_t node : around.innermost)
      collected_[{node, process}].kernels[{result.kernel_name, result.ordinal}].push_back(index);
  }

  static std::uint32_t occurrence_number(Collected& collected, std::uint64_t occurrence) {
    const auto next_number = static_cast<std::uint32_t>(collected.occurrences.size());
    return collected.occurrences.emplace(occurrence, next_number).first->second;
  }

  static constexpr std::size_t kShown = 5;

  void take_outside(const Measurement& result) {
    const auto index = static_cast<std::uint32_t>(&result - session_.measurements.data());
    if (result.scope != MeasuredScope::kKernel)
      return outside_wholes_.push_back(index);
    count(outside_, result, true, false);
    outside_.kernels[{result.kernel_name, result.ordinal}].push_back(index);
  }

  /// Amounts: counters that are sums, and what formulas make of them in these units (conf/metrics).
  bool summable(std::uint32_t metric) const {
    const model::MetricDef& def = session_.metrics[metric];
    return def.name.ends_with(".sum") ||
           (def.source.starts_with("derived:") &&
            (def.unit == "byte" || def.unit == "FLOP" || def.unit == "count" || def.unit == "ns"));
  }

  void add_sum(Collected& at, std::uint32_t metric, double value, std::uint32_t occurrence) {
    if (!summable(metric)) {
      at.not_summable.insert(metric);
      return;
    }
    Summed& sum = at.sums[metric];
    if (sum.by_occurrence.size() <= occurrence) {
      sum.by_occurrence.resize(occurrence + 1, 0);
      sum.present.resize(occurrence + 1, false);
    }
    sum.by_occurrence[occurrence] += value;
    sum.present[occurrence] = true;
  }

  void count(Collected& at, const Measurement& result, bool exclusive, bool inherited) {
    const std::int64_t launches = result.launches;
    at.count += launches;
    at.exclusive += exclusive ? launches : 0;
    at.inherited += inherited ? launches : 0;
    at.shapes[result.kernel_name][result.shape] += launches;
    for (const model::MetricValue& value : result.values) {
      if (value.metric != time_)
        continue;
      at.durations[result.kernel_name].emplace_back(std::llround(value.value), launches);
      if (exclusive)
        at.exclusive_ns += value.value * static_cast<double>(launches);
    }
  }

  void note_unjoined(const Measurement& result, bool no_range) {
    if (no_range)
      return;  // outside every range: nothing to join
    ++unjoined_;
    if (unjoined_paths_.size() >= kShown)
      return;
    std::string path;
    for (const OpenRange& range : result.ranges) {
      path += (path.empty() ? "" : " > ") + base::printable(session_.strings.view(range.name));
    }
    unjoined_paths_.insert(path);
  }

  void fill_metrics(Collected& at, model::Region& region) const {
    for (auto& [metric, values] : at.range_values) {
      const model::MetricDef& def = session_.metrics[metric];
      region.metrics[def.name] = metric_of(def, std::move(values), " range");
    }
    for (const auto& [metric, sum] : at.sums) {
      const model::MetricDef& def = session_.metrics[metric];
      if (region.metrics.contains(def.name))
        continue;
      std::vector<double> values;
      for (std::size_t o = 0; o < sum.by_occurrence.size(); ++o) {
        if (sum.present[o])
          values.push_back(sum.by_occurrence[o]);
      }
      if (values.empty())
        continue;
      region.metrics[def.name] = metric_of(
          def,
          std::move(values),
          at.occurrence_unknown ? " sum over all measured kernels (instances are not distinguished)"
                                : " sum over the measured kernels");
      region.metrics[def.name].of_all = at.occurrence_unknown;
    }
    for (const std::uint32_t metric : at.not_summable) {
      const model::MetricDef& def = session_.metrics[metric];
      if (region.metrics.contains(def.name))
        continue;
      model::Metric absent;
      absent.unit = def.unit;
      absent.source = def.source;
      absent.absent = "measured per kernel and not additive: see the region's kernels";
      region.metrics[def.name] = std::move(absent);
    }
  }

  /// The kernels with their counters; of very many those that took longest, in their order all the
  /// same.
  void list_kernels(const Collected& at,
                    std::vector<model::KernelMetrics>& out,
                    std::vector<std::string>& notes) const {
    std::vector<double> times;
    if (at.kernels.size() > kMostKernels) {
      for (const auto& [key, results] : at.kernels)
        times.push_back(time_of(results));
      std::nth_element(
          times.begin(), times.begin() + (kMostKernels - 1), times.end(), std::greater<>());
    }
    const double shortest_listed = times.empty() ? 0 : times[kMostKernels - 1];
    for (const auto& [key, results] : at.kernels) {
      if (!times.empty() && (out.size() == kMostKernels || time_of(results) < shortest_listed))
        continue;
      out.push_back(kernel_metrics(key.first, key.second, results));
    }
    if (!times.empty())
      notes.push_back(
          fmt::format("counters are listed for the {} longest of {} kernels; sums cover all",
                      out.size(),
                      at.kernels.size()));
  }

  double time_of(const std::vector<std::uint32_t>& results) const {
    double time = 0;
    for (const std::uint32_t index : results)
      for (const model::MetricValue& value : session_.measurements[index].values)
        if (value.metric == time_)
          time += value.value;
    return time;
  }

  model::KernelMetrics kernel_metrics(std::uint32_t kernel,
                                      std::uint32_t ordinal,
                                      const std::vector<std::uint32_t>& results) const {
    model::KernelMetrics out;
    if (kernel < session_.kernel_names.size())
      out.name = std::string(session_.strings.view(shown_name(session_.kernel_names[kernel])));
    else if (!results.empty())
      out.name = scope_name(session_.measurements[results.front()].scope);
    out.ordinal = ordinal;
    std::map<std::uint32_t, std::vector<double>> by_metric;
    for (const std::uint32_t index : results)
      for (const model::MetricValue& value : session_.measurements[index].values)
        if (value.metric < session_.metrics.size())
          by_metric[value.metric].push_back(value.value);
    for (const auto& [metric, values] : by_metric) {
      out.metrics[session_.metrics[metric].name] =
          metric_of(session_.metrics[metric], values, " kernel");
    }
    return out;
  }

  static void forget_wall(model::Region& region) {
    region.occurrences = region.unclosed = -1;
    region.wall = {.inclusive_ns = model::kNan,
                   .exclusive_ns = model::kNan,
                   .per_occurrence_ns = model::kNoSpread,
                   .share = model::kNan};
    if (region.threads == 0)
      region.threads = -1;
  }

  /// Functions with one demangled name.
  struct NamedKernel {
    std::uint32_t number = kNone;  ///< of the first one
    std::map<std::uint32_t, std::int64_t> shapes;
    std::vector<std::int64_t> times;
    std::int64_t timed_launches = 0;  ///< that the times are of
    double total_ns = 0;
  };

  [[nodiscard]] std::map<model::StringId, NamedKernel> kernels_by_name(
      const Collected& collected) const {
    std::map<model::StringId, NamedKernel> by_name;
    for (const auto& [number, shapes] : collected.shapes) {
      const bool named = number < session_.kernel_names.size();
      NamedKernel& kernel = by_name[named ? shown_name(session_.kernel_names[number]) : 0];
      if (kernel.number == kNone)
        kernel.number = number;
      for (const auto& [shape, calls] : shapes)
        kernel.shapes[shape] += calls;
      const auto times = collected.durations.find(number);
      if (times == collected.durations.end())
        continue;
      for (const auto& [ns, launches] : times->second) {
        kernel.times.push_back(ns);
        kernel.timed_launches += launches;
        kernel.total_ns += static_cast<double>(ns) * static_cast<double>(launches);
      }
    }
    return by_name;
  }

  [[nodiscard]] model::KernelRow kernel_row(model::StringId name, const NamedKernel& kernel) const {
    model::KernelRow row;
    row.name = std::string(session_.strings.view(name));
    if (kernel.number < session_.kernel_names.size())
      row.short_name =
          std::string(session_.strings.view(session_.kernel_names[kernel.number].short_name));
    row.shapes = static_cast<std::int64_t>(kernel.shapes.size());
    std::int64_t main_calls = 0;
    for (const auto& [shape, calls] : kernel.shapes) {
      row.calls += calls;
      if (calls <= main_calls || shape >= session_.kernel_shapes.size())
        continue;
      main_calls = calls;
      row.shape = session_.kernel_shapes[shape];
    }
    // The time of a kernel is known when every result of it has one: a part of it is no total.
    const bool is_timed = kernel.timed_launches == row.calls;
    row.total_ns = is_timed ? kernel.total_ns : model::kNan;
    row.duration_ns = model::kNoSpread;
    std::vector<std::int64_t> scratch;
    if (is_timed && kernel.times.size() == static_cast<std::size_t>(row.calls))
      row.duration_ns =
          spread_of<std::int64_t>(std::span<const std::int64_t>(kernel.times), scratch);
    else if (row.calls > 0)  // of summaries the mean alone is known
      row.duration_ns.mean = row.total_ns / static_cast<double>(row.calls);
    return row;
  }

  model::GpuWork work_of(const Collected& at, std::size_t top) const {
    model::GpuWork work = unknown_work();
    work.kernels = at.count;
    work.exclusive_kernels = at.exclusive;
    work.inherited_kernels = at.inherited;
    if (at.graphs > 0)
      work.graph_launches = at.graphs;
    const std::map<model::StringId, NamedKernel> by_name = kernels_by_name(at);
    work.distinct_kernels = static_cast<std::int64_t>(by_name.size());
    double total = 0;
    for (const auto& [name, kernel] : by_name) {
      total += kernel.total_ns;
      work.top_kernels.push_back(kernel_row(name, kernel));
    }
    if (!at.durations.empty() && total > 0) {  // of the results that have a time
      work.kernel_ns = total;
      work.exclusive_kernel_ns = at.exclusive_ns;
    }
    for (model::KernelRow& row : work.top_kernels)
      row.share = total == 0 ? model::kNan : row.total_ns / total;
    std::ranges::stable_sort(work.top_kernels, &model::KernelRow::comes_before);
    if (work.top_kernels.size() > top)
      work.top_kernels.resize(top);
    return work;
  }

  const Session& session_;
  bool nested_;
  const std::vector<char>& chosen_;
  std::map<PathKey, std::uint32_t> nodes_;
  std::uint32_t time_ = kNone;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Collected>
      collected_;  ///< (node, process or kNone)
  Collected total_, outside_;
  std::vector<std::uint32_t>
      outside_wholes_;  ///< results of ranges and graphs outside every NVTX range
  std::uint64_t unjoined_ = 0;
  std::set<std::string> unjoined_paths_;
};

}  // namespace

void add_measured_cells(const Session& session, Domains domains, Tree& tree) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, PathKey>, std::uint32_t>
      cells;               // process, thread, path
  std::int64_t order = 0;  // the order of results replaces time
  for (const Measurement& result : session.measurements) {
    const std::uint32_t thread = result.thread < session.threads.size() ? result.thread : kNone;
    ++order;
    for (const Chain& chain : chains_of(session, result, domains == Domains::kNested)) {
      std::uint32_t parent = kNone;
      for (const OpenRange& range : chain) {
        const auto [at, added] = cells.emplace(
            std::tuple(
                result.process, thread, PathKey{parent, range.domain, range.name, range.kind}),
            static_cast<std::uint32_t>(tree.cells.size()));
        if (added)
          tree.cells.push_back({.process = result.process,
                                .thread = thread,
                                .parent = parent,
                                .domain = range.domain,
                                .name = range.name,
                                .kind = range.kind,
                                .first_start_ns = order});
        parent = at->second;
      }
    }
  }
}

void add_measurements(const Regions& regions,
                      const std::vector<char>& chosen_kernels,
                      model::Report& report) {
  const Session& session = regions.session;
  if (session.measurements.empty())
    return;
  Joiner joiner(session, regions.options, regions.tree, chosen_kernels);
  for (const Measurement& result : session.measurements)
    joiner.take(result);
  joiner.finish(regions.keys,
                !session.ranges.empty(),
                has_gpu_work(session),
                regions.options.top_kernels,
                report);
}

namespace {

constexpr std::size_t kAllOf = 64;  // metrics: as many fit a table turned on its side

struct Sum {
  double weighted = 0, weight = 0, min = 0, max = 0;
  std::int64_t results = 0;
};

/// Is a mean over results to be of each alike, since the value is an amount and no rate?
bool is_amount(const model::MetricDef& def) {
  return def.name.ends_with(".sum") || def.unit == "byte" || def.unit == "FLOP" || def.unit == "ns";
}

bool is_kept(const Session& session, const model::MetricDef& def) {
  if (session.metrics.size() <= kAllOf || def.source.starts_with("derived:"))
    return true;
  return def.name.starts_with("launch__") && !def.name.starts_with("launch__occupancy_per");
}

}  // namespace

void add_kernel_counters(const Session& session,
                         const std::vector<char>& chosen,
                         model::Report& report) {
  const std::uint32_t time = time_metric(session);
  std::map<model::StringId, std::map<std::uint32_t, Sum>> by_name;
  for (const model::Measurement& result : session.measurements) {
    if (result.scope != model::MeasuredScope::kKernel ||
        result.kernel_name >= session.kernel_names.size())
      continue;
    if (result.kernel_name < chosen.size() && !chosen[result.kernel_name])
      continue;
    double weight = 1;
    for (const model::MetricValue& value : result.values)
      if (value.metric == time && value.value > 0)
        weight = value.value;
    auto& sums = by_name[shown_name(session.kernel_names[result.kernel_name])];
    for (const model::MetricValue& value : result.values) {
      if (value.metric >= session.metrics.size() ||
          !is_kept(session, session.metrics[value.metric]))
        continue;
      const double of_launch = is_amount(session.metrics[value.metric]) ? 1 : weight;
      const double value_weight = of_launch * result.launches;
      Sum& sum = sums[value.metric];
      sum.weighted += value.value * value_weight;
      sum.weight += value_weight;
      sum.min = sum.results == 0 ? value.value : std::min(sum.min, value.value);
      sum.max = sum.results == 0 ? value.value : std::max(sum.max, value.value);
      ++sum.results;
    }
  }
  for (const model::KernelRow& row : report.kernels) {
    const auto found = std::find_if(by_name.begin(), by_name.end(), [&](const auto& each) {
      return session.strings.view(each.first) == row.name;
    });
    if (found == by_name.end())
      continue;
    model::KernelCounters counters;
    counters.name = row.name;
    for (const auto& [index, sum] : found->second) {
      const model::MetricDef& def = session.metrics[index];
      model::Metric metric;
      metric.value = sum.weighted / sum.weight;
      metric.unit = def.unit;
      metric.min = sum.min;
      metric.max = sum.max;
      metric.rounds = sum.results;
      metric.source = def.source + (is_amount(def) ? " mean of " : " mean over time of ") +
                      base::counted(static_cast<std::uint64_t>(sum.results), "result");
      counters.metrics.emplace(def.name, std::move(metric));
    }
    report.kernel_counters.push_back(std::move(counters));
  }
}

}  // namespace rangescope::analyze
