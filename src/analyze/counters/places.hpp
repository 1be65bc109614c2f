// Places: the region of each single kernel, for tables that hold kernels one by one. Reports do not
// need it.
#pragma once

#include "analyze/options.hpp"
#include "model/places.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Of a session as analyze() left it, with the same options: the regions are those of its report.
/// Empty without kernels. O(ranges + launches + kernels).
[[nodiscard]] model::Places find_places(const model::Session& session, const Options& options);

}  // namespace rangescope::analyze
