// The table of ranks of an MPI job: time outside and inside MPI.
#pragma once

#include "model/report.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// At most `max_rows` ranks, most time outside MPI first; empty for fewer than two ranks with
/// times.
[[nodiscard]] Section rank_section(const model::Report& report, std::size_t max_rows);

}  // namespace rangescope::report
