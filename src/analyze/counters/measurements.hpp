// Counters onto regions: what was measured per range, per kernel and per graph, joined to the tree
// by NVTX path.
//
// A range result belongs to the region of its last range. A kernel result belongs to the innermost
// push/pop region of each domain and to the start/end regions that were open; its metrics are
// listed there by (kernel, position). For a region as a whole only sums are taken from kernels
// (metrics that end in `.sum`), over all kernels inside, children included: the value is the median
// over the occurrences that were measured. Any other metric of kernels is absent, with the reason.
// Where there is no timeline (ncu alone), regions, occurrences and kernel times come from the
// results themselves. O(values x depth).
#pragma once

#include <vector>

#include "analyze/tree/regions.hpp"
#include "analyze/tree/tree.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// Without a timeline: the cells of every path that results name. To be called before link_nodes().
void add_measured_cells(const model::Session& session, Domains domains, Tree& tree);

/// Metrics of regions and of their kernels; without a timeline also occurrences, kernel counts and
/// kernel times. Results whose path no region has become a loss that names them.
void add_measurements(const Regions& regions,
                      const std::vector<char>& chosen_kernels,
                      model::Report& report);

/// Fills Report::kernel_counters from results that are single kernels. Rates and shares are means
/// over a kernel's results, weighted by their time; sums (`.sum`, bytes, FLOPs, times) are means of
/// one result. Where very many metrics were collected, those that groups derive and what ncu
/// reports of the launch. `chosen`: by index of Session::kernel_names. O(values).
void add_kernel_counters(const model::Session& session,
                         const std::vector<char>& chosen,
                         model::Report& report);

}  // namespace rangescope::analyze
