// A function in a source file, as reports name it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rangescope::model {

struct CodePlace {
  std::string name;        ///< "slow_regex", "<module>"; a library's "sre_match [libpython3.11.so]"
  std::string file;        ///< "" where unknown
  std::uint32_t line = 0;  ///< 0 where unknown

  [[nodiscard]] bool known() const { return !name.empty(); }
  bool operator==(const CodePlace&) const = default;
};

/// "sort(int*, int) const" without its arguments: "sort". Overloads have the same name then.
[[nodiscard]] std::string name_without_arguments(std::string_view name);

/// "slow_regex (server.py:31)": the name without arguments, the file without its folders; the name
/// alone where no file is known.
[[nodiscard]] std::string place_text(const CodePlace& place);

}  // namespace rangescope::model
