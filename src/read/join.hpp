// Several inputs as one session.
//
// Timelines (native, nsys) are laid side by side: their vectors are appended, their clocks brought
// together through the UTC time of their anchors, and processes of one input are never taken for
// processes of another. Results of ncu come from runs of their own, so they are joined by what they
// hold: kernel name, NVTX path and launch order. Results of one path, in their order, are laid
// along the kernels of that path in the timeline, in launch order, as a subsequence; each takes the
// process, stream and position within its range occurrence of the kernel that it meets. What meets
// none keeps its own path and becomes a loss that names it. O(kernels + ranges + results).
#pragma once

#include <optional>
#include <vector>

#include "model/session.hpp"

namespace rangescope::read {

/// Does it tell when something happened? Reports and CSV of ncu and tables of nsys stats do not.
[[nodiscard]] bool has_timeline(const model::Session& session);

/// One session of all. Never fails: what does not fit is a loss. Measurements keep the order of the
/// sessions, those with a timeline first.
[[nodiscard]] model::Session join(std::vector<model::Session> sessions);

/// `session` joined with `more`, or `more` alone where there is none.
void join_to(std::optional<model::Session>& session, model::Session more);

/// Adds what `from` measured, and nothing else of it, to the session of another run of the same
/// program: each result goes to the first process of `to` that opened its range. Losses of counters
/// in `to` are replaced by those of `from`, which is the later run.
void add_results(model::Session& to, model::Session from);

}  // namespace rangescope::read
