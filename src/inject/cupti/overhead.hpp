// Keeps what tracing costs the program within a share of its time (RANGESCOPE_OVERHEAD, "0.01"): the GPU's timeline is
// on for windows only.
//
// A window begins where a thread pushes a range and ends where the same thread next pushes one at that level or above,
// so that it holds one occurrence and what follows it, whole. The level is the outermost at which kSettled ranges were
// pushed: of main > epoch > step it is step, until epochs are many. Inside a range that was opened less than half a
// second ago none begins: it may be one of many itself, and would be traced in part. A window may begin when what was
// spent, and what one more will cost, is within the budget; a toss of a coin then decides, so that no period of the
// program can line up with the windows. Spent are the time that the switches took, measured, and wire::gpu::kRecord_ns
// for each record that CUPTI delivered.
//
// Cost on the program's threads where no window begins or ends: a count and a few loads a push. No locks: one thread
// switches, others find the word taken and go on. A child of a fork has no budget and switches nothing.
#pragma once

#include <cstdint>

namespace rangescope::inject::cupti {

/// Pauses the timeline and begins to watch ranges, when a budget is set; after tracing has begun. Call once.
void start_overhead();

/// CUPTI delivered so many records.
void overhead_records(std::uint64_t records);

/// Ends a window that its thread does not end, before it takes more than the budget. From the flusher.
void overhead_check();

/// Switches no more, and says into the stream what was spent. Before tracing ends; harmless when nothing was started.
void finish_overhead();

}  // namespace rangescope::inject::cupti
