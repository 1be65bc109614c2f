#include "analyze/tree/regions.hpp"

#include <algorithm>
#include <map>

#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

/// Evenly spaced closed occurrences of the cells, at most `most`, in time order.
std::vector<std::uint32_t> sample(const Tree& tree,
                                  const Session& session,
                                  const std::vector<std::uint32_t>& closed,
                                  std::size_t most) {
  std::vector<std::uint32_t> chosen;
  const std::size_t n = closed.size();
  const std::size_t count = std::min(n, most);
  chosen.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(closed[i * n / count]);
  std::sort(chosen.begin(), chosen.end(), Earlier{session, tree});
  return chosen;
}

/// Processes and threads with cells, each in the order of their regions.
struct Scopes {
  std::vector<std::uint32_t> processes, threads;
};

Scopes scopes_with_cells(const Tree& tree, const Session& session) {
  Scopes scopes;
  for (const std::uint32_t cell : tree.node_cells) {
    scopes.processes.push_back(tree.cells[cell].process);
    if (tree.cells[cell].thread != kNone)
      scopes.threads.push_back(tree.cells[cell].thread);
  }
  for (auto* list : {&scopes.processes, &scopes.threads}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  std::sort(scopes.threads.begin(), scopes.threads.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(session.threads[a].process, a) < std::pair(session.threads[b].process, b);
  });
  return scopes;
}

/// Collects the regions of a report, scope by scope, each below the region of the node above it.
class RegionPlan {
 public:
  RegionPlan(const Tree& tree, const Session& session, const std::vector<char>& selected)
      : tree_(tree), session_(session), selected_(selected) {
    region_of_.resize(tree.nodes.size(), kNone);
    rank_.resize(tree.nodes.size());
    for (std::uint32_t i = 0; i < tree.depth_first.size(); ++i)
      rank_[tree.depth_first[i]] = i;
  }

  void add_aggregate() {
    std::vector<RegionKey> keys;
    for (const std::uint32_t node : tree_.depth_first) {
      if (selected_[node])
        keys.push_back({node, kNone, kNone, tree_.node_begin[node], tree_.node_begin[node + 1]});
    }
    add_scope(keys);
  }

  void add_processes(const std::vector<std::uint32_t>& processes) {
    add_scopes(processes, &Cell::process);
  }

  void add_threads(const std::vector<std::uint32_t>& threads) {
    add_scopes(threads, &Cell::thread);
  }

  std::vector<RegionKey> take() { return std::move(keys_); }

 private:
  /// `keys`: of one scope, parents before children.
  void add_scope(const std::vector<RegionKey>& keys) {
    for (RegionKey key : keys) {
      const std::uint32_t above = tree_.nodes[key.node].parent;
      if (above != kNone && region_of_[above] != kNone) {
        key.parent = region_of_[above];
        key.depth = keys_[key.parent].depth + 1;
      }
      region_of_[key.node] = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(key);
    }
    for (const RegionKey& key : keys)
      region_of_[key.node] = kNone;
  }

  /// A scope's regions come from a walk over its own cells only: the whole cost is O(cells log
  /// cells), not scopes x nodes.
  void add_scopes(const std::vector<std::uint32_t>& scopes, std::uint32_t Cell::*scope_of) {
    std::map<std::uint32_t, std::vector<RegionKey>> keys_of;
    for (std::uint32_t node = 0; node < tree_.nodes.size(); ++node) {
      const std::size_t end = selected_[node] ? tree_.node_begin[node + 1] : 0;
      for (std::size_t i = tree_.node_begin[node], last = i; i < end; i = last) {
        const Cell& cell = tree_.cells[tree_.node_cells[i]];
        while (last < end && tree_.cells[tree_.node_cells[last]].*scope_of == cell.*scope_of)
          ++last;
        const bool has_scope = scope_of == &Cell::process || cell.thread != kNone;
        if (has_scope)
          keys_of[cell.*scope_of].push_back(key_of(cell, scope_of, i, last));
      }
    }
    for (const std::uint32_t scope : scopes) {
      std::vector<RegionKey>& keys = keys_of[scope];
      std::ranges::sort(keys, {}, [&](const RegionKey& key) { return rank_[key.node]; });
      add_scope(keys);
    }
  }

  [[nodiscard]] RegionKey key_of(const Cell& cell,
                                 std::uint32_t Cell::*scope_of,
                                 std::size_t first,
                                 std::size_t last) const {
    if (scope_of == &Cell::process)
      return {cell.node, cell.process, kNone, first, last};
    return {cell.node, session_.threads[cell.thread].process, cell.thread, first, last};
  }

  const Tree& tree_;
  const Session& session_;
  const std::vector<char>& selected_;
  std::vector<RegionKey> keys_;
  std::vector<std::uint32_t> region_of_;  ///< by node, in the scope that is being added
  std::vector<std::uint32_t> rank_;       ///< place of each node in Tree::depth_first
};

/// What the region is: all but its numbers.
model::Region described_region(const Regions& of, std::size_t r) {
  const RegionKey& key = of.keys[r];
  const Node& node = of.tree.nodes[key.node];
  const Session& session = of.session;
  model::Region region;
  region.id = static_cast<std::uint32_t>(r);
  region.parent = key.parent;
  region.depth = key.depth;
  for (const auto name : path_of(of.tree, session, key.node))
    region.path.emplace_back(name);
  region.domain = std::string(session.strings.view(session.domains[node.domain].name));
  region.kind = node.kind;
  region.module = node.module;
  if (key.process != kNone)
    region.process = key.process;
  if (key.thread != kNone)
    region.thread = session.threads[key.thread].tid;
  return region;
}

/// Counts and wall time, from its cells.
void add_cells(const Regions& of, std::size_t r, model::Region& region) {
  std::uint64_t inclusive = 0, exclusive = 0, recorded = 0;
  std::int64_t replayed = 0;
  std::uint32_t last_process = kNone;
  for (const std::uint32_t number : of.cells(r)) {
    const Cell& cell = of.tree.cells[number];
    inclusive += cell.inclusive_ns;
    exclusive += cell.exclusive_ns;
    recorded += cell.recorded_ns;
    region.occurrences += cell.closed + cell.replayed;
    region.unclosed += cell.unclosed;
    replayed += cell.replayed;
    if (cell.thread != kNone)
      ++region.threads;
    if (cell.process != last_process || region.processes == 0)
      ++region.processes;
    last_process = cell.process;
  }
  const auto duration = static_cast<double>(length_ns(of.session.begin_ns, of.session.end_ns));
  region.wall.inclusive_ns = static_cast<double>(inclusive);
  region.wall.exclusive_ns = static_cast<double>(exclusive);
  region.wall.profiler_ns = region.wall.recording_ns = static_cast<double>(recorded);
  region.wall.share = duration > 0 ? region.wall.inclusive_ns / duration : 0;
  if (replayed > 0)
    region.notes.push_back(replay_note(replayed));
}

}  // namespace

std::vector<RegionKey> plan_regions(const Tree& tree,
                                    const Session& session,
                                    const Options& options,
                                    const std::vector<char>& selected) {
  const Scopes scopes = scopes_with_cells(tree, session);
  RegionPlan plan(tree, session, selected);
  if (options.aggregate)
    plan.add_aggregate();
  if (!options.aggregate || (options.per_process && scopes.processes.size() > 1))
    plan.add_processes(scopes.processes);
  if (options.per_thread)
    plan.add_threads(scopes.threads);
  return plan.take();
}

std::vector<model::Region> wall_regions(const Regions& of,
                                        std::vector<std::vector<std::uint32_t>>& sampled) {
  const Session& session = of.session;
  const Tree& tree = of.tree;
  std::vector<model::Region> regions(of.keys.size());
  sampled.assign(regions.size(), {});
  const int threads = threads_for(tree.range_of.size(), of.options.threads);
  base::parallel_for(regions.size(), threads, [&](std::size_t r) {
    model::Region& region = regions[r];
    region = described_region(of, r);
    add_cells(of, r, region);
    std::vector<std::uint32_t> closed;
    of.for_each_closed(r, [&](std::uint32_t o, const model::Range&) { closed.push_back(o); });
    sampled[r] = sample(tree, session, closed, of.options.samples);
    for (const std::uint32_t occurrence : sampled[r]) {
      const model::Range& range = session.ranges[tree.range_of[occurrence]];
      region.samples.push_back({since_ns(session.begin_ns, range.start_ns),
                                static_cast<double>(length_ns(range.start_ns, range.end_ns)),
                                0});
    }
  });
  return regions;
}

std::string replay_note(std::int64_t count) {
  return std::to_string(count) +
         " of its instances by CUDA graph replay of ranges that were open at capture: with GPU "
         "work, and no CPU time "
         "of their own.";
}

}  // namespace rangescope::analyze
