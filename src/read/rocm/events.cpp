#include "read/rocm/events.hpp"

#include "base/text.hpp"

namespace rangescope::read::rocm {
std::string_view kernel_name(std::string_view symbol) {
  for (const std::string_view end : {" [clone .kd]", ".kd"})
    if (symbol.ends_with(end) && symbol.size() > end.size())
      symbol.remove_suffix(end.size());
  return symbol;
}

bool is_fill(std::string_view name) {
  return name.find("Fill") != std::string_view::npos ||
         base::lower(name).find("memset") != std::string::npos;
}

std::uint64_t copied_bytes(std::string_view arguments) {
  constexpr std::string_view kSize = "sizeBytes(";
  const std::size_t found = arguments.find(kSize);
  if (found == std::string_view::npos)
    return 0;
  const std::string_view rest = arguments.substr(found + kSize.size());
  return base::to_uint(rest.substr(0, rest.find(')'))).value_or(0);
}

}  // namespace rangescope::read::rocm
