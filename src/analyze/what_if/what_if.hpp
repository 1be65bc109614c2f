// Answers `report --what-if`: replays the recording with all changes made, and predicts the time of
// the run and of every region.
//
// Times are comparable with the wall times of the report: what recording added is taken out of both
// replays, and the share that is left of the second one is applied to the wall time that the
// report has. Cost: O(n log n) for n operations and ranges; about 200 bytes an operation.
#pragma once

#include "analyze/options.hpp"
#include "analyze/tree/regions.hpp"
#include "base/result.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// Fills Report::what_if and the metrics of regions and rows. Nothing where nothing is asked for.
/// kUsage as parse_what_if(); kNothingCaptured, with the nearest names, for a change of what the
/// recording does not have.
[[nodiscard]] base::Result<void> add_what_if(const Regions& regions,
                                             const Reference& reference,
                                             model::Report& report);

}  // namespace rangescope::analyze
