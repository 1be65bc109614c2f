// From a session to its digest.
#pragma once

#include "analyze/analyze.hpp"
#include "analyze/tally/digest.hpp"
#include "base/result.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::tally {

/// Lengths of occurrences that a digest keeps to compare ranks by: so many in all, and so many of each region.
inline constexpr std::size_t kMostLengths = 16384, kFewestLengths = 8, kMostLengthsOfRegion = 1024;

/// Of a session as a report of it left it: names folded, processes labelled with their ranks. Selections in `options`
/// are not looked at. O(events).
[[nodiscard]] base::Result<Digest> digest_of(const model::Session& session, const analyze::Options& options);

}  // namespace rangescope::analyze::tally
