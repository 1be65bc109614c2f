// The tables of ranks of a job: time outside and inside MPI, and what each rank runs.
#pragma once

#include "model/report.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// At most `max_rows` ranks, most time outside MPI first; empty for fewer than two ranks with
/// times.
[[nodiscard]] Section rank_section(const model::Report& report, std::size_t max_rows);

/// The program's own functions that each rank spends most CPU time in, outside calls in which ranks
/// wait for each other: at most three of `max_ranks` ranks, those with most CPU time first. Empty
/// without CPU samples, and of digests.
[[nodiscard]] Section rank_function_section(const model::Report& report, std::size_t max_ranks);

}  // namespace rangescope::report
