// What of CUDA is traced, and how.
//
// From the environment: RANGESCOPE_CUDA_GRAPHS (node, graph), RANGESCOPE_FLUSH_INTERVAL (seconds; 0: only full buffers
// and the end), RANGESCOPE_LAUNCH_RECORDS (activity, callback: how launch calls are noted), RANGESCOPE_CUDA_CALLS
// (further driver functions to note, by the beginning of their names, separated by commas).
#pragma once

#include <cstdint>

namespace rangescope::inject::cupti {

struct TraceSettings {
  const char* path = nullptr;        ///< of the GPU stream that is to be made
  std::uint64_t size_limit = 0;      ///< bytes, 0: none
  bool graph_nodes = true;           ///< kernels of graphs singly; false: a graph launch as one span
  const char* more_calls = nullptr;  ///< beginnings of driver functions to note beside launches, separated by commas
  bool launch_callbacks = false;     ///< note launches by callback though activity records would do
  std::uint32_t flush_interval_ms = 1000;
};

/// Settings from the environment, `path` and `size_limit` apart.
[[nodiscard]] TraceSettings settings_from_environment();

/// Whether calls of this driver function are noted: it puts work on a GPU, waits for it, or is one of `more_calls`.
[[nodiscard]] bool is_noted(const char* function, const TraceSettings& settings);

}  // namespace rangescope::inject::cupti
