// Words that people add to a tool's own command line: `extra_args` of nsys and of ncu.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collect/abilities.hpp"

namespace rangescope::collect {

/// Appends `words` to `argv`. kConfig, with `key` as place, for an option among `owned`, which rangescope itself passes
/// and which a second one would contradict; for one that `argv` has already or the tool's help does not have; for a
/// short option, which could be either; and for a word that is neither an option nor behind one.
[[nodiscard]] base::Result<void> add_extra_args(std::span<const std::string> words,
                                                std::span<const std::string_view> owned, const Abilities& can,
                                                std::string_view key, std::vector<std::string>& argv);

}  // namespace rangescope::collect
