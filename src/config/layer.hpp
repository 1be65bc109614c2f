// One file of the configuration: a layer whose keys are nested from the root.
//
// Files that were written for Hydra name the place of their keys in other ways: by a comment
// `# @package pipeline.ncu`, by the defaults list that includes them (`ncu_cli: ...` alone), or
// they choose others in a `defaults:` list. They are refused with the lines to write instead.
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
[[nodiscard]] base::Result<Layer> read_layer(const std::filesystem::path& path,
                                             const std::string& group,
                                             const Groups& groups,
                                             Source source);

/// How to indent a file whose root has `names`, which are keys of a section but none of the root:
/// "Write `pipeline:` and `  ncu:` above `ncu_cli:`, and indent ...". If several sections have all
/// of the names, the one of `group` counts. "" if no single section is left.
[[nodiscard]] std::string indentation_hint(std::span<const std::string> names,
                                           const std::string& group);

}  // namespace rangescope::config
