#include "analyze/recording.hpp"

#include <algorithm>
#include <cmath>

namespace rangescope::analyze {
namespace {

constexpr double kWorthTaking = 0.05;  // of a region's wall time: below it the estimate's own error is as large

struct Cost {
  std::uint32_t own = 0, around = 0;  // nanoseconds inside the range, and beside it in the range around
};

std::vector<Cost> costs_of(const model::Session& session) {
  std::vector<Cost> costs(session.processes.size());
  for (std::size_t p = 0; p < costs.size(); ++p) {
    const model::Process& process = session.processes[p];
    const auto pair = static_cast<std::uint32_t>(std::lround(process.range_pair_ns));
    costs[p].own = std::min(pair, static_cast<std::uint32_t>(std::lround(process.range_own_ns)));
    costs[p].around = pair - costs[p].own;
  }
  return costs;
}

/// Of each occurrence what recording added; 0 where `nodes` says that its node is left as it is. From the innermost
/// outwards: an occurrence stands behind the one around it.
void sweep_recording(const model::Session& session, const Tree& tree, const std::vector<Cost>& costs,
                     const std::vector<char>* nodes, std::vector<std::uint32_t>& taken) {
  taken.assign(tree.range_of.size(), 0);
  const auto add = [](std::uint32_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(UINT32_MAX, a + b));
  };
  for (auto o = static_cast<std::uint32_t>(tree.range_of.size()); o-- > 0;) {
    if (tree.range_of[o] == kNone) continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    const Cell& cell = tree.cells[tree.cell[o]];
    const bool known = range.kind == model::RangeKind::kPushPop && range.end_ns != kOpen && cell.process < costs.size();
    const Cost cost = known ? costs[cell.process] : Cost{};
    const bool stays = cost.own + cost.around == 0 || (nodes != nullptr && (*nodes)[cell.node] == 0);
    const std::int64_t length = length_ns(range.start_ns, range.end_ns);
    taken[o] = stays ? 0 : static_cast<std::uint32_t>(std::min<std::int64_t>(add(taken[o], cost.own), length));
    if (const std::uint32_t above = tree.parent[o]; above != kNone)
      taken[above] = add(taken[above], std::uint64_t{taken[o]} + cost.around);
  }
}

}  // namespace

void take_out_recording(const model::Session& session, Tree& tree) {
  const std::vector<Cost> costs = costs_of(session);
  if (std::all_of(costs.begin(), costs.end(), [](const Cost& cost) { return cost.own + cost.around == 0; })) return;
  std::vector<std::uint32_t> taken;
  sweep_recording(session, tree, costs, nullptr, taken);
  std::vector<double> added(tree.nodes.size(), 0), wall(tree.nodes.size(), 0);
  for (std::uint32_t o = 0; o < taken.size(); ++o) added[tree.cells[tree.cell[o]].node] += taken[o];
  for (const Cell& cell : tree.cells) wall[cell.node] += static_cast<double>(cell.inclusive_ns);
  std::vector<char> nodes(tree.nodes.size(), 0);
  for (std::size_t i = tree.depth_first.size(); i-- > 0;) {
    const std::uint32_t node = tree.depth_first[i], above = tree.nodes[node].parent;
    nodes[node] |= static_cast<char>(added[node] > kWorthTaking * wall[node]);
    if (nodes[node] != 0 && above != kNone) nodes[above] = 1;
  }
  if (std::find(nodes.begin(), nodes.end(), 1) == nodes.end()) return;
  sweep_recording(session, tree, costs, &nodes, taken);
  std::vector<std::int64_t> exclusive(tree.cells.size(), 0), until(tree.cells.size(), INT64_MIN);
  for (std::uint32_t o = 0; o < taken.size(); ++o) {
    if (taken[o] == 0) continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    if (range.start_ns >= until[tree.cell[o]]) {  // else one around it, of the same region (kDeepest), has this time
      tree.cells[tree.cell[o]].recorded_ns += taken[o];
      until[tree.cell[o]] = range.end_ns;
    }
    exclusive[tree.cell[o]] += taken[o];
    if (tree.parent[o] != kNone) exclusive[tree.cell[tree.parent[o]]] -= taken[o];
  }
  for (std::size_t i = 0; i < tree.cells.size(); ++i) {
    Cell& cell = tree.cells[i];
    cell.inclusive_ns -= std::min(cell.inclusive_ns, cell.recorded_ns);
    const auto own = static_cast<std::uint64_t>(std::max<std::int64_t>(0, exclusive[i]));
    cell.exclusive_ns -= std::min(cell.exclusive_ns, own);
  }
  tree.recorded_ns = std::move(taken);
}

}  // namespace rangescope::analyze
