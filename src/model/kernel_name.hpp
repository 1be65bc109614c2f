// The short name of a kernel, as ncu's name base `function` has it.
#pragma once

#include <string_view>

namespace rangescope::model {

/// The function's own name without return type, namespaces, template arguments and parameters: "scale" of
/// "void at::<unnamed>::scale<float, (int)4>(float *, int)". Where there is no such thing the text itself.
[[nodiscard]] std::string_view short_kernel_name(std::string_view demangled);

}  // namespace rangescope::model
