// Names of PyTorch's modules in recordings: the place in the model, and the class in brackets, as
// in "model.layers.0.mlp (LlamaMLP)".
#pragma once

#include <string_view>

namespace rangescope::model {

/// "model.layers.0.mlp", of a module's name; all of it where it has no class.
[[nodiscard]] constexpr std::string_view without_class(std::string_view name) {
  return name.substr(0, name.rfind(" ("));
}

/// "LlamaMLP", of a module's name; "" where it has no class.
[[nodiscard]] constexpr std::string_view class_of_module(std::string_view name) {
  const std::string_view place = without_class(name);
  if (place.size() == name.size() || !name.ends_with(')'))
    return {};
  constexpr std::size_t kBrackets = 3;  // " (" and ")"
  return name.substr(place.size() + 2, name.size() - place.size() - kBrackets);
}

}  // namespace rangescope::model
