// From a session to its digest.
#pragma once

#include "analyze/details.hpp"
#include "analyze/tally/digest.hpp"
#include "base/result.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::tally {

/// Of a session as a report of it left it: names folded, processes labelled with their ranks.
/// Selections in `options` are not looked at. O(events). An error where there are too many regions
/// or kernels.
[[nodiscard]] base::Result<Digest> digest_of(const model::Session& session,
                                             const analyze::Options& options);

/// Of what a report of all regions was summed up from.
[[nodiscard]] base::Result<Digest> tally_of(const model::Session& session,
                                            const analyze::Options& options,
                                            const Details& details,
                                            const model::Report& report);

}  // namespace rangescope::analyze::tally
