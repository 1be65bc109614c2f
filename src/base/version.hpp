// Which rangescope this is.
#pragma once

#include <string>

namespace rangescope::base {

/// "rangescope 0.1.0"
[[nodiscard]] std::string tool_version();

}  // namespace rangescope::base
