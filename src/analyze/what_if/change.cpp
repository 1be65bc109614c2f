#include "analyze/what_if/change.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyze/replay/changes.hpp"
#include "analyze/replay/inside.hpp"
#include "analyze/tree/select.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using replay::Graph;
using replay::Id;
using replay::Kind;
using replay::Span;
using Action = WhatIfRule::Action;
using Target = WhatIfRule::Target;

template <class Fits>
std::vector<Id> operations_that(const Graph& graph, Kind kind, Fits fits) {
  std::vector<Id> found;
  for (Id id = 0; id < graph.size(); ++id) {
    const replay::Operation& operation = graph.operations[id];
    if (operation.kind == kind && fits(operation))
      found.push_back(id);
  }
  return found;
}

Graph scaled_or_removed(const Graph& graph, std::span<const Id> operations, double factor) {
  return factor > 0 ? replay::scaled(graph, operations, factor)
                    : replay::without(graph, operations);
}

/// "480 kernel executions, 12 ms"
std::string subject_text(const Graph& graph, std::span<const Id> operations, const char* noun) {
  double total_ns = 0;
  for (const Id id : operations)
    total_ns += static_cast<double>(graph.operations[id].duration_ns);
  return base::counted(operations.size(), noun) + ", " + base::format_ns(total_ns);
}

tl::unexpected<base::Error> nothing_to_change(const WhatIfRule& rule,
                                              std::string what,
                                              std::string hint) {
  return base::fail(base::Code::kNothingCaptured,
                    std::move(what),
                    "--what-if '" + base::printable(rule.written) + "'",
                    std::move(hint));
}

/// The failure of a selection, located.
template <class T>
tl::unexpected<base::Error> not_selected(const WhatIfRule& rule, base::Result<T>&& selected) {
  return nothing_to_change(rule, selected.error().what, selected.error().hint);
}

// ---- Kernels

base::Result<SupposedEffect> effect_on_kernels(const WhatIfRule& rule,
                                               const Regions& regions,
                                               const Graph& graph) {
  Options chosen;
  chosen.kernels.include = rule.kernels;
  std::vector<std::string> notes;  // of the two ways to read a name only one has to match
  auto names = select_kernels(regions.session, chosen, notes);
  if (!names)
    return not_selected(rule, std::move(names));
  const model::Session& session = regions.session;
  const auto kernels_in = [&session, names = std::move(*names)](const Graph& in) {
    return operations_that(in, Kind::kKernel, [&](const replay::Operation& kernel) {
      return names[session.kernels[kernel.source].name] != 0;
    });
  };
  const std::vector<Id> kernels = kernels_in(graph);
  if (kernels.empty())
    return nothing_to_change(rule, "no execution of these kernels was recorded", {});
  SupposedEffect effect;
  effect.subject = subject_text(graph, kernels, "kernel execution");
  effect.apply = [kernels_in, factor = rule.factor](const Graph& in, End) {
    return scaled_or_removed(in, kernels_in(in), factor);
  };
  return effect;
}

// ---- Copies

bool is_to_gpu(model::CopyKind kind) {
  return kind == model::CopyKind::kHostToDevice || kind == model::CopyKind::kHostToArray;
}

/// Of copies to the GPU by the thread that makes them, indexes into Session::copies.
std::vector<std::set<Id>> copies_to_gpu(const Graph& graph, const model::Session& session) {
  std::map<Id, std::set<Id>> by_thread;
  for (Id id = 0; id < graph.size(); ++id) {
    const replay::Operation& operation = graph.operations[id];
    if (operation.kind != Kind::kCopy || !is_to_gpu(session.copies[operation.source].kind))
      continue;
    const Id call = replay::launch_of(graph, id);
    if (call != model::kNone)
      by_thread[graph.operations[call].lane].insert(operation.source);
  }
  std::vector<std::set<Id>> groups;
  for (auto& [thread, group] : by_thread)
    groups.push_back(std::move(group));
  return groups;
}

std::vector<Id> operations_of(const Graph& graph, const std::set<Id>& copies) {
  return operations_that(graph, Kind::kCopy, [&](const replay::Operation& copy) {
    return copies.contains(copy.source);
  });
}

double value_at(const model::MeasuredValue& value, End end) {
  if (end == End::kLow)
    return value.low;
  if (end == End::kHigh)
    return value.high;
  return value.expected;
}

Graph overlapped(Graph graph, const model::Session& session, double bytes_per_s) {
  for (const std::set<Id>& group : copies_to_gpu(graph, session)) {
    const std::vector<Id> copies = operations_of(graph, group);
    std::vector<double> bytes;
    for (const Id copy : copies)
      bytes.push_back(static_cast<double>(session.copies[graph.operations[copy].source].bytes));
    graph = replay::copied_ahead_pinned(graph, copies, bytes, bytes_per_s);
  }
  return graph;
}

base::Result<SupposedEffect> effect_on_copies(const WhatIfRule& rule,
                                              const Regions& regions,
                                              const Graph& graph,
                                              const ChangeCosts& costs) {
  const model::Session& session = regions.session;
  SupposedEffect effect;
  if (rule.action == Action::kScale) {
    const auto all_copies = [](const Graph& in) {
      return operations_that(in, Kind::kCopy, [](const auto&) { return true; });
    };
    const std::vector<Id> copies = all_copies(graph);
    if (copies.empty())
      return nothing_to_change(rule, "no copy was recorded", {});
    effect.subject = subject_text(graph, copies, "copy");
    effect.apply = [all_copies, factor = rule.factor](const Graph& in, End) {
      return scaled_or_removed(in, all_copies(in), factor);
    };
    return effect;
  }
  std::vector<Id> to_gpu;
  for (const std::set<Id>& group : copies_to_gpu(graph, session)) {
    const std::vector<Id> copies = operations_of(graph, group);
    to_gpu.insert(to_gpu.end(), copies.begin(), copies.end());
  }
  if (to_gpu.empty())
    return nothing_to_change(rule,
                             "no copy to the GPU was recorded",
                             "Copies back from the GPU and on it cannot run ahead of the work.");
  effect.subject = subject_text(graph, to_gpu, "copy") + " to the GPU";
  effect.apply = [&session, costs](const Graph& in, End end) {
    const double share = value_at(costs.replay.pinned_share, end);
    return overlapped(in, session, share * costs.host_link_bytes_per_s);
  };
  return effect;
}

// ---- Ranges

/// Is the region of the node named, and not only one that it lies in?
bool is_named_itself(const WhatIfRule& rule, const Regions& regions, std::uint32_t node) {
  const Node& region = regions.tree.nodes[node];
  const model::Session& session = regions.session;
  const std::string_view domain = session.strings.view(session.domains[region.domain].name);
  const std::vector<std::string_view> path = path_of(regions.tree, session, node);
  return std::ranges::any_of(rule.ranges, [&](const model::RangeTerm& term) {
    return term.names_itself(domain, path, region.kind);
  });
}

/// The spans of all ended instances of the ranges that are named.
base::Result<std::vector<Span>> named_spans(const WhatIfRule& rule, const Regions& regions) {
  Options chosen;
  chosen.ranges.include = rule.ranges;
  std::vector<std::string> notes;
  auto nodes = select_nodes(regions.tree, regions.session, chosen, notes);
  if (!nodes)
    return not_selected(rule, std::move(nodes));
  std::vector<std::uint32_t> cells;
  for (std::uint32_t cell = 0; cell < regions.tree.cells.size(); ++cell) {
    const std::uint32_t node = regions.tree.cells[cell].node;
    if ((*nodes)[node] != 0 && is_named_itself(rule, regions, node))
      cells.push_back(cell);
  }
  std::vector<Span> spans = spans_of(regions, cells);
  if (spans.empty())
    return nothing_to_change(rule, "no instance of these ranges ended", {});
  return spans;
}

base::Result<SupposedEffect> effect_on_region(const WhatIfRule& rule, const Regions& regions) {
  auto spans = TRY(named_spans(rule, regions));
  SupposedEffect effect;
  effect.subject = base::counted(spans.size(), "instance");
  effect.apply = [spans = std::move(spans), factor = rule.factor](const Graph& in, End) {
    return replay::scaled_inside(in, spans, factor);
  };
  return effect;
}

// ---- Launches

/// The outermost ranges most of whose instances can be one graph each, and that occur again.
class GraphRanges {
 public:
  GraphRanges(const Regions& regions, const Graph& graph) : regions_(regions), graph_(graph) {
    const Tree& tree = regions.tree;
    children_.resize(tree.nodes.size());
    std::vector<std::uint32_t> pending;
    for (const std::uint32_t node : tree.depth_first) {
      const std::uint32_t parent = tree.nodes[node].parent;
      (parent == kNone ? pending : children_[parent]).push_back(node);
    }
    while (!pending.empty()) {
      const std::uint32_t node = pending.back();
      pending.pop_back();
      if (!take(node))
        pending.insert(pending.end(), children_[node].begin(), children_[node].end());
    }
  }

  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }

 private:
  bool take(std::uint32_t node) {
    const Tree& tree = regions_.tree;
    const auto first = tree.node_begin[node];
    const auto last = tree.node_begin[node + 1];
    const std::vector<Span> instances =
        spans_of(regions_, std::span(tree.node_cells).subspan(first, last - first));
    if (instances.size() < 2)
      return false;
    const std::vector<bool> can_be = replay::can_be_graphs(graph_, replay::captures_of(instances));
    const auto capturable = static_cast<std::size_t>(std::ranges::count(can_be, true));
    if (2 * capturable <= instances.size())
      return false;
    spans_.insert(spans_.end(), instances.begin(), instances.end());
    return true;
  }

  const Regions& regions_;
  const Graph& graph_;
  std::vector<std::vector<std::uint32_t>> children_;  ///< by node
  std::vector<Span> spans_;
};

/// Between the nodes of a graph nothing passes, or at most what passes between queued kernels.
replay::GraphCost graph_cost(const Graph& graph, const ChangeCosts& costs, End end) {
  replay::GraphCost cost;
  cost.launch_ns = static_cast<std::int64_t>(value_at(costs.replay.graph_launch_ns, end));
  if (end == End::kHigh)
    cost.order_ns = graph.latencies.order_ns[static_cast<std::size_t>(Kind::kKernel)];
  return cost;
}

base::Result<SupposedEffect> effect_on_launches(const WhatIfRule& rule,
                                                const Regions& regions,
                                                const Graph& graph,
                                                const ChangeCosts& costs) {
  std::vector<Span> spans;
  if (rule.ranges.empty()) {
    spans = GraphRanges(regions, graph).spans();
  } else {
    spans = TRY(named_spans(rule, regions));
  }
  std::vector<replay::Capture> captures = replay::captures_of(spans);
  const std::vector<bool> can_be = replay::can_be_graphs(graph, captures);
  const auto graphs = static_cast<std::size_t>(std::ranges::count(can_be, true));
  if (graphs == 0)
    return nothing_to_change(rule,
                             "no instance of a range launches twice or more without waiting for "
                             "the GPU",
                             "A CUDA graph cannot hold a wait. Name a range without one: "
                             "'launches:RANGE=graph'.");
  SupposedEffect effect;
  effect.subject = base::counted(graphs, "instance") + " as a CUDA graph each";
  effect.apply = [captures = std::move(captures), costs](const Graph& in, End end) {
    return replay::as_graph_launches(in, captures, graph_cost(in, costs, end));
  };
  return effect;
}

// ---- Ranks

base::Result<SupposedEffect> effect_on_rank(const WhatIfRule& rule,
                                            const Regions& regions,
                                            const Graph& graph) {
  const auto& processes = regions.session.processes;
  const auto process = std::ranges::find(processes, rule.rank, &model::Process::rank);
  if (process == processes.end())
    return nothing_to_change(rule,
                             "rank " + std::to_string(rule.rank) + " was not recorded",
                             "Name a job, or the runs of several of its ranks.");
  const bool knows_collectives =
      std::ranges::find(graph.operations, Kind::kArrival, &replay::Operation::kind) !=
      graph.operations.end();
  if (!knows_collectives)
    return nothing_to_change(rule,
                             "no collective on GPUs of several ranks was recorded",
                             "Without one no rank waits for another.");
  const auto id = static_cast<Id>(process - processes.begin());
  double factor = rule.factor;
  if (rule.action == Action::kMean)
    factor = replay::factor_to_mean(graph, id);
  SupposedEffect effect;
  effect.subject = "outside of collectives " + base::format_share(factor) + " of its time";
  effect.apply = [id, factor](const Graph& in, End) {
    return replay::with_rank_scaled(in, id, factor);
  };
  return effect;
}

}  // namespace

std::vector<Span> spans_of(const Regions& regions, std::span<const std::uint32_t> cells) {
  std::vector<Span> spans;
  for (const std::uint32_t cell : cells) {
    for (const std::uint32_t occurrence : regions.by_cell.of(cell)) {
      const model::Range* range = closed_range(regions.session, regions.tree, occurrence);
      if (range == nullptr || is_beside_program(regions.session, *range))
        continue;
      spans.push_back({range->thread, range->start_ns, range->end_ns});
    }
  }
  return spans;
}

base::Result<SupposedEffect> effect_of(const WhatIfRule& rule,
                                       const Regions& regions,
                                       const Graph& graph,
                                       const ChangeCosts& costs) {
  switch (rule.target) {
    case Target::kKernels: return effect_on_kernels(rule, regions, graph);
    case Target::kCopies: return effect_on_copies(rule, regions, graph, costs);
    case Target::kLaunches: return effect_on_launches(rule, regions, graph, costs);
    case Target::kRank: return effect_on_rank(rule, regions, graph);
    case Target::kRegion: break;
  }
  return effect_on_region(rule, regions);
}

}  // namespace rangescope::analyze
