// What each rank of a job did, held against the same on the others: Rank::work and Rank::card.
//
// Kernels are the same by name, grid and block; ranges by path, where every rank opened them equally often. What the
// others take is their median. O(kernels + occurrences log), kernels x ranks memory for the distinct ones.
#pragma once

#include "analyze/regions.hpp"

namespace rangescope::analyze {

/// Of a job of two ranks or more, after regions have their useful tokens.
void add_rank_work(const model::Session& session, const Tree& tree, const std::vector<RegionKey>& keys,
                   const Buckets& by_cell, model::Report& report);

}  // namespace rangescope::analyze
