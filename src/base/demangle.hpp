// C++ and Rust names as the compiler and the driver give them (mangled), for people.
//
// A name comes from a file or a program of any user: 230 characters can expand to 2^27 and take 17
// s, or to nothing and take forever. A name that would become much longer than its mangled form, or
// that costs more than a moment, stays as it is.
#pragma once

#include <string>

namespace rangescope::base {

/// "void scale<float>(float*, int)" for its mangled form; the text itself where it is not a mangled
/// name, where its plain form has more than 4 KiB and 32 times its length, or would take longer
/// than 0.1 s of this thread. After 2 s without a result a process gives each name a millisecond.
[[nodiscard]] std::string demangle(const std::string& mangled);

}  // namespace rangescope::base
