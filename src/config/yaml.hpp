// YAML files as values. The only file that knows yaml-cpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

constexpr std::size_t kMostYamlBytes = std::size_t{64} << 20;

/// One YAML document whose root is a map; an empty file gives an empty one. `name` and `source` are
/// the origin of its values. kConfig with file:line:column for everything that is no YAML, a
/// duplicate key in a map, a second document, a key that is no scalar, an alias without anchor.
[[nodiscard]] base::Result<Value> parse_yaml(std::string_view text,
                                             const std::string& name,
                                             Source source = Source::kUserFile);
[[nodiscard]] base::Result<Value> read_yaml(const std::filesystem::path& path);

}  // namespace rangescope::config
