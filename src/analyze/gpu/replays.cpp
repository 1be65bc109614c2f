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

/// For every node, what of its path is below the capture: the part that all nodes of its graph
/// share is dropped, down to a module; where all paths are equal, the innermost range stays.
std::vector<std::map<std::uint32_t, OpenPath>> paths_below_capture(const Session& session,
                                                                   bool nested) {
  std::vector<std::map<std::uint32_t, OpenPath>> paths(session.graph_nodes.size());
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::size_t>> graphs;
  for (std::size_t n = 0; n < session.graph_nodes.size(); ++n) {
    const model::GraphNode& node = session.graph_nodes[n];
    if (node.captured_path >= session.captured_paths.size())
      continue;
    paths[n] = by_domain(session, session.captured_paths[node.captured_path], nested);
    graphs[{node.process, node.graph_id}].push_back(n);
  }
  for (const auto& [graph, nodes] : graphs) {
    std::map<std::uint32_t, std::pair<std::size_t, bool>>
        shared;  // domain: length of the common part, all equal
    for (const auto& [domain, first] : paths[nodes.front()]) {
      std::size_t length = first.size();
      bool equal = true;
      for (const std::size_t n : nodes) {
        const OpenPath& path = paths[n][domain];
        std::size_t common = 0;
        while (common < std::min(length, path.size()) && same(path[common], first[common]) &&
               !first[common].module)
          ++common;
        equal &= common == first.size() && path.size() == first.size();
        length = common;
      }
      shared[domain] = {length, equal};
    }
    for (const std::size_t n : nodes) {
      for (auto& [domain, path] : paths[n]) {
        const auto found = shared.find(domain);
        if (found == shared.end())
          continue;
        const auto [length, equal] = found->second;
        const std::size_t drop = equal && length > 0 ? length - 1 : length;
        path.erase(path.begin(),
                   path.begin() + static_cast<std::ptrdiff_t>(std::min(drop, path.size())));
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
    std::map<std::vector<std::uint64_t>, std::uint32_t> known;  // equal paths share a number
    for (std::size_t n = 0; n < paths.size(); ++n) {
      std::vector<std::uint64_t> key;
      for (const auto& [domain, path] : paths[n]) {
        for (const OpenRange& range : path)
          key.push_back(std::uint64_t{range.domain} << 32 | range.name);
      }
      if (key.empty())
        continue;
      const auto [at, added] =
          known.emplace(std::move(key), static_cast<std::uint32_t>(paths_.size()));
      if (added)
        paths_.push_back(paths[n]);
      path_of_node_[n] = at->second;
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
    if (const auto found = made_.find(key); found != made_.end())
      return last_context_ = found->second;
    std::vector<std::uint32_t> entries;
    const auto at_launch = contexts_.of(contexts_.of_launch[launch]);
    std::vector<std::uint32_t> below;
    for (const std::uint32_t entry : at_launch) {
      const Cell& cell = tree_.cells[tree_.cell[entry & ~kInherited]];
      const std::uint32_t domain = nested_ ? 0 : cell.domain;
      const auto list = paths_[path].find(domain);
      if (cell.kind == RangeKind::kStartEnd || list == paths_[path].end() || list->second.empty() ||
          std::find(below.begin(), below.end(), domain) != below.end()) {
        entries.push_back(entry);
        continue;
      }
      below.push_back(domain);
      entries.push_back(descend(launch, entry & ~kInherited, list->second) | (entry & kInherited));
    }
    for (const auto& [domain, list] : paths_[path]) {
      if (!list.empty() && std::find(below.begin(), below.end(), domain) == below.end()) {
        entries.push_back(descend(launch, kNone, list));
      }
    }
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
      const std::uint32_t cell = cell_of(parent == kNone ? thread : tree_.cells[parent_cell].thread,
                                         parent_cell,
                                         range,
                                         session_.launches[launch].start_ns);
      const auto [at, added] = occurrences_.try_emplace(
          {launch, parent, cell}, static_cast<std::uint32_t>(tree_.cell.size()));
      if (added) {
        tree_.range_of.push_back(kNone);
        tree_.parent.push_back(parent);
        tree_.cell.push_back(cell);
        ++tree_.cells[cell].replayed;
      }
      parent = at->second;
    }
    return parent;
  }

  std::uint32_t cell_of(std::uint32_t thread,
                        std::uint32_t parent_cell,
                        const OpenRange& range,
                        std::int64_t at) {
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
                             .first_start_ns = at});
    return found->second;
  }

  const Session& session_;
  bool nested_;
  Tree& tree_;
  Contexts& contexts_;
  std::vector<std::uint32_t> path_of_node_;
  std::vector<std::map<std::uint32_t, OpenPath>> paths_;
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
