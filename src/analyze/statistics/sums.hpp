// Sums of integers of which a part may be unknown.
#pragma once

#include <cstdint>
#include <limits>

namespace rangescope::analyze {

inline constexpr std::int64_t kUnknown = INT64_MIN;  ///< of a sum: one of its parts is not known

/// A sum, unless one of both is unknown. Stays at the ends of its type.
[[nodiscard]] inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (a == kUnknown || b == kUnknown) return kUnknown;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? -INT64_MAX : INT64_MAX;
  return sum;
}

/// As a report has it: NaN where it is unknown.
[[nodiscard]] inline double number(std::int64_t value) {
  return value == kUnknown ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(value);
}

}  // namespace rangescope::analyze
