// Keeps the program alive when a capture that it maps is truncated.
//
// Truncating a mapped file removes its pages: the next store into them raises SIGBUS, which would
// end the program. The guard replaces the page with memory that is never read, and counts a loss.
//
// The program can see that SIGBUS has a handler. Any other SIGBUS goes to the action that was
// installed before, as if there were no guard. Not guarded: a program that installs a handler of
// its own later, and a thread that blocks SIGBUS.
#pragma once

namespace rangescope::inject {

/// Whether `address` is in a part of a capture that the calling thread maps. Async-signal-safe.
[[nodiscard]] bool writer_holds(const void* address);

/// Installs the guard, once a process. Children of a fork inherit it.
void guard_maps();

}  // namespace rangescope::inject
