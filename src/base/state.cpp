#include "base/state.hpp"

#include <cstdlib>

namespace rangescope::base {

std::filesystem::path state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::filesystem::path(state) / "rangescope";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::filesystem::path(home) / ".local/state/rangescope";
  return {};
}

}  // namespace rangescope::base
