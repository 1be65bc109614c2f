// The rows of the table over all processes: siblings whose names differ by a number only are one
// row.
//
// `layer_0` ... `layer_31` become `layer_#` where four or more are siblings; what lies in them is
// put together by name. Numbers are what `--fold-names numbers` takes for numbers
// (analyze/names/fold.hpp). Sums are sums over the members; medians are of all their occurrences.
// O(regions + occurrences of merged regions).
#pragma once

#include "analyze/time/steady.hpp"

namespace rangescope::analyze {

/// Fills Report::rows from the regions of the aggregate. `regions` is null where an input has
/// totals only: then merged rows have no medians.
void add_rows(const Regions* regions, const std::vector<Phase>& phases, model::Report& report);

/// Also the shares of all kernels' time of each region, and after bounds were found those of merged
/// rows.
void finish_rows(model::Report& report);

}  // namespace rangescope::analyze
