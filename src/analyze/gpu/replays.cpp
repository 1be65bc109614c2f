#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyze/tree/contexts.hpp"

namespace rangescope::analyze {
namespace {

using model::OpenRange;
using model::RangeKind;
using model::Session;

using OpenPath = std::vector<OpenRange>;

bool same(const OpenRange& a, const OpenRange& b) {
  return a.domain == b.domain && a.name == b.name;
}

/// Push/pop ranges of a captured path, one list a domain (or one list, when domains nest).
std::map<std::uint32_t, OpenPath> by_domain(const Session& session,
                                            const OpenPath& path,
                                            bool nested) {
  std::map<std::uint32_t, OpenPath> lists;
  for (const OpenRange& range : path) {
    if (range.kind != RangeKind::kPushPop || range.domain >= session.domains.size())
      continue;
    lists[nested ? 0 : range.domain].push_back(range);
  }
  return lists;
}

using PathsByDomain = std::map<std::uint32_t, OpenPath>;

/// How many ranges at the begin of the paths of a graph's nodes in a domain are dropped.
std::size_t dropped_ranges(const std::vector<std::size_t>& nodes,
                           std::uint32_t domain,
                           const OpenPath& first,
                           std::vector<PathsByDomain>& paths) {
  std::size_t shared = first.size();
  bool all_equal = true;
  for (const std::size_t n : nodes) {
    const OpenPath& path = paths[n][domain];
    const std::size_t limit = std::min(shared, path.size());
    std::size_t common = 0;
    while (common < limit && same(path[common], first[common]) && !first[common].module)
      ++common;
    all_equal &= common == first.size() && path.size() == first.size();
    shared = common;
  }
  return all_equal && shared > 0 ? shared - 1 : shared;
}

/// For every node, what of its path is below the capture: the part that all nodes of its graph
/// share is dropped, down to a module; where all paths are equal, the innermost range stays.
std::vector<PathsByDomain> paths_below_capture(const Session& session, bool nested) {
  std::vector<PathsByDomain> paths(session.graph_nodes.size());
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::size_t>> graphs;
  for (std::size_t n = 0; n < session.graph_nodes.size(); ++n) {
    const model::GraphNode& node = session.graph_nodes[n];
    if (node.captured_path >= session.captured_paths.size())
      continue;
    paths[n] = by_domain(session, session.captured_paths[node.captured_path], nested);
    graphs[{node.process, node.graph_id}].push_back(n);
  }
  for (const auto& [graph, nodes] : graphs) {
    std::map<std::uint32_t, std::size_t> dropped_of;  // by domain
    for (const auto& [domain, first] : paths[nodes.front()])
      dropped_of[domain] = dropped_ranges(nodes, domain, first, paths);
    for (const std::size_t n : nodes) {
      for (auto& [domain, path] : paths[n]) {
        const auto dropped = dropped_of.find(domain);
        if (dropped == dropped_of.end())
          continue;
        const std::size_t count = std::min(dropped->second, path.size());
        path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(count));
      }
    }
  }
  return paths;
}

class Replays {
 public:
  Replays(const Session& session, Domains domains, Tree& tree, Contexts& contexts)
      : session_(session), nested_(domains == Domains::kNested), tree_(tree), contexts_(contexts) {
    const auto paths = paths_below_capture(session, nested_);
    path_of_node_.assign(session.graph_nodes.size(), kNone);
    std::map<std::vector<std::uint64_t>, std::uint32_t> number_of;  // equal paths share one
    for (std::size_t n = 0; n < paths.size(); ++n) {
      std::vector<std::uint64_t> key;
      for (const auto& [domain, path] : paths[n]) {
        for (const OpenRange& range : path)
          key.push_back(std::uint64_t{range.domain} << 32 | range.name);
      }
      if (key.empty())
        continue;
      const auto [number, added] =
          number_of.emplace(std::move(key), static_cast<std::uint32_t>(paths_.size()));
      if (added)
        paths_.push_back(paths[n]);
      path_of_node_[n] = number->second;
    }
  }

  [[nodiscard]] bool any() const { return !paths_.empty(); }

  template <class Item>
  std::vector<std::uint32_t> place(const std::vector<Item>& items) {
    std::vector<std::uint32_t> of_item(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      if (item.launch >= session_.launches.size())
        continue;
      const std::uint32_t thread = session_.launches[item.launch].thread;
      if (thread >= session_.threads.size() ||
          session_.threads[thread].process >= session_.processes.size())
        continue;
      const std::uint32_t path =
          item.graph_node < path_of_node_.size() ? path_of_node_[item.graph_node] : kNone;
      of_item[i] = path == kNone ? contexts_.of_launch[item.launch] : replay(item.launch, path);
    }
    return of_item;
  }

 private:
  /// The context of a captured path below a launch, made when it is first asked for.
  std::uint32_t replay(std::uint32_t launch, std::uint32_t path) {
    const std::uint64_t key = std::uint64_t{launch} << 32 | path;
    if (key == last_key_)
      return last_context_;
    last_key_ = key;
    const auto found = made_.find(key);
    if (found != made_.end())
      return last_context_ = found->second;
    std::vector<std::uint32_t> entries;
    const PathsByDomain& paths = paths_[path];
    std::vector<std::uint32_t> placed;  // domains
    const auto is_left = [&](const PathsByDomain::value_type& domain_and_path) {
      const auto& [domain, ranges] = domain_and_path;
      return !ranges.empty() && std::ranges::find(placed, domain) == placed.end();
    };
    for (const std::uint32_t entry : contexts_.of(contexts_.of_launch[launch])) {
      const Cell& cell = tree_.cells[tree_.cell[entry & ~kInherited]];
      const auto below = paths.find(nested_ ? 0 : cell.domain);
      if (cell.kind == RangeKind::kStartEnd || below == paths.end() || !is_left(*below)) {
        entries.push_back(entry);
        continue;
      }
      placed.push_back(below->first);
      const std::uint32_t innermost = descend(launch, entry & ~kInherited, below->second);
      entries.push_back(innermost | (entry & kInherited));
    }
    for (const auto& domain_and_path : paths)
      if (is_left(domain_and_path))
        entries.push_back(descend(launch, kNone, domain_and_path.second));
    contexts_.entries.insert(contexts_.entries.end(), entries.begin(), entries.end());
    contexts_.begin.push_back(static_cast<std::uint32_t>(contexts_.entries.size()));
    last_context_ = static_cast<std::uint32_t>(contexts_.size() - 1);
    made_.emplace(key, last_context_);
    return last_context_;
  }

  /// Occurrences of the path below `parent`, those of this launch being shared by the paths that
  /// begin alike.
  std::uint32_t descend(std::uint32_t launch, std::uint32_t parent, const OpenPath& path) {
    const std::uint32_t thread = session_.launches[launch].thread;
    for (const OpenRange& range : path) {
      const std::uint32_t parent_cell = parent == kNone ? kNone : tree_.cell[parent];
      const std::uint32_t range_thread = parent == kNone ? thread : tree_.cells[parent_cell].thread;
      const std::uint32_t cell =
          cell_of(range_thread, parent_cell, range, session_.launches[launch].start_ns);
      const auto [occurrence, added] = occurrences_.try_emplace(
          {launch, parent, cell}, static_cast<std::uint32_t>(tree_.cell.size()));
      if (added) {
        tree_.range_of.push_back(kNone);
        tree_.parent.push_back(parent);
        tree_.cell.push_back(cell);
        ++tree_.cells[cell].replayed;
      }
      parent = occurrence->second;
    }
    return parent;
  }

  std::uint32_t cell_of(std::uint32_t thread,
                        std::uint32_t parent_cell,
                        const OpenRange& range,
                        std::int64_t start_ns) {
    if (cells_.empty()) {
      for (std::uint32_t c = 0; c < tree_.cells.size(); ++c) {
        const Cell& cell = tree_.cells[c];
        if (cell.kind == RangeKind::kPushPop)
          cells_.emplace(std::tuple(cell.thread, cell.parent, cell.domain, cell.name), c);
      }
    }
    const auto [found, added] =
        cells_.emplace(std::tuple(thread, parent_cell, range.domain, range.name),
                       static_cast<std::uint32_t>(tree_.cells.size()));
    if (added)
      tree_.cells.push_back({.process = session_.threads[thread].process,
                             .thread = thread,
                             .parent = parent_cell,
                             .domain = range.domain,
                             .name = range.name,
                             .module = range.module,
                             .first_start_ns = start_ns});
    return found->second;
  }

  const Session& session_;
  bool nested_;
  Tree& tree_;
  Contexts& contexts_;
  std::vector<std::uint32_t> path_of_node_;
  std::vector<PathsByDomain> paths_;
  std::unordered_map<std::uint64_t, std::uint32_t> made_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> occurrences_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, model::StringId>, std::uint32_t>
      cells_;
  std::uint64_t last_key_ = ~std::uint64_t{0};
  std::uint32_t last_context_ = 0;
};

}  // namespace

void add_replays(const Session& session, Domains domains, Tree& tree, Contexts& contexts) {
  if (session.graph_nodes.empty() || session.captured_paths.empty())
    return;
  Replays replays(session, domains, tree, contexts);
  if (!replays.any())
    return;
  contexts.of_kernel = replays.place(session.kernels);
  contexts.of_copy = replays.place(session.copies);
  contexts.of_memset = replays.place(session.memsets);
}

}  // namespace rangescope::analyze
