#include "report/document/flame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.hpp"

namespace rangescope::report {
namespace {

using model::kNone;

FrameSort sort_of(const model::Session& session, const model::CpuFrame& frame) {
  if (frame.kind == model::FrameKind::kCut) return FrameSort::kCut;
  if (frame.kind == model::FrameKind::kPython) return FrameSort::kPython;
  return session.strings.view(frame.module) == "[kernel]" ? FrameSort::kKernel : FrameSort::kNative;
}

/// Nodes of every chain, merged by text; `of_stack` is the node of each stack.
struct Whole {
  Flame tree;
  std::vector<std::uint32_t> of_stack;

  explicit Whole(const model::Session& session) {
    const model::CpuProfile& cpu = session.cpu;
    std::map<std::pair<std::string, std::string>, std::uint32_t> names;
    std::vector<std::uint32_t> of_frame;
    for (const model::CpuFrame& frame : cpu.frames) {
      FlameName name;
      name.text = base::printable(frame_text(session, frame));
      name.sort = sort_of(session, frame);
      const bool python = name.sort == FrameSort::kPython;
      name.module = base::printable(session.strings.view(python ? frame.file : frame.module));
      const auto next = static_cast<std::uint32_t>(tree.names.size());
      const auto [at, fresh] = names.try_emplace({name.text, name.module}, next);
      if (fresh) tree.names.push_back(std::move(name));
      of_frame.push_back(at->second);
    }
    std::unordered_map<std::uint64_t, std::uint32_t> known;
    for (const model::CpuStack& stack : cpu.stacks) {
      const std::uint32_t parent = stack.parent == kNone ? kNone : of_stack[stack.parent];
      const Flame::Node node{parent, of_frame[stack.frame]};
      const auto next = static_cast<std::uint32_t>(tree.nodes.size());
      const auto [at, fresh] =
          known.try_emplace(std::uint64_t{node.parent} << 32 | node.name, next);
      if (fresh) tree.nodes.push_back(node);
      of_stack.push_back(at->second);
    }
  }
};

std::vector<FlameCount> moved(const std::vector<model::CpuStackCount>& list,
                              const std::vector<std::uint32_t>& to) {
  std::map<std::uint32_t, std::int64_t> sums;
  for (const model::CpuStackCount& count : list)
    sums[count.stack < to.size() ? to[count.stack] : kNone] += count.samples;
  std::vector<FlameCount> out;
  for (const auto& [node, samples] : sums) out.push_back({node, samples});
  return out;
}

}  // namespace

std::string frame_text(const model::Session& session, const model::CpuFrame& frame) {
  const std::string name(session.strings.view(frame.name));
  const std::string module(base::file_name(session.strings.view(frame.module)));
  switch (frame.kind) {
    case model::FrameKind::kCut: return "(cut)";
    case model::FrameKind::kPython:
      if (frame.file == 0) return name;
      return fmt::format("{} ({}:{})", name, base::file_name(session.strings.view(frame.file)),
                         frame.line);
    case model::FrameKind::kNative: break;
  }
  if (!name.empty()) return name;
  return module.empty() || module.starts_with("//") ? "(JIT)"
         : module == "[kernel]"                     ? module
                                                    : "[" + module + "]";
}

// flamegraph.pl takes "iter 17 5" for a chain "iter" with counts of two files.
std::string folded_word(std::string_view text) {
  std::string word = base::printable(text);
  std::replace(word.begin(), word.end(), ';', ':');
  const std::size_t digits = word.find_last_not_of("0123456789.");
  if (digits != std::string::npos && digits + 1 < word.size() && word[digits] == ' ')
    word[digits] = '_';
  return word;
}

Flame flame_of(const model::Report& report, const model::Session& session, std::size_t most_nodes,
               std::size_t most_counts) {
  if (session.cpu.interval_ns <= 0) return {};
  const Whole whole(session);
  const std::vector<Flame::Node>& nodes = whole.tree.nodes;
  // Samples at and below each node.
  std::vector<std::int64_t> weight(nodes.size(), 0);
  const auto each = [&](auto visit) {
    for (const model::Region& region : report.regions)
      if (region.cpu) visit(region.cpu->stacks);
    if (report.cpu_outside) visit(report.cpu_outside->stacks);
  };
  each([&](const std::vector<model::CpuStackCount>& list) {
    for (const model::CpuStackCount& count : list)
      if (count.stack < whole.of_stack.size()) weight[whole.of_stack[count.stack]] += count.samples;
  });
  for (std::size_t n = nodes.size(); n-- > 0;)
    if (nodes[n].parent != kNone) weight[nodes[n].parent] += weight[n];
  // A caller weighs at least what it calls and precedes it: the first of this order are a tree.
  std::vector<std::uint32_t> order;
  for (std::uint32_t n = 0; n < nodes.size(); ++n)
    if (weight[n] > 0) order.push_back(n);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return weight[a] > weight[b]; });

  Flame out;
  for (std::size_t most = most_nodes;; most /= 2) {
    out = Flame();
    std::vector<std::uint32_t> kept(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(most, order.size())));
    std::sort(kept.begin(), kept.end());
    std::vector<std::uint32_t> node_to(nodes.size(), kNone),
        name_to(whole.tree.names.size(), kNone);
    for (const std::uint32_t n : kept) {
      std::uint32_t& name = name_to[nodes[n].name];
      if (name == kNone) {
        name = static_cast<std::uint32_t>(out.names.size());
        out.names.push_back(whole.tree.names[nodes[n].name]);
      }
      const std::uint32_t parent = nodes[n].parent == kNone ? kNone : node_to[nodes[n].parent];
      node_to[n] = static_cast<std::uint32_t>(out.nodes.size());
      out.nodes.push_back({parent, name});
    }
    std::vector<std::uint32_t> stack_to;
    std::vector<bool> shortened;
    for (std::uint32_t node : whole.of_stack) {
      shortened.push_back(node_to[node] == kNone);
      while (node != kNone && node_to[node] == kNone) node = nodes[node].parent;
      stack_to.push_back(node == kNone ? kNone : node_to[node]);
    }
    std::size_t counts = 0;
    out.regions.resize(report.regions.size());
    for (std::size_t r = 0; r < report.regions.size(); ++r)
      if (report.regions[r].cpu)
        counts += (out.regions[r] = moved(report.regions[r].cpu->stacks, stack_to)).size();
    if (report.cpu_outside)
      counts += (out.outside = moved(report.cpu_outside->stacks, stack_to)).size();
    each([&](const std::vector<model::CpuStackCount>& list) {
      for (const model::CpuStackCount& count : list)
        if (count.stack < shortened.size() && shortened[count.stack])
          out.shortened += count.samples;
    });
    if (counts <= most_counts || most == 0) return out;
  }
}

}  // namespace rangescope::report
