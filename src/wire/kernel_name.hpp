// The short name of a kernel, as in ncu's name base `function`. The injected library and the
// readers of its captures choose kernels by it.
#pragma once

#include <string_view>

namespace rangescope::wire {

/// The function's own name without return type, namespaces, template arguments and parameters:
/// "scale" of "void at::<unnamed>::scale<float, (int)4>(float *, int)". The text itself if it has
/// none of these.
[[nodiscard]] inline std::string_view short_kernel_name(std::string_view demangled) {
  // The name ends where its template arguments or parameters begin, and begins after the last space
  // or "::" before that. In "(anonymous namespace)::f(int)" the first parenthesis opens no
  // parameter list.
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::size_t begin = 0;
  for (std::size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (c == '(') {
      if (demangled.substr(i).starts_with(kAnonymous))
        i += kAnonymous.size() - 1;
      else if (i > begin && !demangled.substr(begin, i - begin).ends_with("operator"))
        return demangled.substr(begin, i - begin);
    } else if (c == '<') {
      // Template arguments: of the function when a parameter list or nothing follows, else of a
      // class or a return type.
      int open = 0;
      std::size_t end = i;
      for (; end < demangled.size(); ++end) {
        if (demangled[end] == '<' || demangled[end] == '(')
          ++open;
        if (demangled[end] == '>' || demangled[end] == ')')
          --open;
        if (open == 0)
          break;
      }
      if (end + 1 >= demangled.size() || demangled[end + 1] == '(')
        return demangled.substr(begin, i - begin);
      i = end;
    } else if (c == ' ' || c == ':') {
      begin = i + 1;
    }
  }
  return demangled.substr(begin);
}

}  // namespace rangescope::wire
