// Where in the program memory was asked for.
//
// An allocation whose thread was recorded was asked for there and then. PyTorch's recorder names no
// thread: its operators allocate what they return and then launch what fills it, so an allocation
// belongs to the next call of its process that puts work on a GPU, on whatever thread. If a range
// of the program begins or ends on that thread meanwhile, the moment of the allocation counts
// instead.
#pragma once

#include <cstdint>
#include <vector>

#include "model/session.hpp"

namespace rangescope::analyze {

/// Moments of threads, as calls that take no time.
struct AskedPoints {
  std::vector<model::Launch> calls;
  /// Of each allocation and failure of the session: index into `calls`; kNone where it is older
  /// than the recording, or nothing tells its thread.
  std::vector<std::uint32_t> of_allocation;
  std::vector<std::uint32_t> of_failure;
};

/// O(n log n) in allocations, calls and ranges.
[[nodiscard]] AskedPoints asked_points(const model::Session& session);

}  // namespace rangescope::analyze
