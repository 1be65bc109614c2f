// Names of kernels as the driver gives them (mangled) for people.
#pragma once

#include <string>

namespace rangescope::read {

/// "void scale<float>(float*, int)" for its mangled form; the text itself where it is not a mangled C++ name.
[[nodiscard]] std::string demangle(const std::string& mangled);

}  // namespace rangescope::read
