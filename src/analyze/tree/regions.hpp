// From nodes to the regions of a report: scopes, order, parents, wall time and samples.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/statistics/order.hpp"
#include "analyze/tree/tree.hpp"
#include "model/report.hpp"

namespace rangescope::analyze {

/// A region to be: the cells [first, last) of Tree::node_cells, all of one node.
struct RegionKey {
  std::uint32_t node = 0;
  std::uint32_t process = kNone;  ///< index into Session::processes; kNone in the aggregate
  std::uint32_t thread = kNone;   ///< index into Session::threads
  std::size_t first = 0, last = 0;
  std::uint32_t parent = kNone;  ///< region
  std::uint32_t depth = 0;       ///< ancestors that are shown
};

/// The regions of the selected nodes, depth first: the aggregate, then each process, then each thread, as asked for.
[[nodiscard]] std::vector<RegionKey> plan_regions(const Tree& tree, const model::Session& session,
                                                  const Options& options, const std::vector<char>& selected);

/// Names, counts and wall time of every region; samples with their wall time. `by_cell`: occurrences of each cell.
/// O(occurrences) a scope, regions in parallel.
[[nodiscard]] std::vector<model::Region> wall_regions(const Tree& tree, const model::Session& session,
                                                      const Options& options, const std::vector<RegionKey>& keys,
                                                      const Buckets& by_cell,
                                                      std::vector<std::vector<std::uint32_t>>& sampled);

}  // namespace rangescope::analyze
