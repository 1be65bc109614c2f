#include "read/graph_nodes.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/find.hpp"
#include "read/open_ranges.hpp"

namespace rangescope::read {
namespace {

constexpr std::uint32_t graph_of(std::uint64_t node) {
  return static_cast<std::uint32_t>(node >> 32);
}

struct Question {
  std::int64_t at_ns = 0, since_ns = 0;
  std::uint32_t graph_node = 0;  ///< whose path is asked for
};

std::vector<std::uint64_t> path_key(const std::vector<model::OpenRange>& path) {
  std::vector<std::uint64_t> key;
  for (const model::OpenRange& range : path)
    key.push_back(std::uint64_t{range.domain} << 32 | range.name);
  return key;
}

}  // namespace

void GraphNodes::add(const NodeMade& node) {
  NodeMade& known = made_.try_emplace(node.node, node).first->second;
  if (node.original != 0)
    known.original = node.original;  // "cloned" follows "created"
}

// CUPTI adds two nodes of its own to an instantiated graph to time it (13.0); they are no clones.
std::uint32_t GraphNodes::kernel_nodes(std::uint32_t graph) const {
  std::uint32_t originals = 0, clones = 0;
  for (const auto& [id, node] : made_) {
    if (graph_of(id) != graph || node.type != 0)
      continue;
    if (node.original != 0)
      ++clones;
    else
      ++originals;
  }
  return clones != 0 ? clones : originals;
}

std::uint32_t GraphNodes::use(std::uint64_t node, std::uint32_t process, model::Session& session) {
  const auto [at, fresh] =
      used_.try_emplace(node, static_cast<std::uint32_t>(session.graph_nodes.size()));
  if (fresh)
    session.graph_nodes.push_back({node, graph_of(node), process, model::kNone});
  return at->second;
}

const NodeMade* GraphNodes::origin(std::uint64_t node) const {
  const NodeMade* made = nullptr;
  for (int steps = 0; steps < 64;
       ++steps) {  // a clone of a clone; a damaged file may hold a circle
    const auto found = made_.find(node);
    if (found == made_.end())
      return made;
    made = &found->second;
    if (made->original == 0)
      return made;
    node = made->original;
  }
  return nullptr;
}

void GraphNodes::place(model::Session& session) const {
  std::map<std::uint32_t, std::vector<Question>> by_thread;
  for (const auto& [node, index] : used_) {
    const NodeMade* made = origin(node);
    if (made == nullptr || made->thread == model::kNone)
      continue;
    const std::int64_t since =
        base::find_or(graphs_, graph_of(made->node), std::numeric_limits<std::int64_t>::min());
    by_thread[made->thread].push_back({made->at_ns, since, index});
  }
  if (by_thread.empty())
    return;
  std::map<std::vector<std::uint64_t>, std::uint32_t> known;
  for (std::uint32_t i = 0; i < session.captured_paths.size(); ++i)
    known.emplace(path_key(session.captured_paths[i]), i);
  for (auto& [thread, ranges] : OpenRanges::of(session, by_thread)) {
    std::vector<Question>& questions = by_thread[thread];
    std::ranges::sort(questions, [](const Question& a, const Question& b) {
      return std::tie(a.at_ns, a.graph_node) < std::tie(b.at_ns, b.graph_node);
    });
    for (const Question& question : questions) {
      ranges.move_to(question.at_ns, question.at_ns);
      std::vector<model::OpenRange> path;
      for (const std::uint32_t i : ranges.open()) {
        const model::Range& range = session.ranges[i];
        if (range.start_ns >= question.since_ns)
          path.push_back(
              {range.domain, range.name, model::RangeKind::kPushPop, 0, false, range.module});
      }
      if (path.empty())
        continue;
      const auto [at, fresh] = known.try_emplace(
          path_key(path), static_cast<std::uint32_t>(session.captured_paths.size()));
      if (fresh)
        session.captured_paths.push_back(std::move(path));
      session.graph_nodes[question.graph_node].captured_path = at->second;
    }
  }
}

}  // namespace rangescope::read
