// Clocks and throttling of two sides, where they explain what changed: what NVML reported while a
// region's GPU work ran (metrics sm_clock, memory_clock, clock_limited of a digest).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyze/names/matching.hpp"
#include "model/comparison.hpp"

namespace rangescope::analyze {

/// One line per side whose clocks were lower or higher, or throttled longer, than those of the
/// first side: where the clocks alone move times by half of what a region changed or more, in that
/// direction, or where one side was throttled for a tenth of the time longer. Nothing where clocks
/// are alike or unknown. `regions` are those of the comparison, in its order.
[[nodiscard]] std::vector<std::string> clock_notes(std::span<const MatchedRegion* const> regions,
                                                   const model::Comparison& comparison);

}  // namespace rangescope::analyze
