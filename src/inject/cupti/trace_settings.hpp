// What of CUDA is traced, and how.
//
// From the environment: RANGESCOPE_CUDA_GRAPHS (node, graph), RANGESCOPE_FLUSH_INTERVAL (seconds;
// 0: only full buffers and the end), RANGESCOPE_LAUNCH_RECORDS (activity, callback: how launch
// calls are noted), RANGESCOPE_CUDA_CALLS (further driver functions to note, by the beginning of
// their names, separated by commas), RANGESCOPE_MODULES (off, or how many levels of modules; unset:
// all, where PyTorch is loaded), RANGESCOPE_MEMORY (off, stacks), RANGESCOPE_FUNCTIONS and
// RANGESCOPE_PHASES (wire/functions.hpp), RANGESCOPE_CALL_DETAILS (on, off: what calls allocate,
// free, record and wait for).
#pragma once

#include <cstdint>

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

struct TraceSettings {
  const char* path = nullptr;    ///< of the GPU stream that is to be made
  std::uint64_t size_limit = 0;  ///< bytes, 0: none
  bool graph_nodes = true;       ///< kernels of graphs singly; false: a graph launch as one span
  const char* more_calls =
      nullptr;  ///< beginnings of driver functions to note beside launches, separated by commas
  bool launch_callbacks = false;  ///< note launches by callback though activity records would do
  bool attached =
      false;  ///< CUDA was initialised before, and work may have been recorded and ended
  std::uint32_t flush_interval_ms = 1000;
  bool call_details = true;    ///< calls that allocate and free, record events and wait for them
  bool memory = true;          ///< PyTorch's own recorder of memory is turned on
  bool memory_stacks = false;  ///< it takes lines of Python, too
  bool modules = true;         ///< where launches are made, by Python's frames
  std::uint32_t module_levels = 0;  ///< 0: all, where PyTorch is loaded
};

/// Settings from the environment, `path` and `size_limit` apart.
[[nodiscard]] TraceSettings settings_from_environment();

/// Whether calls of this driver function are noted: it puts work on a GPU, waits for it, or is one
/// of `more_calls`.
[[nodiscard]] bool is_noted(const char* function, const TraceSettings& settings);

// Times of kernels by the GPU's own event system (CUPTI calls it HES, or hardware trace; Blackwell
// and later), in place of code around each launch: less time a launch, least with graphs.
//
// It can be turned on only before the first context, stays on to the end, and loses records where
// nobody asks for them regularly. NVIDIA's notes name a heap corruption, crashes in
// cudaGraphInstantiate and a leak of it that CUDA 13.4 update 1 mended: older ones are left as they
// are, unless RANGESCOPE_HARDWARE_TIMES=on asks for it. Beside counters, which need kernel records
// to pause, it is not used.

/// Null where CUPTI may be asked for it; else why not, for the capture. Asks nothing.
[[nodiscard]] const char* no_hardware_times(const Api& api);
/// To be called when the driver has been initialised, before there is a context. "hardware", or
/// "software: " and why.
[[nodiscard]] const char* begin_hardware_times(const Api& api, char* text, std::size_t bytes);

}  // namespace rangescope::inject::cupti
