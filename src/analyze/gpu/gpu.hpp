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
std::vector<std::uint64_t> add_gpu_work(const model::Session& session, const Options& options, const Tree& tree,
                                        const Contexts& contexts, const std::vector<RegionKey>& keys,
                                        const Buckets& by_cell, const std::vector<std::vector<std::uint32_t>>& sampled,
                                        const std::vector<char>& chosen_kernels, model::Report& report,
                                        GpuDetails* details = nullptr);

/// Of an input without kernels: the span of the regions' GPU work, from Session::projections.
void add_projections(const model::Session& session, const Tree& tree, const std::vector<RegionKey>& keys,
                     const Buckets& by_cell, model::Report& report);

}  // namespace rangescope::analyze
