// Where the time of each rank of an MPI job went, as a table.
#pragma once

#include "model/report.hpp"
#include "report/document/document.hpp"

namespace rangescope::report {

/// The `most` ranks with the most time outside MPI, those first; empty where no rank has times.
[[nodiscard]] Section rank_section(const model::Report& report, std::size_t most);

}  // namespace rangescope::report
