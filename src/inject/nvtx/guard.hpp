// A mapped file that somebody truncates takes its pages along: the next store into it is SIGBUS, which would end the
// program. With the guard it goes into memory that nobody reads, and a loss tells of it.
//
// The program may see that SIGBUS has a handler. What was there before it gets every other SIGBUS, as if it stood
// alone. A program that installs a handler of its own later, and a thread that blocks SIGBUS, are not guarded.
#pragma once

namespace rangescope::inject {

/// Whether `address` belongs to what the calling thread maps of a capture. Async-signal-safe.
[[nodiscard]] bool writer_holds(const void* address);

/// Once a process; later calls do nothing. Children of a fork inherit it.
void guard_maps();

}  // namespace rangescope::inject
