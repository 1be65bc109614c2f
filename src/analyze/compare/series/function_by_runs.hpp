// Functions of a region where runs are repeated: tested from run to run, as regions are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "analyze/compare/compare_functions.hpp"
#include "analyze/names/matching.hpp"
#include "analyze/statistics/permutation.hpp"

namespace rangescope::analyze {

/// Own time of a function per instance, in each run of the first side and of `side`. Nothing, with
/// the reason, where the function takes less than 1 % of the region's wall time or ten samples on
/// both sides, or where a run lists no more than its largest functions and not this one.
[[nodiscard]] std::optional<TwoGroups> function_by_runs(const MatchedRegion& region,
                                                        const std::string& name,
                                                        FunctionScope scope,
                                                        std::size_t side,
                                                        std::string& why);

}  // namespace rangescope::analyze
