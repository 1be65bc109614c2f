#include "base/version.hpp"

namespace rangescope::base {

std::string tool_version() {
  return "rangescope " RANGESCOPE_VERSION;
}

std::string_view manual_address() {
  return RANGESCOPE_HOMEPAGE "/tree/main/docs/manual";
}

}  // namespace rangescope::base
