// A stretch of a session as a session of its own: what cures are looked for in where the whole one
// has too many operations to be replayed twenty times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/session.hpp"

namespace rangescope::analyze::cures {

struct TimeWindow {
  std::int64_t start_ns = 0, end_ns = 0;
};

/// Calls, kernels, copies, sets and launches of graphs.
[[nodiscard]] std::size_t count_operations(const model::Session& session);

/// The window in the middle of a session that holds about so many operations. It goes by calls:
/// each is taken to launch as much as the mean. O(n) for n calls.
[[nodiscard]] TimeWindow middle_of(const model::Session& session, std::size_t operations);

/// The calls that begin in the window, what they launched, and what threads did on the CPU in it.
/// A range that crosses the window's edge and covers half of the window is cut there (a loop);
/// shorter ones are left out with all that is in them (a step that is not whole). Strings, threads,
/// streams and names of kernels keep their indexes. O(n) for n operations and ranges.
[[nodiscard]] model::Session part_of(const model::Session& session, const TimeWindow& window);

}  // namespace rangescope::analyze::cures
