// What of a report is compared. O(regions).
#pragma once

#include "model/digest.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// The regions of the aggregate (of the only process, where there is no aggregate) with every value
/// that they have; with the session also their call chains.
[[nodiscard]] model::Digest digest(const model::Report& report,
                                   const model::Session* session = nullptr);

}  // namespace rangescope::analyze
