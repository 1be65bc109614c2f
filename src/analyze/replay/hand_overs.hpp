// Where a thread went on because another one was done: the main thread of PyTorch makes no call
// while the thread of the backward pass does, and that one none before.
//
// A thread that makes no call for a while, in which another thread of its process made several and
// after which that one is quiet in turn, waited for the last of those calls. O(n log n).
#pragma once

#include <vector>

#include "analyze/replay/timeline.hpp"

namespace rangescope::analyze::replay {

/// By call: the call of another thread that its thread waited for before it, kNone for none.
[[nodiscard]] std::vector<Id> hand_overs_of(const model::Session& session,
                                            const Timeline& timeline);

}  // namespace rangescope::analyze::replay
