// Metrics of a region from the events that its threads were counted by (model::CpuCount).
#pragma once

#include <span>

#include "model/metric_group.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// Adds the metrics of the groups whose counters were recorded, and one of each other counter ("cpu_page_faults"), to
/// the regions and rows that have them; per occurrence. Source "CPU events", or "CPU events, sampled" where a record
/// stands for many: then `min` and `max` hold the value (95 %), and `rounds` are the records. Their `column` metrics
/// become the report's. O(regions * metrics).
void add_cpu_metrics(std::span<const model::MetricGroup> groups, model::Report& report);

}  // namespace rangescope::analyze
