// Faults of push and pop that a recording shows. A pop names no range: it closes the latest push of
// its thread and domain, whichever was meant.
//
// **Lost pops** (an exception or an early return before the pop). The range stays open, the next
// ones of its name lie inside it, and the pop of a range around it closes a wrong one. Seen: as
// many ranges as pops are missing never end, and ranges of the same name lie inside one of them.
// A name that calls itself looks the same when the recording ends inside it: where more closed
// ranges hold one of their own name than pops are missing, all stay as recorded.
//
// **Ranges that cross** (a generator that yields inside its range, coroutines of one thread). The
// pop of one closes the other: `step > load, step, load, step` for `step > load` a few times over.
// Seen: a range holds several empty ones of its own name, and another range directly inside it lies
// before them, and again between or behind them. A recording does not show what was meant.
#pragma once

#include "model/session.hpp"

namespace rangescope::analyze {

/// Ends ranges whose pop is missing where the next one of their name began, gives the pops that
/// closed them to the ranges that they were meant for, and adds the losses `unbalanced_ranges` and
/// `crossing_ranges`. Sessions that count some of their ranges (model::Unlisted) stay as they are.
/// O(ranges); O(n log n) for threads where a range of a name lies in another one of that name.
void mend_push_pop(model::Session& session);

}  // namespace rangescope::analyze
