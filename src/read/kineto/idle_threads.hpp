// Python threads of a trace that only wait: a pool's, a monitor's.
#pragma once

#include <cstdint>

#include "model/session.hpp"

namespace rangescope::read::kineto {

/// Removes the ranges of threads that run no operator, make no CUDA call and are in calls that wait
/// for nine tenths of their time. How many there are.
std::uint64_t leave_out_idle_threads(model::Session& session, std::uint32_t python_domain);

}  // namespace rangescope::read::kineto
