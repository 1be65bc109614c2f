#include "model/code_place.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace rangescope::model {

std::string place_text(const CodePlace& place) {
  if (place.file.empty()) return place.name;
  const std::string_view file = base::file_name(place.file);
  if (place.line == 0) return fmt::format("{} ({})", place.name, file);
  return fmt::format("{} ({}:{})", place.name, file, place.line);
}

}  // namespace rangescope::model
