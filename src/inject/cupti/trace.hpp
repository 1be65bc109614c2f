// The timeline of the GPU: starts CUPTI's activity tracing in this process, writes its records into
// the capture, and ends it. All state is in one object that is made once and never destroyed.
//
// Cost on the launching thread: CUPTI's own for a kernel record and one driver API record. Our code
// runs there only for graph nodes and, with "callback", for each launch (two calls, about 0.12 us).
// Everything else runs on CUPTI's worker thread and on a thread of ours that sleeps between
// flushes.
#pragma once

#include "inject/cupti/encode.hpp"
#include "inject/cupti/trace_settings.hpp"

namespace rangescope::inject::cupti {

/// Loads CUPTI and starts tracing. False if that fails, with the reason as a loss in the stream,
/// and if it was started before and end_trace() was not called.
bool start_trace(const TraceSettings& settings);

/// Fetches outstanding records and closes the stream. Does nothing if tracing was not started, and
/// the second time.
void finish_trace();

/// The same while the program continues: CUPTI stops recording, and start_trace() may be called
/// again.
void end_trace();

/// The timeline notes launches by callbacks, so no other part may turn those off.
[[nodiscard]] bool launches_by_callback();

/// Calls `use` with the stream and its encoder, under their lock, while tracing runs.
void with_stream(void (*use)(Encoder& encoder, GpuStream& stream, void* user), void* user);
template <class Use>
void with_stream(Use use) {
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        (*static_cast<Use*>(user))(encoder, stream);
      },
      &use);
}

/// Stops recording kernels and copies while counters are collected: CUPTI cannot do both at once.
/// The time is written into the stream. False if tracing does not run.
bool pause_activity();
/// Fetches the records of finished work.
void flush_activity();
/// Ends the pause.
bool resume_activity();

}  // namespace rangescope::inject::cupti
