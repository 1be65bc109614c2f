// The timeline of the GPU: starts CUPTI's activity tracing in this process, brings what it delivers
// into the capture, and ends it. Everything is in one object that is made once and never destroyed.
//
// Cost on the launching thread: CUPTI's own for a kernel record and one driver API record; this
// code runs there only for graph nodes and, with "callback", for each launch (two calls, about 0.12
// us). Everything else is on CUPTI's worker thread and on a thread of ours that sleeps between
// flushes.
#pragma once

#include "inject/cupti/encode.hpp"
#include "inject/cupti/trace_settings.hpp"

namespace rangescope::inject::cupti {

/// Loads CUPTI and starts tracing; false, with a loss in the stream that says why, when that cannot
/// be, and where it was started before and end_trace() was not called.
bool start_trace(const TraceSettings& settings);

/// Fetches what is still out and closes the stream. Harmless when nothing was started, and the
/// second time.
void finish_trace();

/// The same while the program goes on: CUPTI records nothing any more, and start_trace() may come
/// again.
void end_trace();

/// The timeline itself notes launches by callbacks, so that nobody else may turn those off.
[[nodiscard]] bool launches_by_callback();

/// Calls `use` with the stream and its encoder, under their lock, while tracing runs.
void with_stream(void (*use)(Encoder& encoder, GpuStream& stream, void* user), void* user);
template <class Use>
void with_stream(Use use) {
  with_stream([](Encoder& encoder, GpuStream& stream,
                 void* user) { (*static_cast<Use*>(user))(encoder, stream); },
              &use);
}

/// Stops recording kernels and copies (CUPTI cannot do both at once), and goes on. Written into the
/// stream with the time. False when nothing is running.
bool pause_activity();
/// Fetches the records of what has ended.
void flush_activity();
bool resume_activity();

}  // namespace rangescope::inject::cupti
