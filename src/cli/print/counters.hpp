// What `rangescope metrics` and `rangescope metrics plan` print: groups of metrics, and what counting them costs.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collect/native/planner.hpp"
#include "model/metric_group.hpp"
#include "profile/sampling.hpp"

namespace rangescope::cli {

/// CUPTI metrics, each with its kind.
using FoundMetrics = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string found_metrics(const FoundMetrics& metrics, bool json);
[[nodiscard]] std::string metric_page(const collect::native::MetricInfo& metric, const std::string& chip,
                                      const std::string& cupti);
[[nodiscard]] std::string metric_json(const collect::native::MetricInfo& metric, const std::string& chip);
/// A line a group.
[[nodiscard]] std::string groups_page(std::span<const model::MetricGroup> groups);
[[nodiscard]] std::string group_page(const model::MetricGroup& group);
/// `list`: as an array; else the one group.
[[nodiscard]] std::string groups_json(std::span<const model::MetricGroup> groups, bool list);
[[nodiscard]] std::string plan_page(const collect::native::CounterPlan& plan, int rounds, const std::string& cupti);
[[nodiscard]] std::string plan_json(const collect::native::CounterPlan& plan, int rounds, const std::string& cupti);

[[nodiscard]] std::string sample_plan_page(const profile::SamplePlan& plan);
[[nodiscard]] std::string sample_plan_json(const profile::SamplePlan& plan);

}  // namespace rangescope::cli
