// A program without ranges is a region itself: from its start to its exit, with all its threads and processes.
#pragma once

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// The process that rangescope started, as the session has it; kNone where that is not known.
[[nodiscard]] std::uint32_t first_process(const model::Session& session);

/// Where the session has no range: makes the program the report's one region, with all GPU work of the run and `cpu` in
/// it, and says how to name its parts. Before the rows are made.
void make_program_region(const model::Session& session, base::Held<model::CpuWork> cpu, model::Report& report);

}  // namespace rangescope::analyze
