// Demangles a kernel's name within bounds. The names come from the program: 230 characters can
// expand to 2^27, or take forever to parse. base/demangle.hpp is not used because it needs signals,
// which belong to the profiled program.
#pragma once

#include <cstddef>
#include <string_view>

namespace rangescope::inject::counters {

/// Writes into `room`, without allocation. Returns `mangled` itself if it is not a mangled name,
/// if the result does not fit, or if parsing it would take exponential time: nested template
/// arguments behind a conversion operator.
[[nodiscard]] std::string_view demangle(const char* mangled, char* room, std::size_t bytes);

}  // namespace rangescope::inject::counters
