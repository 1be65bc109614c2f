// The timeline of the GPU: starts CUPTI's activity tracing in this process, brings what it delivers into the capture,
// and ends it. Everything is in one object that is made once and never destroyed.
//
// Settings, from the environment: RANGESCOPE_CUDA_GRAPHS (node, graph), RANGESCOPE_FLUSH_INTERVAL (seconds; 0: only
// full buffers and the end), RANGESCOPE_LAUNCH_RECORDS (activity, callback: how launch calls are noted),
// RANGESCOPE_CUDA_CALLS (further driver functions to note, by the beginning of their names, separated by commas).
//
// Cost on the launching thread: CUPTI's own for a kernel record and one driver API record; this code runs there only
// for graph nodes and, with "callback", for each launch (two calls, about 0.12 us). Everything else is on CUPTI's
// worker thread and on a thread of ours that sleeps between flushes.
#pragma once

#include <cstdint>

#include "inject/cupti/api.hpp"
#include "inject/cupti/encode.hpp"

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

/// Loads CUPTI and starts tracing; false, with a loss in the stream that says why, when that cannot be. Call once.
bool start_trace(const TraceSettings& settings);

/// Fetches what is still out and closes the stream. Harmless when nothing was started, and the second time.
void finish_trace();

/// CUPTI and the subscription while tracing runs, for whoever needs another part of it; null before and without.
[[nodiscard]] const Api* tracing_api();

/// The timeline itself notes launches by callbacks, so that nobody else may turn those off.
[[nodiscard]] bool launches_by_callback();

/// Calls `use` with the stream and its encoder, under their lock, while tracing runs.
void with_stream(void (*use)(Encoder& encoder, GpuStream& stream, void* user), void* user);

/// Stops recording kernels and copies (CUPTI cannot do both at once), and goes on. Written into the stream with the
/// time. False when nothing is running.
bool pause_activity();
/// Fetches the records of what has ended.
void flush_activity();
bool resume_activity();

}  // namespace rangescope::inject::cupti
