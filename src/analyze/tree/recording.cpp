#include "analyze/tree/recording.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace rangescope::analyze {
namespace {

/// Of each occurrence what recording added. From the innermost outwards: an occurrence comes after
/// the one around it.
std::vector<std::uint32_t> recorded_in(const model::Session& session,
                                       const Tree& tree,
                                       const std::vector<model::RecordingCost>& costs,
                                       const std::vector<std::uint32_t>& inside) {
  std::vector<std::uint32_t> taken(tree.range_of.size(), 0);
  const auto add = [](std::uint32_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(UINT32_MAX, a + b));
  };
  for (auto o = static_cast<std::uint32_t>(tree.range_of.size()); o-- > 0;) {
    if (tree.range_of[o] == kNone)
      continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    const Cell& cell = tree.cells[tree.cell[o]];
    const bool known = range.kind == model::RangeKind::kPushPop && !range.module &&
                       range.end_ns != kOpen && cell.process < costs.size();
    const model::RecordingCost cost = known ? costs[cell.process] : model::RecordingCost{};
    const std::int64_t length = length_ns(range.start_ns, range.end_ns);
    if (const std::uint32_t i = inside.empty() ? kNone : inside[tree.range_of[o]]; i != kNone) {
      const model::UnlistedInside& of = session.unlisted_inside[i];
      taken[o] = add(taken[o], static_cast<std::uint64_t>(of.recorded_ns) + of.count * cost.around);
    }
    taken[o] =
        !known
            ? 0
            : static_cast<std::uint32_t>(std::min<std::int64_t>(add(taken[o], cost.own), length));
    if (const std::uint32_t above = tree.parent[o]; above != kNone)
      taken[above] = add(taken[above], std::uint64_t{taken[o]} + cost.around);
  }
  return taken;
}

std::int64_t recorded_in(const UnlistedOfCell& unlisted) {
  return static_cast<std::int64_t>(unlisted.wall.moments.sum - unlisted.unrecorded.moments.sum);
}

/// Of the cells of one process, by node: does the node, or one of the same tree, owe more than
/// kWorthTaking of its time to recording?
std::vector<char> worth_taking(const Tree& tree,
                               std::span<const std::uint32_t> cells,
                               const std::vector<double>& added_to_cell) {
  std::vector<double> added(tree.nodes.size(), 0), wall(tree.nodes.size(), 0);
  for (const std::uint32_t cell : cells) {
    added[tree.cells[cell].node] += added_to_cell[cell];
    wall[tree.cells[cell].node] += static_cast<double>(tree.cells[cell].inclusive_ns);
  }
  std::vector<char> worth(tree.nodes.size(), 0);
  for (std::size_t i = tree.depth_first.size(); i-- > 0;) {
    const std::uint32_t node = tree.depth_first[i], above = tree.nodes[node].parent;
    worth[node] |= static_cast<char>(added[node] > kWorthTaking * wall[node]);
    if (worth[node] != 0 && above != kNone)
      worth[above] = 1;
  }
  for (const std::uint32_t node : tree.depth_first)
    if (const std::uint32_t above = tree.nodes[node].parent; above != kNone)
      worth[node] = worth[above];
  return worth;
}

/// By cell. Each process is judged by itself, as a rank that writes its own digest is.
std::vector<char> worth_taking(const Tree& tree, const std::vector<std::uint32_t>& taken) {
  std::vector<double> added(tree.cells.size(), 0);
  for (std::uint32_t o = 0; o < taken.size(); ++o)
    added[tree.cell[o]] += taken[o];
  for (const auto& [cell, unlisted] : tree.unlisted_of)
    added[cell] += recorded_in(unlisted);
  std::map<std::uint32_t, std::vector<std::uint32_t>> cells_of_process;
  for (std::uint32_t cell = 0; cell < tree.cells.size(); ++cell)
    cells_of_process[tree.cells[cell].process].push_back(cell);
  std::vector<char> worth(tree.cells.size(), 0);
  for (const auto& [process, cells] : cells_of_process) {
    const std::vector<char> worth_of_node = worth_taking(tree, cells, added);
    for (const std::uint32_t cell : cells)
      worth[cell] = worth_of_node[tree.cells[cell].node];
  }
  return worth;
}

}  // namespace

void take_out_recording(const model::Session& session, Tree& tree) {
  std::vector<model::RecordingCost> costs;
  for (const model::Process& process : session.processes)
    costs.push_back(model::recording_cost(process));
  if (std::ranges::all_of(costs, [](const auto& cost) { return cost.own + cost.around == 0; }) &&
      std::ranges::all_of(session.unlisted_inside,
                          [](const auto& of) { return of.recorded_ns == 0; }))
    return;
  const std::vector<std::uint32_t> inside = unlisted_inside(session);
  std::vector<std::uint32_t> taken = recorded_in(session, tree, costs, inside);
  const std::vector<char> worth = worth_taking(tree, taken);
  if (std::find(worth.begin(), worth.end(), 1) == worth.end())
    return;
  std::vector<std::int64_t> exclusive(tree.cells.size(), 0), until(tree.cells.size(), INT64_MIN);
  for (std::uint32_t o = 0; o < taken.size(); ++o) {
    if (worth[tree.cell[o]] == 0)
      taken[o] = 0;
    if (taken[o] == 0)
      continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    if (range.start_ns >=
        until[tree.cell[o]]) {  // else one around it, of the same region (kDeepest), has this time
      tree.cells[tree.cell[o]].recorded_ns += taken[o];
      until[tree.cell[o]] = range.end_ns;
    }
    exclusive[tree.cell[o]] += taken[o];
    if (tree.parent[o] != kNone)
      exclusive[tree.cell[tree.parent[o]]] -= taken[o];
    if (const std::uint32_t i = inside.empty() ? kNone : inside[tree.range_of[o]]; i != kNone)
      exclusive[tree.cell[o]] -= session.unlisted_inside[i].recorded_ns;
  }
  for (auto& [cell, unlisted] : tree.unlisted_of) {
    if (worth[cell] == 0)
      continue;
    const std::int64_t recorded = recorded_in(unlisted);
    tree.cells[cell].recorded_ns += static_cast<std::uint64_t>(recorded);
    exclusive[cell] += recorded - unlisted.inside_recorded_ns;
    unlisted.wall = std::move(unlisted.unrecorded);
    unlisted.usual_ns = unlisted.usual_unrecorded_ns;
  }
  for (std::size_t i = 0; i < tree.cells.size(); ++i) {
    Cell& cell = tree.cells[i];
    cell.inclusive_ns -= std::min(cell.inclusive_ns, cell.recorded_ns);
    const auto own = static_cast<std::uint64_t>(std::max<std::int64_t>(0, exclusive[i]));
    cell.exclusive_ns -= std::min(cell.exclusive_ns, own);
  }
  tree.recorded_ns = std::move(taken);
}

double recorded_outside_ns(const model::Session& session, const Tree& tree) {
  std::map<std::uint32_t, double> by_domain;
  for (const Cell& cell : tree.cells) {
    const bool is_pushed = cell.kind == model::RangeKind::kPushPop && !cell.module;
    const bool is_on_top = is_pushed && cell.parent == kNone;
    if (!is_on_top || cell.process >= session.processes.size())
      continue;
    const model::RecordingCost cost = model::recording_cost(session.processes[cell.process]);
    by_domain[cell.domain] += static_cast<double>(cost.around) * (cell.closed + cell.unclosed);
  }
  double most_ns = 0;
  for (const auto& [domain, recorded_ns] : by_domain)
    most_ns = std::max(most_ns, recorded_ns);
  return most_ns;
}

}  // namespace rangescope::analyze
