// What PyTorch's profiler did itself, which its traces list as events of the category "overhead":
// none of the program's time. Traces do not name its thread: it is the one whose CUDA call was
// open, or began next (CUPTI asks for a buffer before it takes the time of a call). Threads that
// wait for autograd's wait for that as well. What the driver does once for the program, such as
// loading a kernel, stays. O(ranges + calls), and threads times such events.
#pragma once

#include <cstdint>

#include "model/session.hpp"

namespace rangescope::read::kineto {

/// Adds to Session::unlisted_inside how much of each range the profiler's own ranges, those of
/// `domain`, took: no range more, and all of it recording (analyze/tree/recording.hpp). Ranges are
/// in order.
void take_out_overhead(std::uint32_t domain, model::Session& session);

}  // namespace rangescope::read::kineto
