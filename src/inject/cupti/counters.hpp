// Hardware counters of ranges, pass k on occurrence k: connects the range observer, the
// multiplexer, CUPTI's range profiler and the worker thread that programs the hardware between
// occurrences.
//
// Enabled by RANGESCOPE_COUNTERS, the path of a plan (inject/counters/plan.hpp); without it nothing
// here runs. Results go into the GPU stream (wire/counters.hpp).
//
// Cost on the program's threads: a look-up for each push and pop; for a measured occurrence two
// synchronizations of the context and the profiler's push and pop, about 1 ms on an H200 machine;
// for kernels one by one also Start and Stop. After the last round observer and callbacks are
// removed.
#pragma once

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

/// Reads the plan and begins to watch ranges; false, with a loss in the stream, if that fails. Call
/// once, after start_trace().
bool start_counters(const Api& api, const Subscription& subscription);

/// Call it from the subscription's callback for a driver call.
void counters_saw_call(CUpti_CallbackId id, const CUpti_CallbackData& call);

/// Call it when a context was made: CUDA graphs that are instantiated before the context is enabled
/// for sampling are never sampled.
void counters_meet_context(CUcontext context);

/// Call it before a context is destroyed: releases it.
void counters_lose_context(CUcontext context);

/// Ends measuring and writes the tallies. Call it before finish_trace(). Does nothing if counters
/// were not started.
void finish_counters();

}  // namespace rangescope::inject::cupti
