// The causes that lie in the machine.
#pragma once

#include <span>

#include "doctor/causes.hpp"

namespace rangescope::doctor {

[[nodiscard]] std::span<const Cause> machine_causes();

}  // namespace rangescope::doctor
