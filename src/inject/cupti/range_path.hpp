// The path of a range within its domain, as counters know their targets: names bottom to top, and a hash of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/counters/plan.hpp"
#include "inject/writer.hpp"

namespace rangescope::inject::cupti {

struct RangePath {
  static constexpr std::size_t kDeepest = 64;  ///< deeper stacks are not looked at
  counters::Piece names[kDeepest];             ///< valid during the NVTX call
  std::size_t depth = 0;
  counters::Piece domain{"", 0};
  std::uint64_t hash = 0;
};

/// The path of the push/pop range that `event` opens on this thread; false when it is too deep.
[[nodiscard]] bool path_of_push(const Event& event, RangePath& path);
/// The path of a start/end range: its name alone.
void path_of_start(const Event& event, RangePath& path);

}  // namespace rangescope::inject::cupti
