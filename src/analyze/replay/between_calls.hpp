// How long a framework works between two calls.
#pragma once

#include <cstdint>

#include "analyze/replay/graph.hpp"

namespace rangescope::analyze::replay {

/// What a thread does between two calls is the framework's way from one to the next up to this; a
/// longer stretch is the program's own work.
inline constexpr std::int64_t kLongestBetweenCalls_ns = 100'000;

/// Does the stretch last longer than `times` that limit?
[[nodiscard]] inline bool is_long_stretch(const Operation& operation, int times = 1) {
  return operation.kind == Kind::kStretch &&
         operation.duration_ns > times * kLongestBetweenCalls_ns;
}

}  // namespace rangescope::analyze::replay
