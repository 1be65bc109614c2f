// Operators of a framework by name, and by name and shapes of their inputs, as PyTorch's key_averages() sums them.
//
// One pass over each thread's ranges and CUDA functions in the order in which they began, with the stack of those that
// are open: O(n log n). Inclusive times of an operator inside one of its own name count twice, as they do there.
#pragma once

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Fills report.operators and report.operators_by_shape; nothing where no process of the session has operators, but the
/// functions of a recording of CUDA calls alone.
/// "ProfilerStep#12" stands as "ProfilerStep*".
void add_operators(const model::Session& session, model::Report& report);

}  // namespace rangescope::analyze
