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
  const std::size_t n = closed.size(), count = std::min(n, most);
  chosen.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(closed[i * n / count]);
  std::sort(chosen.begin(), chosen.end(), Earlier{session, tree});
  return chosen;
}

}  // namespace

std::vector<RegionKey> plan_regions(const Tree& tree,
                                    const Session& session,
                                    const Options& options,
                                    const std::vector<char>& selected) {
  std::vector<RegionKey> keys;
  std::vector<std::uint32_t> region_of(tree.nodes.size(), kNone);  // in the scope at hand
  const auto add = [&](RegionKey key) {
    const std::uint32_t above = tree.nodes[key.node].parent;
    if (above != kNone && region_of[above] != kNone) {
      key.parent = region_of[above];
      key.depth = keys[key.parent].depth + 1;
    }
    region_of[key.node] = static_cast<std::uint32_t>(keys.size());
    keys.push_back(key);
  };

  std::vector<std::uint32_t> processes, threads;
  for (const std::uint32_t cell : tree.node_cells) {
    processes.push_back(tree.cells[cell].process);
    if (options.per_thread && tree.cells[cell].thread != kNone)
      threads.push_back(tree.cells[cell].thread);
  }
  for (auto* list : {&processes, &threads}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  std::sort(threads.begin(), threads.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto p = session.threads[a].process, q = session.threads[b].process;
    return p != q ? p < q : a < b;
  });

  if (options.aggregate) {
    for (const std::uint32_t node : tree.depth_first) {
      if (selected[node])
        add({node, kNone, kNone, tree.node_begin[node], tree.node_begin[node + 1]});
    }
  }
  // A scope's regions come from a walk over its own cells only: the whole cost is O(cells log
  // cells), not scopes x nodes.
  std::vector<std::uint32_t> rank(tree.nodes.size());
  for (std::uint32_t i = 0; i < tree.depth_first.size(); ++i)
    rank[tree.depth_first[i]] = i;
  for (const RegionKey& key : keys)
    region_of[key.node] = kNone;
  const auto add_scopes = [&](const std::vector<std::uint32_t>& scopes,
                              std::uint32_t Cell::*scope) {
    std::map<std::uint32_t, std::vector<RegionKey>> found;
    for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
      const std::size_t end = selected[node] ? tree.node_begin[node + 1] : 0;
      for (std::size_t i = tree.node_begin[node], last = i; i < end; i = last) {
        const Cell& cell = tree.cells[tree.node_cells[i]];
        while (last < end && tree.cells[tree.node_cells[last]].*scope == cell.*scope)
          ++last;
        if (scope == &Cell::process)
          found[cell.process].push_back({node, cell.process, kNone, i, last});
        else if (cell.thread != kNone)
          found[cell.thread].push_back(
              {node, session.threads[cell.thread].process, cell.thread, i, last});
      }
    }
    for (const std::uint32_t one : scopes) {
      std::vector<RegionKey>& own = found[one];
      std::ranges::sort(own, {}, [&](const RegionKey& key) { return rank[key.node]; });
      for (const RegionKey& key : own)
        add(key);
      for (const RegionKey& key : own)
        region_of[key.node] = kNone;
    }
  };
  if (!options.aggregate || (options.per_process && processes.size() > 1))
    add_scopes(processes, &Cell::process);
  if (options.per_thread)
    add_scopes(threads, &Cell::thread);
  return keys;
}

std::vector<model::Region> wall_regions(const Regions& of,
                                        std::vector<std::vector<std::uint32_t>>& sampled) {
  const Session& session = of.session;
  const Tree& tree = of.tree;
  std::vector<model::Region> regions(of.keys.size());
  sampled.assign(regions.size(), {});
  const auto duration = static_cast<double>(length_ns(session.begin_ns, session.end_ns));
  base::parallel_for(
      regions.size(), tree.range_of.size() < 20000 ? 1 : of.options.threads, [&](std::size_t r) {
        const RegionKey& key = of.keys[r];
        const Node& node = tree.nodes[key.node];
        model::Region& region = regions[r];
        region.id = static_cast<std::uint32_t>(r);
        region.parent = key.parent;
        region.depth = key.depth;
        for (const auto name : path_of(tree, session, key.node))
          region.path.emplace_back(name);
        region.domain = std::string(session.strings.view(session.domains[node.domain].name));
        region.kind = node.kind;
        region.module = node.module;
        if (key.process != kNone)
          region.process = key.process;
        if (key.thread != kNone)
          region.thread = session.threads[key.thread].tid;

        std::uint64_t inclusive = 0, exclusive = 0, recorded = 0;
        std::int64_t replayed = 0;
        std::uint32_t last_process = kNone;
        for (const std::uint32_t number : of.cells(r)) {
          const Cell& cell = tree.cells[number];
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
        region.wall.inclusive_ns = static_cast<double>(inclusive);
        region.wall.exclusive_ns = static_cast<double>(exclusive);
        region.wall.profiler_ns = region.wall.recording_ns = static_cast<double>(recorded);
        region.wall.share = duration > 0 ? region.wall.inclusive_ns / duration : 0;
        if (replayed > 0)
          region.notes.push_back(replay_note(replayed));
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
