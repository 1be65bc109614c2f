// Regions over the ranks of a parallel job: Report::ranks and Region::ranks of the aggregate and of merged rows.
//
// The time of a rank in a region is the sum over its processes and threads. `own` is that less child regions and calls
// of communication libraries, where a rank may just wait for others. O(occurrences log occurrences).
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/tree/regions.hpp"

namespace rangescope::analyze {

enum class OwnTime : std::uint8_t { kAll, kWithoutGpuWaits };
/// Of each closed occurrence, its time less that of child regions and of calls of communication libraries inside; if
/// wanted, less calls that wait for the GPU too.
[[nodiscard]] std::vector<double> own_times(const model::Session& session, const Tree& tree,
                                            OwnTime which = OwnTime::kAll);

/// Fills count, mean, least, most, deviation and imbalance by OverRanks::by_rank; the index of the slowest.
std::size_t sum_up(model::OverRanks& ranks);

/// Report::ranks alone.
void list_ranks(const model::Session& session, model::Report& report);

/// After rows are there, where at least two ranks are known.
void add_over_ranks(const model::Session& session, const Tree& tree, const std::vector<RegionKey>& keys,
                    const Buckets& by_cell, model::Report& report);

}  // namespace rangescope::analyze
