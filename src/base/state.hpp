// What rangescope remembers for this user between runs: $XDG_STATE_HOME/rangescope, else ~/.local/state/rangescope.
#pragma once

#include <filesystem>

namespace rangescope::base {

/// The folder, which may not exist yet; "" where neither variable names one.
[[nodiscard]] std::filesystem::path state_folder();

}  // namespace rangescope::base
