// The causes that lie in the program: what its ranges are, and what happens inside them.
#pragma once

#include <span>
#include <string_view>

#include "doctor/causes.hpp"

namespace rangescope::doctor {

[[nodiscard]] std::span<const Cause> program_causes();
/// What "ncu" or "nsys" say of themselves when they capture nothing: the table of collect/outcome.cpp.
[[nodiscard]] std::span<const Cause> tool_causes(std::string_view tool);

}  // namespace rangescope::doctor
