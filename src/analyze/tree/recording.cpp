#include "analyze/tree/recording.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace rangescope::analyze {
namespace {

/// `inside`: as unlisted_inside() has it. Null where nothing in the range is unlisted.
const model::UnlistedInside* unlisted_of_range(const model::Session& session,
                                               const std::vector<std::uint32_t>& inside,
                                               std::uint32_t range) {
  if (inside.empty() || inside[range] == kNone)
    return nullptr;
  return &session.unlisted_inside[inside[range]];
}

/// Of each occurrence what recording added. From the innermost outwards: an occurrence comes after
/// the one around it.
std::vector<std::uint32_t> recorded_in(const model::Session& session,
                                       const Tree& tree,
                                       const std::vector<model::RecordingCost>& costs,
                                       const std::vector<std::uint32_t>& inside) {
  std::vector<std::uint32_t> recorded_ns(tree.range_of.size(), 0);
  const auto add = [](std::uint32_t& sum, std::uint64_t more) {
    sum = static_cast<std::uint32_t>(std::min<std::uint64_t>(UINT32_MAX, sum + more));
  };
  for (auto o = static_cast<std::uint32_t>(tree.range_of.size()); o-- > 0;) {
    const std::uint32_t range_number = tree.range_of[o];
    if (range_number == kNone)
      continue;
    const model::Range& range = session.ranges[range_number];
    const Cell& cell = tree.cells[tree.cell[o]];
    const bool is_pushed = range.kind == model::RangeKind::kPushPop && !range.module;
    const bool has_cost = is_pushed && range.end_ns != kOpen && cell.process < costs.size();
    model::RecordingCost cost;
    if (has_cost)
      cost = costs[cell.process];
    const model::UnlistedInside* unlisted = unlisted_of_range(session, inside, range_number);
    if (unlisted != nullptr) {
      const std::uint64_t around_ns = unlisted->count * cost.around;
      add(recorded_ns[o], static_cast<std::uint64_t>(unlisted->recorded_ns) + around_ns);
    }
    if (has_cost) {
      add(recorded_ns[o], cost.own);
      const std::int64_t length = length_ns(range.start_ns, range.end_ns);
      recorded_ns[o] = static_cast<std::uint32_t>(std::min<std::int64_t>(recorded_ns[o], length));
    } else {
      recorded_ns[o] = 0;
    }
    const std::uint32_t above = tree.parent[o];
    if (above != kNone)
      add(recorded_ns[above], std::uint64_t{recorded_ns[o]} + cost.around);
  }
  return recorded_ns;
}

std::int64_t recorded_in(const UnlistedOfCell& unlisted) {
  return static_cast<std::int64_t>(unlisted.wall.moments.sum - unlisted.unrecorded.moments.sum);
}

/// Of the cells of one process, by node: does the node, or one of the same tree, owe more than
/// kWorthTaking of its time to recording?
std::vector<char> worth_taking(const Tree& tree,
                               std::span<const std::uint32_t> cells,
                               const std::vector<double>& added_to_cell) {
  std::vector<double> added(tree.nodes.size(), 0);
  std::vector<double> wall(tree.nodes.size(), 0);
  for (const std::uint32_t number : cells) {
    const Cell& cell = tree.cells[number];
    added[cell.node] += added_to_cell[number];
    wall[cell.node] += static_cast<double>(cell.inclusive_ns);
  }
  // A node that is worth it makes the top of its tree so, and that all nodes below.
  std::vector<char> worth(tree.nodes.size(), 0);
  for (std::size_t i = tree.depth_first.size(); i-- > 0;) {
    const std::uint32_t node = tree.depth_first[i];
    const std::uint32_t above = tree.nodes[node].parent;
    worth[node] |= static_cast<char>(added[node] > kWorthTaking * wall[node]);
    if (worth[node] != 0 && above != kNone)
      worth[above] = 1;
  }
  for (const std::uint32_t node : tree.depth_first) {
    const std::uint32_t above = tree.nodes[node].parent;
    if (above != kNone)
      worth[node] = worth[above];
  }
  return worth;
}

/// By cell. Each process is judged by itself, as a rank that writes its own digest is.
std::vector<char> worth_taking(const Tree& tree, const std::vector<std::uint32_t>& recorded_ns) {
  std::vector<double> added(tree.cells.size(), 0);
  for (std::uint32_t o = 0; o < recorded_ns.size(); ++o)
    added[tree.cell[o]] += recorded_ns[o];
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

/// Recording costs nothing that is known.
bool costs_nothing(const model::Session& session, const std::vector<model::RecordingCost>& costs) {
  const auto is_free = [](const model::RecordingCost& cost) { return cost.own + cost.around == 0; };
  const auto is_unrecorded = [](const model::UnlistedInside& unlisted) {
    return unlisted.recorded_ns == 0;
  };
  return std::ranges::all_of(costs, is_free) &&
         std::ranges::all_of(session.unlisted_inside, is_unrecorded);
}

/// Takes what recording added out of the cells that are worth it.
class RecordingRemoval {
 public:
  RecordingRemoval(const model::Session& session, const std::vector<char>& worth, Tree& tree)
      : session_(session), worth_(worth), tree_(tree), exclusive_ns_(tree.cells.size(), 0) {}

  /// Sets `recorded_ns` of what stays as recorded to 0.
  void remove_listed(const std::vector<std::uint32_t>& inside,
                     std::vector<std::uint32_t>& recorded_ns) {
    std::vector<std::int64_t> until(tree_.cells.size(), INT64_MIN);
    for (std::uint32_t o = 0; o < recorded_ns.size(); ++o) {
      const std::uint32_t cell = tree_.cell[o];
      if (worth_[cell] == 0)
        recorded_ns[o] = 0;
      if (recorded_ns[o] == 0)
        continue;
      const model::Range& range = session_.ranges[tree_.range_of[o]];
      // Else a range around it, of the same region (kDeepest), has this time.
      if (range.start_ns >= until[cell]) {
        tree_.cells[cell].recorded_ns += recorded_ns[o];
        until[cell] = range.end_ns;
      }
      exclusive_ns_[cell] += recorded_ns[o];
      const std::uint32_t above = tree_.parent[o];
      if (above != kNone)
        exclusive_ns_[tree_.cell[above]] -= recorded_ns[o];
      const auto* unlisted = unlisted_of_range(session_, inside, tree_.range_of[o]);
      if (unlisted != nullptr)
        exclusive_ns_[cell] -= unlisted->recorded_ns;
    }
  }

  void remove_unlisted() {
    for (auto& [cell, unlisted] : tree_.unlisted_of) {
      if (worth_[cell] == 0)
        continue;
      const std::int64_t recorded = recorded_in(unlisted);
      tree_.cells[cell].recorded_ns += static_cast<std::uint64_t>(recorded);
      exclusive_ns_[cell] += recorded - unlisted.inside_recorded_ns;
      unlisted.wall = std::move(unlisted.unrecorded);
      unlisted.usual_ns = unlisted.usual_unrecorded_ns;
    }
  }

  void subtract_from_cells() {
    for (std::size_t i = 0; i < tree_.cells.size(); ++i) {
      Cell& cell = tree_.cells[i];
      cell.inclusive_ns -= std::min(cell.inclusive_ns, cell.recorded_ns);
      const auto removed = static_cast<std::uint64_t>(std::max<std::int64_t>(0, exclusive_ns_[i]));
      cell.exclusive_ns -= std::min(cell.exclusive_ns, removed);
    }
  }

 private:
  const model::Session& session_;
  const std::vector<char>& worth_;  ///< by cell
  Tree& tree_;
  std::vector<std::int64_t> exclusive_ns_;  ///< to take out of Cell::exclusive_ns
};

}  // namespace

void take_out_recording(const model::Session& session, Tree& tree) {
  std::vector<model::RecordingCost> costs;
  for (const model::Process& process : session.processes)
    costs.push_back(model::recording_cost(process));
  if (costs_nothing(session, costs))
    return;
  const std::vector<std::uint32_t> inside = unlisted_inside(session);
  std::vector<std::uint32_t> recorded_ns = recorded_in(session, tree, costs, inside);
  const std::vector<char> worth = worth_taking(tree, recorded_ns);
  if (std::find(worth.begin(), worth.end(), 1) == worth.end())
    return;
  RecordingRemoval removal(session, worth, tree);
  removal.remove_listed(inside, recorded_ns);
  removal.remove_unlisted();
  removal.subtract_from_cells();
  tree.recorded_ns = std::move(recorded_ns);
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
  double largest_ns = 0;
  for (const auto& [domain, recorded_ns] : by_domain)
    largest_ns = std::max(largest_ns, recorded_ns);
  return largest_ns;
}

}  // namespace rangescope::analyze
