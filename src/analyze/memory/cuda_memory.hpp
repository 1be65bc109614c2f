// What a program took from CUDA itself and gave back: of each kind of memory, and of each region.
//
// An event belongs to the ranges around its call. What was in use is the sum over the recorded
// events: memory from before the recording is not in it, and the free of such memory changes
// nothing. O(n log n) in events.
#pragma once

#include "analyze/tree/contexts.hpp"
#include "analyze/tree/regions.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// Fills Report::cuda_memory and Region::cuda_memory. Nothing where no such call was recorded.
/// `contexts`: of the session's launches; built where they are not.
void add_cuda_memory(const Regions& regions, const Contexts& contexts, model::Report& report);

/// Of siblings that a table puts together.
void add_region_cuda_memory(model::RegionCudaMemory& to, const model::RegionCudaMemory& from);

}  // namespace rangescope::analyze
