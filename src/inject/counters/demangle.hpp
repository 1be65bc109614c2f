// The plain form of a kernel's mangled name, within bounds: the names are the program's, and 230
// characters can stand for 2^27, or be parsed forever (base/demangle.hpp, which needs signals and
// so is nothing for a program of others).
#pragma once

#include <cstddef>
#include <string_view>

namespace rangescope::inject::counters {

/// Without allocation, into `room`. The mangled name itself where it is none, does not fit, or
/// nests template arguments behind a conversion operator, which are parsed twice a level.
[[nodiscard]] std::string_view demangle(const char* mangled, char* room, std::size_t bytes);

}  // namespace rangescope::inject::counters
