// What a row of the table over all processes is about.
#pragma once

#include "model/report.hpp"

namespace rangescope::model {

/// The sums over its members, or its only one.
[[nodiscard]] inline const Region& region_of(const Report& report, const TableRow& row) {
  if (row.merged)
    return *row.merged;
  return report.regions[row.members.front()];
}

}  // namespace rangescope::model
