#include "cli/print/counters.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::cli {
namespace {

std::size_t occurrences(const collect::native::CounterPlan& plan, int rounds) {
  return plan.passes * static_cast<std::size_t>(rounds);
}

/// A name and, from column 18 on, what there is to say of it.
std::string name_line(const std::string& left, const std::string& right) {
  return left + std::string(left.size() < 18 ? 18 - left.size() : 1, ' ') + right + "\n";
}

nlohmann::json to_json(const model::MetricGroup& group) {
  nlohmann::json out = {{"name", group.name}, {"title", group.title}, {"explain", group.explain}};
  for (const auto& counter : group.counters) out["counters"][counter.alias] = counter.any;
  for (const auto& metric : group.metrics) {
    out["metrics"].push_back({{"name", metric.name},
                              {"title", metric.title},
                              {"unit", metric.unit},
                              {"formula", metric.formula.text()},
                              {"explain", metric.explain}});
  }
  return out;
}

}  // namespace

std::string found_metrics(const FoundMetrics& metrics, bool json) {
  std::string text;
  nlohmann::json out = nlohmann::json::array();
  for (const auto& [name, kind] : metrics)
    json ? out.push_back({{"name", name}, {"kind", kind}}) : (void)(text += name_line(name, kind));
  return json ? base::printable_json(out.dump(2)) + "\n" : text;
}

std::string metric_page(const collect::native::MetricInfo& metric, const std::string& chip, const std::string& cupti) {
  return metric.name + " (" + chip + ")\n  " + metric.description + "\n  unit of hardware: " + metric.hardware +
         "\n  dimension: " + metric.dimension + "\n  source: " + cupti + "\n";
}

std::string metric_json(const collect::native::MetricInfo& metric, const std::string& chip) {
  const nlohmann::json out = {{"name", metric.name},
                              {"chip", chip},
                              {"description", metric.description},
                              {"hardware", metric.hardware},
                              {"dimension", metric.dimension}};
  return base::printable_json(out.dump(2)) + "\n";
}

std::string groups_page(std::span<const model::MetricGroup> groups) {
  std::string text;
  for (const auto& group : groups) text += name_line(group.name, group.title);
  return text +
         "\nOne of them: rangescope metrics show NAME. Cost: rangescope metrics plan --metrics NAME --chip GH100\n";
}

std::string group_page(const model::MetricGroup& group) {
  std::string text = group.name + ": " + group.title + "\n" + group.explain + "\n\ncounters\n";
  for (const auto& counter : group.counters) {
    text +=
        "  " + name_line(counter.alias, base::join(counter.any, " or ") + (counter.absent ? " (may be missing)" : ""));
  }
  text += "\nmetrics\n";
  for (const auto& metric : group.metrics) {
    text +=
        "  " + metric.name + " [" + metric.unit + "] = " + metric.formula.text() + "\n      " + metric.explain + "\n";
  }
  return text;
}

std::string groups_json(std::span<const model::MetricGroup> groups, bool list) {
  if (!list) return base::printable_json(to_json(groups.front()).dump(2)) + "\n";
  nlohmann::json out = nlohmann::json::array();
  for (const auto& group : groups) out.push_back(to_json(group));
  return base::printable_json(out.dump(2)) + "\n";
}

std::string plan_json(const collect::native::CounterPlan& plan, int rounds, const std::string& cupti) {
  nlohmann::json out = {{"schema", "rangescope.plan/1"},
                        {"chip", plan.chip},
                        {"source", cupti},
                        {"metrics", plan.metrics},
                        {"passes", plan.passes},
                        {"configurations", nlohmann::json::array()},
                        {"rounds", rounds},
                        {"occurrences", {{"one_round", plan.passes}, {"all_rounds", occurrences(plan, rounds)}}},
                        {"share_a_pass", plan.together},
                        {"notes", plan.notes}};
  for (const auto& one : plan.configurations)
    out["configurations"].push_back({{"passes", one.passes}, {"metrics", one.metrics}});
  for (const auto& cost : plan.costs) {
    nlohmann::json item = {{"metric", cost.metric}, {"passes_alone", cost.alone}, {"passes_saved_without", cost.saved}};
    if (!cost.cheaper.empty()) item["cheaper"] = {{"metric", cost.cheaper}, {"passes_alone", cost.cheaper_passes}};
    out["costs"].push_back(std::move(item));
  }
  return base::printable_json(out.dump(2)) + "\n";
}

std::string plan_page(const collect::native::CounterPlan& plan, int rounds, const std::string& cupti) {
  std::string text = fmt::format("{}: {} in {} ({})\n", plan.chip, base::counted(plan.metrics.size(), "metric"),
                                 base::counted(plan.passes, "pass"), cupti);
  text += fmt::format("A range needs {} for one complete set, {} for {}, and a few before them to settle.\n\n",
                      base::counted(plan.passes, "occurrence"), occurrences(plan, rounds),
                      base::counted(static_cast<std::size_t>(rounds), "round"));
  if (plan.configurations.size() > 1) {
    text += fmt::format("CUPTI cannot count them together: {} configurations, each on occurrences of its own\n",
                        plan.configurations.size());
    for (const auto& one : plan.configurations)
      text += fmt::format("  {}: {}\n", base::counted(one.passes, "pass"), base::join(one.metrics, ", "));
    text += "\n";
  }
  text += fmt::format("{:>5} {:>7}  metric\n", "alone", "saves");
  for (const auto& cost : plan.costs) {
    text += fmt::format("{:>5} {:>7}  {}\n", cost.alone, cost.saved, cost.metric);
    if (!cost.cheaper.empty())
      text += fmt::format("{:>13}  cheaper: {} ({} alone)\n", "", cost.cheaper, cost.cheaper_passes);
  }
  text += "\nalone: passes that the metric takes by itself; saves: passes saved by leaving it out of this set\n";
  for (const auto& set : plan.together) {
    if (set.size() > 1) text += "one pass collects: " + base::join(set, ", ") + "\n";
  }
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  return text;
}

std::string sample_plan_page(const profile::SamplePlan& plan) {
  std::string text = fmt::format("{}: one pass of PM sampling collects {} ({})\n", plan.chip,
                                 base::counted(plan.metrics.size(), "counter"), plan.cupti);
  for (const std::string& metric : plan.metrics) text += "  " + metric + "\n";
  if (!plan.left_out.empty()) text += "left out, unknown to this chip or of another pass:\n";
  for (const std::string& metric : plan.left_out) text += "  " + metric + "\n";
  return text;
}

std::string sample_plan_json(const profile::SamplePlan& plan) {
  const nlohmann::json out = {
      {"schema", "rangescope.sample_plan/1"},   {"chip", plan.chip},       {"cupti", plan.cupti},
      {"passes", plan.metrics.empty() ? 0 : 1}, {"metrics", plan.metrics}, {"left_out", plan.left_out}};
  return base::printable_json(out.dump(2)) + "\n";
}

}  // namespace rangescope::cli
