// Sums of integers of which a part may be unknown, and what parts are of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rangescope::analyze {

inline constexpr std::int64_t kUnknown = INT64_MIN;  ///< of a sum: one of its parts is not known

/// A sum, unless one of both is unknown. Stays at the ends of its type.
[[nodiscard]] inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (a == kUnknown || b == kUnknown)
    return kUnknown;
  if (__builtin_add_overflow(a, b, &sum))
    return a < 0 ? -INT64_MAX : INT64_MAX;
  return sum;
}

/// How far the largest of several parts is above their mean.
[[nodiscard]] inline double imbalance_of(double largest, double mean) {
  return mean > 0 ? largest / mean - 1 : 0;
}

/// A value of several parts: how many, their sum, and the largest one's number.
struct PartSums {
  std::uint64_t count = 0;
  std::int64_t sum = 0, min = 0, max = 0;
  std::uint64_t largest = 0;  ///< of equals the lowest number

  void add(const PartSums& other) {
    if (other.count == 0)
      return;
    const bool first = count == 0;
    if (first || other.max > max || (other.max == max && other.largest < largest))
      largest = other.largest;
    min = first ? other.min : std::min(min, other.min);
    max = first ? other.max : std::max(max, other.max);
    sum = plus(sum, other.sum);
    count += other.count;
  }
  void add(std::uint64_t number, std::int64_t value) { add({1, value, value, value, number}); }
};

/// As a report has it: NaN where it is unknown.
[[nodiscard]] inline double number(std::int64_t value) {
  return value == kUnknown ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(value);
}

}  // namespace rangescope::analyze
