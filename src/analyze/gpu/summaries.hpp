// Flat regions from totals by name (model::Summary): what an input without a timeline can say about ranges and kernels.
//
// A region has the path of its own name only. What cannot be known (nesting, exclusive times, busy time, overlap,
// threads) is absent: NaN or -1, which model::Measure turns into "no value". O(rows).
#pragma once

#include "analyze/options.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// GPU work of which nothing is known yet: every count -1, every time NaN.
[[nodiscard]] model::GpuWork unknown_work();

/// Adds regions, kernels and totals of `session.summary` to the report. kUsage for an expression that cannot be parsed.
[[nodiscard]] base::Result<void> add_summaries(const model::Session& session, const Options& options,
                                               model::Report& report);

}  // namespace rangescope::analyze
