// YAML files as values. The only file that knows yaml-cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

struct Document {
  Value root;           ///< a map; an empty file gives an empty one
  std::string package;  ///< of a `# @package NAME` comment before the first key; "" where there is none
};

/// One YAML document whose root is a map. `name` is shown in places. kConfig with file:line:column for everything that
/// is no YAML, a duplicate key in a map, a second document, a key that is no scalar, an alias without anchor.
[[nodiscard]] base::Result<Document> parse_yaml(std::string_view text, const std::string& name);
[[nodiscard]] base::Result<Document> read_yaml(const std::filesystem::path& path);

}  // namespace rangescope::config
