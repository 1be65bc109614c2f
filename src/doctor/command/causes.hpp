// The causes that lie in a command line of ncu or nsys.
#pragma once

#include <span>

#include "doctor/causes.hpp"

namespace rangescope::doctor {

[[nodiscard]] std::span<const Cause> command_causes();

}  // namespace rangescope::doctor
