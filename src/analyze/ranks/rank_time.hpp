// Where the time of each rank of an MPI job went: inside calls of MPI, of it waiting for ranks that
// came later, and outside. A rank that the others wait for has most outside and waits least.
#pragma once

#include "model/report.hpp"

namespace rangescope::analyze {

/// Sets Rank::time where calls of MPI were recorded and the rank's process has a begin and an end.
/// After collectives and messages were joined. O(regions * ranks).
void add_rank_times(model::Report& report);

}  // namespace rangescope::analyze
