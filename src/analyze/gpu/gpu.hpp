// GPU work of every region, of the whole run, and of what lies outside all ranges.
#pragma once

#include "analyze/tree/busy.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// What the sums of GPU work are made of, for those who need more of it than a report holds.
struct GpuDetails {
  Sets sets;
  KernelGroups groups;
  Busy busy;
  std::vector<char> paused;  ///< as touched_by_pause()
};

/// Fills `gpu` of the report's regions, its totals, kernels and busy times of samples. `sampled`: occurrences behind
/// each region's samples. Adds losses for work whose launch is not known. GPU busy time of each occurrence.
std::vector<std::uint64_t> add_gpu_work(const Regions& regions, const Contexts& contexts,
                                        const std::vector<std::vector<std::uint32_t>>& sampled,
                                        const std::vector<char>& chosen_kernels, model::Report& report,
                                        GpuDetails* details = nullptr);

/// Kernel time and busy time of each occurrence of a region that has ended and that no pause touched.
struct OccurrenceWork {
  std::vector<std::int64_t> kernel_ns, busy_ns;
  model::Distribution without;  ///< of more that are not listed: zeros
};
[[nodiscard]] OccurrenceWork occurrence_work(const Regions& regions, std::size_t r, const Busy& busy,
                                             const std::vector<char>& paused);

/// Of an input without kernels: the span of the regions' GPU work, from Session::projections.
void add_projections(const Regions& regions, model::Report& report);

}  // namespace rangescope::analyze
