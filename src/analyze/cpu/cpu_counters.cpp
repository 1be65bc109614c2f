#include "analyze/cpu/cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace rangescope::analyze {
namespace {

using model::CpuCounterSum;

constexpr double kSigmas = 1.96;     // of 95 %
constexpr double kMostUnsure = 0.5;  // of a value: a wider interval is useless

using CounterSums = std::map<std::string, CpuCounterSum, std::less<>>;

CounterSums sums_of(const model::CpuWork& work) {
  CounterSums sums;
  for (const CpuCounterSum& sum : work.counters)
    sums.emplace(sum.name, sum);
  if (work.samples > 0) {  // the clock that call chains are sampled by
    const auto samples = static_cast<double>(work.samples);
    sums.emplace("cpu-clock",
                 CpuCounterSum{"cpu-clock",
                               work.samples,
                               samples * work.interval_ns,
                               std::sqrt(samples) * work.interval_ns});
  }
  return sums;
}

/// Nothing where the region lacks one of its counters. The deviation of a formula is that of its
/// counters, one by one.
std::optional<model::Metric> metric_of(
    const model::GroupMetric& metric,
    const std::map<std::string_view, const CpuCounterSum*>& counters,
    double occurrences) {
  const auto value = [&](std::string_view moved) {
    return metric.formula.evaluate([&](std::string_view name) -> std::optional<double> {
      const CpuCounterSum& sum = *counters.at(name);
      return (sum.count + (name == moved ? sum.deviation : 0)) / occurrences;
    });
  };
  model::Metric out;
  out.unit = metric.unit;
  out.rounds = std::numeric_limits<std::int64_t>::max();
  double variance = 0;
  const auto as_counted = value({});
  if (!as_counted || !std::isfinite(*as_counted))
    return std::nullopt;
  for (const std::string& name : metric.formula.names()) {
    const CpuCounterSum& sum = *counters.at(name);
    out.rounds = std::min(out.rounds, sum.records);
    if (sum.deviation > 0)
      variance += std::pow(value(name).value_or(*as_counted) - *as_counted, 2);
  }
  out.value = *as_counted;
  out.source = std::string(model::kCpuEvents) + (variance > 0 ? ", sampled" : "");
  if (metric.formula.names().size() > 1)
    out.source += ": " + metric.formula.text();
  const double wide = kSigmas * std::sqrt(variance);
  out.min = std::max(0.0, out.value - wide);
  out.max = out.value + wide;
  if (wide > kMostUnsure * out.value && wide > 0) {
    out.absent =
        fmt::format("{} records bound it only to {:.3g} to {:.3g}", out.rounds, out.min, out.max);
    out.value = 0;
  }
  return out;
}

/// Every counter that no group has as a metric of its own is one.
std::vector<model::MetricGroup> with_single_counters(std::span<const model::MetricGroup> groups,
                                                     const std::set<std::string>& recorded) {
  std::vector<model::MetricGroup> out(groups.begin(), groups.end());
  model::MetricGroup rest;
  for (const std::string& counter : recorded) {
    std::string name = (counter.starts_with("cpu-") ? "" : "cpu_") + counter;
    std::replace(name.begin(), name.end(), '-', '_');
    rest.counters.push_back({"n" + std::to_string(rest.counters.size()), {counter}, {}});
    if (auto formula = base::Formula::parse(rest.counters.back().alias))
      rest.metrics.push_back({name, counter, "count", std::move(*formula), "", false});
  }
  out.push_back(std::move(rest));
  return out;
}

}  // namespace

void add_cpu_metrics(std::span<const model::MetricGroup> groups, model::Report& report) {
  std::set<std::string> recorded;
  for (const model::Region& region : report.regions)
    if (region.cpu)
      for (const CpuCounterSum& sum : region.cpu->counters)
        recorded.insert(sum.name);
  if (recorded.empty())
    return;
  const std::vector<model::MetricGroup> all_groups = with_single_counters(groups, recorded);
  std::set<std::string> shown;
  const auto add = [&](model::Region& region) {
    if (!region.cpu || region.occurrences <= 0)
      return;
    const CounterSums sums = sums_of(*region.cpu);
    for (const model::MetricGroup& group : all_groups) {
      std::map<std::string_view, const CpuCounterSum*> counters;
      for (const model::GroupCounter& counter : group.counters)
        for (const std::string& name : counter.any)
          if (const auto sum = sums.find(name); sum != sums.end())
            counters.try_emplace(counter.alias, &sum->second);
      for (const model::GroupMetric& metric : group.metrics) {
        const auto is_counted = [&](const std::string& name) { return counters.contains(name); };
        if (!std::ranges::all_of(metric.formula.names(), is_counted))
          continue;
        auto value = metric_of(metric, counters, static_cast<double>(region.occurrences));
        if (!value || !region.metrics.try_emplace(metric.name, std::move(*value)).second)
          continue;
        if (metric.column && shown.insert(metric.name).second)
          report.metric_columns.push_back({metric.name, metric.title});
      }
    }
  };
  for (model::Region& region : report.regions)
    add(region);
  for (model::TableRow& row : report.rows)
    if (row.merged)
      add(*row.merged);
}

}  // namespace rangescope::analyze
