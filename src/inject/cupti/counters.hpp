// Hardware counters of ranges, pass k on occurrence k: joins the range observer, the multiplexer,
// CUPTI's range profiler and the worker thread that programs the hardware between occurrences.
//
// Enabled by RANGESCOPE_COUNTERS, the path of a plan (inject/counters/plan.hpp); without it nothing
// here runs. What it writes goes into the GPU stream (wire/counters.hpp).
//
// Cost on the program's threads: a look-up for each push/pop; for a measured occurrence two
// synchronizations of the context and the profiler's push and pop, about 1 ms on an H200 machine;
// for kernels one by one also Start and Stop. After the last round the observer and the callbacks
// are taken away.
#pragma once

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

/// Reads the plan and begins to watch ranges; false, with a loss in the stream, when that cannot
/// be. Call once, after start_trace().
bool start_counters(const Api& api, const Subscription& subscription);

/// A driver call of a kernel or graph, from the subscription's callback.
void counters_saw_call(CUpti_CallbackId id, const CUpti_CallbackData& call);

/// A context was made: what CUDA graphs are instantiated while it is not ready to be sampled are
/// never sampled.
void counters_meet_context(CUcontext context);

/// A context is about to be destroyed: lets go of it.
void counters_lose_context(CUcontext context);

/// Ends measuring and writes the tallies; before finish_trace(). Harmless when nothing was started.
void finish_counters();

}  // namespace rangescope::inject::cupti
