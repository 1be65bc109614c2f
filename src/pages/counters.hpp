// What `rangescope metrics` and `rangescope plan` print: groups of metrics, and what counting them costs.
#pragma once

#include <span>
#include <string>

#include "collect/native/planner.hpp"
#include "model/metric_group.hpp"

namespace rangescope::pages {

/// A name and, from column 18 on, what there is to say of it.
[[nodiscard]] std::string name_line(const std::string& left, const std::string& right);
[[nodiscard]] std::string group_page(const model::MetricGroup& group);
/// `list`: as an array; else the one group.
[[nodiscard]] std::string groups_json(std::span<const model::MetricGroup> groups, bool list);
[[nodiscard]] std::string plan_page(const collect::native::CounterPlan& plan, int rounds, const std::string& cupti);
[[nodiscard]] std::string plan_json(const collect::native::CounterPlan& plan, int rounds, const std::string& cupti);

}  // namespace rangescope::pages
