#include "analyze/counters/kernel_counters.hpp"

#include <algorithm>
#include <map>

#include "analyze/tree/groups.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

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
  if (session.metrics.size() <= kAllOf || def.source.starts_with("derived:")) return true;
  return def.name.starts_with("launch__") && !def.name.starts_with("launch__occupancy_per");
}

}  // namespace

void add_kernel_counters(const Session& session, const std::vector<char>& chosen, model::Report& report) {
  std::uint32_t time = model::kNone;
  for (std::uint32_t m = 0; m < session.metrics.size(); ++m)
    if (session.metrics[m].name == "gpu__time_duration.sum") time = m;
  std::map<model::StringId, std::map<std::uint32_t, Sum>> by_name;
  for (const model::Measurement& result : session.measurements) {
    if (result.scope != model::MeasuredScope::kKernel || result.kernel_name >= session.kernel_names.size()) continue;
    if (result.kernel_name < chosen.size() && !chosen[result.kernel_name]) continue;
    double weight = 1;
    for (const model::MetricValue& value : result.values)
      if (value.metric == time && value.value > 0) weight = value.value;
    auto& sums = by_name[shown_name(session.kernel_names[result.kernel_name])];
    for (const model::MetricValue& value : result.values) {
      if (value.metric >= session.metrics.size() || !is_kept(session, session.metrics[value.metric])) continue;
      const double own = (is_amount(session.metrics[value.metric]) ? 1 : weight) * result.launches;
      Sum& sum = sums[value.metric];
      sum.weighted += value.value * own;
      sum.weight += own;
      sum.min = sum.results == 0 ? value.value : std::min(sum.min, value.value);
      sum.max = sum.results == 0 ? value.value : std::max(sum.max, value.value);
      ++sum.results;
    }
  }
  for (const model::KernelRow& row : report.kernels) {
    const auto found = std::find_if(by_name.begin(), by_name.end(),
                                    [&](const auto& each) { return session.strings.view(each.first) == row.name; });
    if (found == by_name.end()) continue;
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
