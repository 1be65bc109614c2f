// Counters of kernels over the whole run, for the table of kernels: with or without ranges around them.
#pragma once

#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Fills Report::kernel_counters from results that are single kernels. Rates and shares are means over a kernel's
/// results, weighted by their time; sums (`.sum`, bytes, FLOPs, times) are means of one result. Where very many metrics
/// were collected, those that groups derive and what ncu says of the launch. `chosen`: by index of
/// Session::kernel_names. O(values).
void add_kernel_counters(const model::Session& session, const std::vector<char>& chosen, model::Report& report);

}  // namespace rangescope::analyze
