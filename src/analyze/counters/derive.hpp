// Derived metrics: the formulas of metric groups, evaluated on every measurement before anything is
// aggregated.
//
// So a median of ratios is a median of ratios of complete rounds, not a ratio of medians.
#pragma once

#include <span>

#include "model/metric_group.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Adds, to every measurement that has the counters, the metrics of `groups`. A counter that the
/// chip lacks must have been resolved to a constant by the planner (`any` empty, `absent` set); a
/// counter that merely was not collected leaves the metric away. O(measurements * formulas).
void derive(model::Session& session, std::span<const model::MetricGroup> groups);

}  // namespace rangescope::analyze
