// Which parts of CUDA are traced, and how.
//
// From the environment: RANGESCOPE_CUDA_GRAPHS (node, graph), RANGESCOPE_FLUSH_INTERVAL (seconds;
// 0: only full buffers and at the end), RANGESCOPE_LAUNCH_RECORDS (activity, callback: how launch
// calls are noted), RANGESCOPE_CUDA_CALLS (prefixes of further driver functions to note, separated
// by commas), RANGESCOPE_MODULES (off, or the number of module levels; unset: all, if PyTorch is
// loaded), RANGESCOPE_MEMORY (off, stacks), RANGESCOPE_FUNCTIONS and RANGESCOPE_PHASES
// (wire/functions.hpp), RANGESCOPE_CALL_DETAILS (on, off: what calls allocate, free, record and
// wait for).
#pragma once

#include <cstdint>

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

struct TraceSettings {
  const char* path = nullptr;    ///< of the GPU stream that is to be made
  std::uint64_t size_limit = 0;  ///< bytes, 0: none
  bool graph_nodes = true;       ///< each kernel of a graph; false: a graph launch as one span
  /// Prefixes of driver functions to note in addition to launches, separated by commas.
  const char* more_calls = nullptr;
  bool launch_callbacks = false;  ///< note launches by callback even if activity records suffice
  bool attached = false;          ///< CUDA was initialized before, and may have been traced before
  std::uint32_t flush_interval_ms = 1000;
  bool call_details = true;    ///< of calls that allocate, free, record events and wait for them
  bool memory = true;          ///< turn on PyTorch's own recorder of memory
  bool memory_stacks = false;  ///< with lines of Python
  bool modules = true;         ///< find the modules of launches in Python's frames
  std::uint32_t module_levels = 0;  ///< 0: all, if PyTorch is loaded
};

/// Settings from the environment, except `path` and `size_limit`.
[[nodiscard]] TraceSettings settings_from_environment();

/// Whether calls of this driver function are noted: it puts work on a GPU, waits for it, or is one
/// of `more_calls`.
[[nodiscard]] bool is_noted(const char* function, const TraceSettings& settings);

// Times of kernels from the GPU's own event system (CUPTI calls it HES, or hardware trace;
// Blackwell and later) instead of code around each launch: a launch costs less, least of all with
// graphs.
//
// It can be turned on only before the first context, stays on until the end, and loses records that
// are not fetched regularly. NVIDIA's notes list a heap corruption, crashes in cudaGraphInstantiate
// and a leak, fixed in CUDA 13.4 update 1: with older versions it is used only if
// RANGESCOPE_HARDWARE_TIMES=on. It is not used with counters, which need kernel records to pause.

/// Null if CUPTI may be asked for hardware times; else the reason, for the capture. Does not call
/// CUPTI.
[[nodiscard]] const char* no_hardware_times(const Api& api);
/// Call it after the driver was initialized, and before there is a context. Returns "hardware", or
/// "software: " and the reason.
[[nodiscard]] const char* begin_hardware_times(const Api& api, char* text, std::size_t bytes);

}  // namespace rangescope::inject::cupti
