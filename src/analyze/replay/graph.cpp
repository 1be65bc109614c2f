#include "analyze/replay/graph.hpp"

namespace rangescope::analyze::replay {

std::span<const Dependency> Graph::dependencies_of(std::uint32_t operation) const {
  const std::uint32_t first = first_dependency[operation];
  return std::span(dependencies).subspan(first, first_dependency[operation + 1] - first);
}

std::span<Dependency> Graph::dependencies_of(std::uint32_t operation) {
  const std::uint32_t first = first_dependency[operation];
  return std::span(dependencies).subspan(first, first_dependency[operation + 1] - first);
}

std::uint32_t Graph::find_dependency(std::uint32_t operation, Reason reason) const {
  for (const Dependency& dependency : dependencies_of(operation)) {
    if (dependency.reason == reason) return dependency.on;
  }
  return model::kNone;
}

LaneIndex::LaneIndex(const Graph& graph) : first_(graph.lanes.size() + 1) {
  for (const Operation& operation : graph.operations) ++first_[operation.lane + 1];
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) first_[lane + 1] += first_[lane];
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  operations_.resize(graph.size());
  for (std::uint32_t id = 0; id < graph.size(); ++id)
    operations_[next[graph.operations[id].lane]++] = id;

  for (std::uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::uint32_t thread = graph.lanes[lane].thread;
    if (thread == model::kNone) continue;
    if (thread >= lane_of_thread_.size()) lane_of_thread_.resize(thread + 1, model::kNone);
    lane_of_thread_[thread] = lane;
  }
}

std::span<const std::uint32_t> LaneIndex::operations_of(std::uint32_t lane) const {
  return std::span(operations_).subspan(first_[lane], first_[lane + 1] - first_[lane]);
}

std::uint32_t LaneIndex::lane_of_thread(std::uint32_t thread) const {
  if (thread >= lane_of_thread_.size()) return model::kNone;
  return lane_of_thread_[thread];
}

}  // namespace rangescope::analyze::replay
