// Why warps of each kernel waited, in each region and in the whole run: Stalls of KernelRows, from
// Session::pc.
//
// A sample is of the kernel that its launch put on the GPU, wherever in its code it was taken, and
// of the regions around that launch.
#pragma once

#include "analyze/tree/sets.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// After add_gpu_work() made the rows. O(samples x depth), and a sort.
void add_stalls(const model::Session& session,
                const Contexts& contexts,
                const Sets& sets,
                model::Report& report);

}  // namespace rangescope::analyze
