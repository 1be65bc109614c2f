// From nodes to the regions of a report: scopes, order, parents, wall time and samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
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

  [[nodiscard]] bool of_all() const {
    return process == kNone && thread == kNone;
  }  ///< of the aggregate
};

/// A session with its tree and the regions that a report has of it: what their numbers are counted
/// from.
struct Regions {
  const model::Session& session;
  const Options& options;
  const Tree& tree;
  const std::vector<RegionKey>& keys;  ///< of Report::regions
  const Buckets& by_cell;              ///< occurrences of each cell

  [[nodiscard]] std::span<const std::uint32_t> cells(std::size_t r) const {
    return std::span(tree.node_cells).subspan(keys[r].first, keys[r].last - keys[r].first);
  }
  /// each(occurrence, range), of those of region `r` that are listed and have ended.
  template <class Each>
  void for_each_closed(std::size_t r, Each&& each) const {
    for (const std::uint32_t cell : cells(r))
      for (const std::uint32_t o : by_cell.of(cell))
        if (const model::Range* range = closed_range(session, tree, o))
          each(o, *range);
  }
};

/// The regions of the selected nodes, depth first: the aggregate, then each process, then each
/// thread, as asked for.
[[nodiscard]] std::vector<RegionKey> plan_regions(const Tree& tree,
                                                  const model::Session& session,
                                                  const Options& options,
                                                  const std::vector<char>& selected);

/// Names, counts and wall time of every region, but for its occurrences one by one
/// (analyze/time/steady.hpp); samples with their wall time. `sampled`: their occurrences.
/// O(occurrences) a scope, regions in parallel.
[[nodiscard]] std::vector<model::Region> wall_regions(
    const Regions& of, std::vector<std::vector<std::uint32_t>>& sampled);

/// Of a region some occurrences of which are replays.
[[nodiscard]] std::string replay_note(std::int64_t count);

}  // namespace rangescope::analyze
