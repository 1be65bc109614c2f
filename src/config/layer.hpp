// One file of the configuration: a layer whose keys are nested from the root.
//
// Files that were written for Hydra say where their keys belong in other ways: a comment `# @package pipeline.ncu`, a
// `defaults:` list, or nothing at all (`ncu_cli: ...` alone). They are refused with the lines to write instead.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

/// The groups that can be chosen, each with the names of its options.
using Groups = std::map<std::string, std::vector<std::string>>;

struct Layer {
  std::string file;
  std::string group;  ///< whose option it is; "" for other files
  Value values;       ///< a map
};

/// kConfig as parse_yaml, and for Hydra's forms.
[[nodiscard]] base::Result<Layer> read_layer(const std::filesystem::path& path, const std::string& group,
                                             const Groups& groups);

/// How a file has to be indented whose root has `names`, which are keys of some section but none of the root: "Write
/// `pipeline:` and `  ncu:` above `ncu_cli:`, and indent ...". Of several sections the one of `group` counts; "" where
/// that does not decide, or where no section has all of the names.
[[nodiscard]] std::string indentation_hint(std::span<const std::string> names, const std::string& group);

}  // namespace rangescope::config
