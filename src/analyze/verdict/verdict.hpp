// The answer in at most five lines: what costs the run its time, and how much it could save.
#pragma once

#include <string_view>

#include "analyze/verdict/rule.hpp"

namespace rangescope::analyze {

inline constexpr std::size_t kMostVerdicts = 5;

/// Fills Report::verdict from a report whose bounds are known: errors first, then warnings by what
/// they save, then notes. Where no rule fires, a line on how the run's time was spent. `named`: how
/// a command line names the input, a run or a file. O(rules * rows).
void judge(model::Report& report, std::string_view named = {});

}  // namespace rangescope::analyze
