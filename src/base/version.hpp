// Which rangescope this is.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::base {

/// "rangescope 0.1.0"
[[nodiscard]] std::string tool_version();

/// Where the manual can be read.
[[nodiscard]] std::string_view manual_address();

}  // namespace rangescope::base
