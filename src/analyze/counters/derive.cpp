#include "analyze/counters/derive.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

namespace rangescope::analyze {
namespace {

using model::kNone;

// The metric behind an alias of a formula, in this session.
struct Operand {
  std::vector<std::uint32_t>
      metrics;  // indexes into Session::metrics, the first present one counts
  std::optional<double> constant;
};

struct Derived {
  const base::Formula* formula = nullptr;
  std::uint32_t metric = 0;
  std::unordered_map<std::string_view, Operand> operands;
};

std::optional<double> value_in(const model::Measurement& measurement, std::uint32_t metric) {
  const auto found = std::find_if(
      measurement.values.begin(), measurement.values.end(), [metric](const model::MetricValue& v) {
        return v.metric == metric;
      });
  return found == measurement.values.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace

void derive(model::Session& session, std::span<const model::MetricGroup> groups) {
  std::unordered_map<std::string, std::uint32_t> known;
  for (std::uint32_t i = 0; i < session.metrics.size(); ++i)
    known.emplace(session.metrics[i].name, i);

  std::vector<Derived> formulas;
  for (const model::MetricGroup& group : groups) {
    for (const model::GroupMetric& metric : group.metrics) {
      Derived derived;
      derived.formula = &metric.formula;
      bool possible = true;
      for (const std::string& name : metric.formula.names()) {
        const auto counter = std::find_if(
            group.counters.begin(), group.counters.end(), [&](const model::GroupCounter& c) {
              return c.alias == name;
            });
        Operand operand;
        for (const std::string& candidate : counter->any) {
          if (const auto found = known.find(candidate); found != known.end())
            operand.metrics.push_back(found->second);
        }
        if (counter->any.empty())
          operand.constant = counter->absent;
        possible = possible && (!operand.metrics.empty() || operand.constant);
        derived.operands.emplace(name, std::move(operand));
      }
      if (!possible || known.contains(metric.name))
        continue;  // two groups may share a metric: once is enough
      derived.metric = static_cast<std::uint32_t>(session.metrics.size());
      known.emplace(metric.name, derived.metric);
      session.metrics.push_back({metric.name, metric.unit, "derived: " + metric.formula.text()});
      formulas.push_back(std::move(derived));
    }
  }

  for (model::Measurement& measurement : session.measurements) {
    for (const Derived& derived : formulas) {
      const auto value =
          derived.formula->evaluate([&](std::string_view name) -> std::optional<double> {
            const Operand& operand = derived.operands.at(name);
            for (const std::uint32_t metric : operand.metrics) {
              if (const auto found = value_in(measurement, metric))
                return found;
            }
            return operand.constant;
          });
      if (value)
        measurement.values.push_back({derived.metric, *value});
    }
  }
}

}  // namespace rangescope::analyze
