// How many launches a stream holds before calls wait for room (1,024 on CUDA 13 and an H100), as a
// recording shows it.
//
// A call that takes far longer than others, while hundreds of launches of its stream are under way,
// waits for the oldest of them to end. Where such calls agree on the number, that is the depth of
// the queue; then a shorter call waited too if the oldest ended within it. O(n log n).
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/replay/timeline.hpp"

namespace rangescope::analyze::replay {

struct Queues {
  static constexpr std::uint32_t kNeverFull = 0;
  std::vector<std::uint32_t> depth;  ///< by stream of the session
  std::vector<Id> awaited;       ///< by call: the work that has to end before it returns, or kNone
  std::vector<bool> found_full;  ///< by call: it waited in the recording
};

[[nodiscard]] Queues queues_of(const Timeline& timeline, std::size_t streams, std::int64_t call_ns);

}  // namespace rangescope::analyze::replay
