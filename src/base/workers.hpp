// Work shared out over threads: fn(i) for every i, in any order, each once.
//
// Callers write results by index and never depend on who did what, so that results are the same for
// any number of threads. Tasks are taken from one counter; put large ones first.
#pragma once

#include <cstddef>
#include <functional>

namespace rangescope::base {

/// Threads that help for this many tasks: `asked`, or the machine's cores when it is 0, at most 16
/// and at most `tasks`.
[[nodiscard]] int worker_count(int asked, std::size_t tasks);

/// Runs fn(0) ... fn(tasks - 1) on worker_count(asked, tasks) threads and returns when all are
/// done.
void parallel_for(std::size_t tasks, int asked, const std::function<void(std::size_t)>& fn);

}  // namespace rangescope::base
