// How long a framework works between two calls.
#pragma once

#include <cstdint>

namespace rangescope::analyze::replay {

/// What a thread does between two calls is the framework's way from one to the next up to this; a
/// longer stretch is the program's own work.
inline constexpr std::int64_t kLongestBetweenCalls_ns = 100'000;

}  // namespace rangescope::analyze::replay
