// The processes and threads that CPU samples name, matched with those of the session.
#pragma once

#include <vector>

#include "model/session.hpp"

namespace rangescope::read::native {

/// Adds every process of a program without ranges, also those that loaded nothing. A process is
/// written when it is first seen, and again when it ends: `lives` has both, and is sorted by start.
void add_processes(std::vector<model::Process>& lives, model::Session& session);

/// The processes that add_processes() would add.
[[nodiscard]] std::vector<model::Process> other_processes(std::vector<model::Process>& lives,
                                                          const model::Session& session);

/// Names processes that ran before the window: only their GPU work is in the capture.
void name_processes(const std::vector<model::Process>& lives, model::Session& session);

/// Sets CpuThread::thread. A pid may have been several images of a program, and a tid several
/// threads: takes the one that ran longest while it was sampled.
void link_cpu_threads(model::Session& session);

}  // namespace rangescope::read::native
