// JSON as it may reach a terminal.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::base {

/// A JSON text of valid UTF-8 with what terminals obey (DEL, C1 controls, direction overrides) written as \uNNNN.
[[nodiscard]] std::string printable_json(std::string_view json);

}  // namespace rangescope::base
