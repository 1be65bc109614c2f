// A folder for each region of a report, for people who look at one range at a time and for scripts:
//
//   OUT/<name>/report.json    the region and those below it, as of -f json
//   OUT/<name>/metrics.csv    result,what,occurrence,metric,unit,value: the region's own numbers,
//   then those of each
//                             result of ncu or our counters inside it, in base units
//   OUT/<name>/sections.txt   its table, then the values of each of its results
//
//   OUT/report.json           rangescope.regions/1: each folder with its region, numbers, and its
//   alias: the name that
//                             llm-perf-opt gives it (A__A1 for A::A1)
//   OUT/report.md             the same as a table
//
// A folder is named after the region with whatever a file name should not hold replaced, and a hash
// behind it where something was (base/fs.hpp), so that no two collide; the name itself is in the
// files. Parents contain what lies below them.
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/result.hpp"
#include "profile/analyzed.hpp"

namespace rangescope::profile {

/// Writes them; how many folders. `measured_only` leaves out regions without results. kIo with the
/// path. O(regions * results).
[[nodiscard]] base::Result<std::size_t> split_regions(const std::filesystem::path& out,
                                                      const Analyzed& analyzed,
                                                      bool measured_only = false);

}  // namespace rangescope::profile
