// PyTorch's profiler that a program runs itself, where no timeline shows what it costs: the two
// profilers cannot both record GPU work. Samples of its Python functions do.
#pragma once

#include "model/report.hpp"

namespace rangescope::analyze::cures {

/// Adds a line with the cure `profiler_in_loop` where the profiler's functions take 5 % of the run
/// or more, and no line has that cure. Nothing was replayed, so the line has no `after`.
void add_guest_profiler(model::Report& report);

}  // namespace rangescope::analyze::cures
