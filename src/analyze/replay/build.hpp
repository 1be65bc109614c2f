// Makes the dependence graph of a session (graph.hpp).
//
// What it knows: the order of calls in a thread and of work in a stream; which call launched a
// work; which calls wait, and for what. What it infers, because recordings do not say it: which
// stream a wait without one is for (the one that its thread last used), events between streams
// (work that begins when work of another stream has just ended, and that neither its call nor its
// stream held back), and how many launches a stream queues before calls wait.
//
// O(n log n) for n calls and works; 1 M operations take 0.5 s.
#pragma once

#include "analyze/replay/graph.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::replay {

[[nodiscard]] Graph graph_of(const model::Session& session);

}  // namespace rangescope::analyze::replay
