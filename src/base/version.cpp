#include "base/version.hpp"

namespace rangescope::base {

std::string tool_version() {
  return "rangescope " RANGESCOPE_VERSION;
}

}  // namespace rangescope::base
