// Differences of timestamps, whatever the input.
#pragma once

#include <cstdint>

#include "model/range.hpp"

namespace rangescope::analyze {

using model::kOpen;

/// end - start, 0 for what ends before it starts; no overflow whatever the input.
[[nodiscard]] constexpr std::int64_t length_ns(std::int64_t start, std::int64_t end) {
  if (end <= start)
    return 0;
  const auto length = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(start);
  return length > static_cast<std::uint64_t>(kOpen) ? kOpen : static_cast<std::int64_t>(length);
}

/// at - begin as a number, whatever the input.
[[nodiscard]] constexpr double since_ns(std::int64_t begin, std::int64_t at) {
  return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(at) -
                                                       static_cast<std::uint64_t>(begin)));
}

}  // namespace rangescope::analyze
