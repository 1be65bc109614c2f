#include "model/code_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/text.hpp"

namespace rangescope::model {
namespace {

/// What stands behind the arguments of a function: "f() const", "f() [libm.so.6]".
bool may_follow_arguments(std::string_view text) {
  constexpr std::string_view kQualifiers[] = {" const", " &", " volatile", " noexcept", " ["};
  const auto begins = [&](std::string_view word) { return text.starts_with(word); };
  return text.empty() || std::ranges::any_of(kQualifiers, begins);
}

/// Where the bracket was opened that is closed at `close`; npos if it was not.
std::size_t opening_of(std::string_view text, std::size_t close) {
  int depth = 0;
  for (std::size_t i = close + 1; i-- > 0;) {
    if (text[i] == ')')
      ++depth;
    if (text[i] == '(' && --depth == 0)
      return i;
  }
  return std::string_view::npos;
}

}  // namespace

std::string name_without_arguments(std::string_view name) {
  const std::size_t close = name.rfind(')');
  if (close == std::string_view::npos)
    return std::string(name);
  const std::string_view rest = name.substr(close + 1);
  const std::size_t open = opening_of(name, close);
  if (open == std::string_view::npos || open == 0)
    return std::string(name);
  const std::string_view function = name.substr(0, open);
  const bool is_operator_itself = function.ends_with("operator");
  if (is_operator_itself || !may_follow_arguments(rest))
    return std::string(name);
  const std::size_t module = rest.find(" [");
  if (module == std::string_view::npos)
    return std::string(function);
  return fmt::format("{}{}", function, rest.substr(module));
}

std::string place_text(const CodePlace& place) {
  const std::string name = name_without_arguments(place.name);
  if (place.file.empty())
    return name;
  const std::string_view file = base::file_name(place.file);
  if (place.line == 0)
    return fmt::format("{} ({})", name, file);
  return fmt::format("{} ({}:{})", name, file, place.line);
}

}  // namespace rangescope::model
