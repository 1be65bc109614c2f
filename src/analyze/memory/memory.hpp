// Whose the memory of the GPUs is: of each region, at the peak, and over time.
//
// An allocation belongs to the ranges that are open in its thread when it is made (as a kernel does
// to those of its launch), and there to the innermost module, else the innermost range; without
// ranges to the line of the program that asked for it. What it is for follows from when it lives
// (uses.hpp). Sums are exact: every byte of the peak is in one part. O(n log n) in allocations.
#pragma once

#include "analyze/tree/regions.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// Fills Report::memory and Region::memory. Nothing where no allocator was recorded.
void add_memory(const Regions& regions, model::Report& report);

/// Memory of siblings that a table puts together.
void add_region_memory(model::RegionMemory& to, const model::RegionMemory& from);

}  // namespace rangescope::analyze
