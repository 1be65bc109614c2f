// What ranks did over time: Report::activity, for plots.
#pragma once

#include <vector>

#include "analyze/ranks/communication.hpp"

namespace rangescope::analyze {

inline constexpr std::size_t kActivityBins = 256;

/// Of runs that are long enough. O((calls + ranges) log + ranks * kActivityBins).
void add_activity(const Regions& regions,
                  const Surroundings& surroundings,
                  const std::vector<Timed>& timed,
                  model::Report& report);

}  // namespace rangescope::analyze
