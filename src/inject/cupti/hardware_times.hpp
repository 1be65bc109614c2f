// Times of kernels by the GPU's own event system (CUPTI calls it HES, or hardware trace; Blackwell and later), in place
// of code around each launch: less time a launch, least with graphs.
//
// It can be turned on only before the first context, stays on to the end, and loses records where nobody asks for them
// regularly. NVIDIA's notes name a heap corruption, crashes in cudaGraphInstantiate and a leak of it that CUDA 13.4
// update 1 mended: older ones are left as they are, unless RANGESCOPE_HARDWARE_TIMES=on asks for it. Beside counters,
// which need kernel records to pause, it is not used.
#pragma once

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

/// Null where CUPTI may be asked for it; else why not, for the capture. Asks nothing.
[[nodiscard]] const char* no_hardware_times(const Api& api);
/// To be called when the driver has been initialised, before there is a context. "hardware", or "software: " and why.
[[nodiscard]] const char* begin_hardware_times(const Api& api, char* text, std::size_t bytes);

}  // namespace rangescope::inject::cupti
