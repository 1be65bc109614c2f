#include "report/document/flame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "base/text.hpp"

namespace rangescope::report {
namespace {

using model::kNone;

FrameSort sort_of(const model::Session& session, const model::CpuFrame& frame) {
  if (frame.kind == model::FrameKind::kCut)
    return FrameSort::kCut;
  if (frame.kind == model::FrameKind::kPython)
    return FrameSort::kPython;
  if (session.strings.view(frame.module) == "[kernel]")
    return FrameSort::kKernel;
  return FrameSort::kNative;
}

/// The index in `indices`; kNone for kNone.
std::uint32_t mapped(std::uint32_t index, const std::vector<std::uint32_t>& indices) {
  return index == kNone ? kNone : indices[index];
}

/// The tree of all chains, merged by text.
struct FullTree {
  std::vector<FlameName> names;
  std::vector<Flame::Node> nodes;
  std::vector<std::uint32_t> node_of_stack;

  explicit FullTree(const model::Session& session) {
    const std::vector<std::uint32_t> name_of_frame = merge_names(session);
    merge_nodes(session.cpu, name_of_frame);
  }

 private:
  /// Returns the index in `names` of each frame.
  std::vector<std::uint32_t> merge_names(const model::Session& session) {
    std::map<std::pair<std::string, std::string>, std::uint32_t> index_of;
    std::vector<std::uint32_t> name_of_frame;
    for (const model::CpuFrame& frame : session.cpu.frames) {
      FlameName name;
      name.text = base::printable(frame_text(session, frame));
      name.sort = sort_of(session, frame);
      const bool is_python = name.sort == FrameSort::kPython;
      const model::StringId module = is_python ? frame.file : frame.module;
      name.module = base::printable(session.strings.view(module));
      const auto next = static_cast<std::uint32_t>(names.size());
      const auto [entry, is_new] = index_of.try_emplace({name.text, name.module}, next);
      if (is_new)
        names.push_back(std::move(name));
      name_of_frame.push_back(entry->second);
    }
    return name_of_frame;
  }

  void merge_nodes(const model::CpuProfile& cpu, const std::vector<std::uint32_t>& name_of_frame) {
    std::unordered_map<std::uint64_t, std::uint32_t> index_of;
    for (const model::CpuStack& stack : cpu.stacks) {
      const Flame::Node node{mapped(stack.parent, node_of_stack), name_of_frame[stack.frame]};
      const auto next = static_cast<std::uint32_t>(nodes.size());
      const std::uint64_t key = std::uint64_t{node.parent} << 32 | node.name;
      const auto [entry, is_new] = index_of.try_emplace(key, next);
      if (is_new)
        nodes.push_back(node);
      node_of_stack.push_back(entry->second);
    }
  }
};

/// Sums of samples by node.
std::vector<FlameCount> counts_by_node(const std::vector<model::CpuStackCount>& counts,
                                       const std::vector<std::uint32_t>& node_of_stack) {
  std::map<std::uint32_t, std::int64_t> samples_of;
  for (const model::CpuStackCount& count : counts) {
    std::uint32_t node = kNone;
    if (count.stack < node_of_stack.size())
      node = node_of_stack[count.stack];
    samples_of[node] += count.samples;
  }
  std::vector<FlameCount> sums;
  for (const auto& [node, samples] : samples_of)
    sums.push_back({node, samples});
  return sums;
}

/// Calls `visit` with the samples of each region, and with those outside all ranges.
template <class Visit>
void visit_counts(const model::Report& report, Visit visit) {
  for (const model::Region& region : report.regions)
    if (region.cpu)
      visit(region.cpu->stacks);
  if (report.cpu_outside)
    visit(report.cpu_outside->stacks);
}

/// Nodes with samples, heaviest first. A caller weighs at least as much as its callee and precedes
/// it, so that any prefix of this order is a tree.
std::vector<std::uint32_t> nodes_by_weight(const model::Report& report, const FullTree& tree) {
  std::vector<std::int64_t> weight(tree.nodes.size(), 0);  // samples at and below the node
  visit_counts(report, [&](const std::vector<model::CpuStackCount>& counts) {
    for (const model::CpuStackCount& count : counts) {
      if (count.stack < tree.node_of_stack.size())
        weight[tree.node_of_stack[count.stack]] += count.samples;
    }
  });
  for (std::size_t node = tree.nodes.size(); node-- > 0;) {
    const std::uint32_t parent = tree.nodes[node].parent;
    if (parent != kNone)
      weight[parent] += weight[node];
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t node = 0; node < tree.nodes.size(); ++node)
    if (weight[node] > 0)
      order.push_back(node);
  std::ranges::stable_sort(
      order, std::ranges::greater(), [&](std::uint32_t node) { return weight[node]; });
  return order;
}

/// Copies nodes and their names; returns where each node of `tree` went, kNone for those left out.
/// `nodes` are ascending and have their parents among them.
std::vector<std::uint32_t> copy_nodes(const FullTree& tree,
                                      std::span<const std::uint32_t> nodes,
                                      Flame& flame) {
  std::vector<std::uint32_t> new_node(tree.nodes.size(), kNone);
  std::vector<std::uint32_t> new_name(tree.names.size(), kNone);
  for (const std::uint32_t node : nodes) {
    const Flame::Node& source = tree.nodes[node];
    std::uint32_t& name = new_name[source.name];
    if (name == kNone) {
      name = static_cast<std::uint32_t>(flame.names.size());
      flame.names.push_back(tree.names[source.name]);
    }
    const std::uint32_t parent = mapped(source.parent, new_node);
    new_node[node] = static_cast<std::uint32_t>(flame.nodes.size());
    flame.nodes.push_back({parent, name});
  }
  return new_node;
}

std::size_t size_of_counts(const Flame& flame) {
  std::size_t size = flame.outside.size();
  for (const std::vector<FlameCount>& counts : flame.regions)
    size += counts.size();
  return size;
}

/// The flame graph of the given nodes of `tree`.
Flame pruned(const model::Report& report,
             const FullTree& tree,
             std::span<const std::uint32_t> nodes) {
  Flame flame;
  const std::vector<std::uint32_t> new_node = copy_nodes(tree, nodes, flame);
  std::vector<std::uint32_t> node_of_stack;
  std::vector<bool> is_shortened;
  for (std::uint32_t node : tree.node_of_stack) {
    is_shortened.push_back(new_node[node] == kNone);
    while (node != kNone && new_node[node] == kNone)
      node = tree.nodes[node].parent;
    node_of_stack.push_back(mapped(node, new_node));
  }
  flame.regions.resize(report.regions.size());
  for (std::size_t i = 0; i < report.regions.size(); ++i) {
    const auto& cpu = report.regions[i].cpu;
    if (cpu)
      flame.regions[i] = counts_by_node(cpu->stacks, node_of_stack);
  }
  if (report.cpu_outside)
    flame.outside = counts_by_node(report.cpu_outside->stacks, node_of_stack);
  visit_counts(report, [&](const std::vector<model::CpuStackCount>& counts) {
    for (const model::CpuStackCount& count : counts) {
      if (count.stack < is_shortened.size() && is_shortened[count.stack])
        flame.shortened += count.samples;
    }
  });
  return flame;
}

}  // namespace

std::string frame_text(const model::Session& session, const model::CpuFrame& frame) {
  const std::string name(session.strings.view(frame.name));
  const std::string module(base::file_name(session.strings.view(frame.module)));
  switch (frame.kind) {
    case model::FrameKind::kCut: return "(cut)";
    case model::FrameKind::kPython:
      if (frame.file == 0)
        return name;
      return fmt::format(
          "{} ({}:{})", name, base::file_name(session.strings.view(frame.file)), frame.line);
    case model::FrameKind::kNative: break;
  }
  if (!name.empty())
    return name;
  if (module.empty() || module.starts_with("//"))
    return "(JIT)";
  if (module == "[kernel]")
    return module;
  return "[" + module + "]";
}

// flamegraph.pl reads "iter 17 5" as the chain "iter" with the counts of two files.
std::string folded_word(std::string_view text) {
  std::string word = base::printable(text);
  std::replace(word.begin(), word.end(), ';', ':');
  const std::size_t digits = word.find_last_not_of("0123456789.");
  if (digits != std::string::npos && digits + 1 < word.size() && word[digits] == ' ')
    word[digits] = '_';
  return word;
}

Flame flame_of(const model::Report& report,
               const model::Session& session,
               std::size_t max_nodes,
               std::size_t max_counts) {
  if (session.cpu.interval_ns <= 0)
    return {};
  const FullTree tree(session);
  const std::vector<std::uint32_t> order = nodes_by_weight(report, tree);
  // Fewer nodes also have fewer counts.
  for (std::size_t limit = max_nodes;; limit /= 2) {
    std::vector<std::uint32_t> nodes = order;
    nodes.resize(std::min(limit, order.size()));
    std::ranges::sort(nodes);
    Flame flame = pruned(report, tree, nodes);
    if (size_of_counts(flame) <= max_counts || limit == 0)
      return flame;
  }
}

}  // namespace rangescope::report
