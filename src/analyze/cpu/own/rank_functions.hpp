// Which of the program's own functions the CPU time of each rank went to: what a late rank does
// more of than the others.
#pragma once

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Fills Rank::functions from CPU samples, those in calls of MPI and NCCL left out. A function's
/// time includes that of the libraries which it calls. O(samples + waits + stacks * depth).
void add_rank_functions(const model::Session& session, model::Report& report);

}  // namespace rangescope::analyze
