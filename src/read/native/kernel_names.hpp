// Names of kernels as the driver gives them (mangled) for people.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::read::native {

/// "void scale<float>(float*, int)" for its mangled form; the text itself where it is not a mangled C++ name.
[[nodiscard]] std::string demangle(const std::string& mangled);

/// The function's own name without return type, namespaces, template arguments and parameters: "scale".
[[nodiscard]] std::string_view short_kernel_name(std::string_view demangled);

}  // namespace rangescope::read::native
