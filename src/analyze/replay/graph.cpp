#include "analyze/replay/graph.hpp"

namespace rangescope::analyze::replay {

std::span<const Dependency> Graph::dependencies_of(Id operation) const {
  const Id first = first_dependency[operation];
  return std::span(dependencies).subspan(first, first_dependency[operation + 1] - first);
}

std::span<Dependency> Graph::dependencies_of(Id operation) {
  const Id first = first_dependency[operation];
  return std::span(dependencies).subspan(first, first_dependency[operation + 1] - first);
}

Id Graph::find_dependency(Id operation, Reason reason) const {
  for (const Dependency& dependency : dependencies_of(operation)) {
    if (dependency.reason == reason)
      return dependency.on;
  }
  return model::kNone;
}

LaneIndex::LaneIndex(const Graph& graph) : first_(graph.lanes.size() + 1) {
  for (const Operation& operation : graph.operations)
    ++first_[operation.lane + 1];
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane)
    first_[lane + 1] += first_[lane];
  std::vector<Id> next(first_.begin(), first_.end() - 1);
  operations_.resize(graph.size());
  for (Id id = 0; id < graph.size(); ++id)
    operations_[next[graph.operations[id].lane]++] = id;

  for (Id lane = 0; lane < graph.lanes.size(); ++lane) {
    const Id thread = graph.lanes[lane].thread;
    if (thread == model::kNone)
      continue;
    if (thread >= lane_of_thread_.size())
      lane_of_thread_.resize(thread + 1, model::kNone);
    lane_of_thread_[thread] = lane;
  }
}

std::span<const Id> LaneIndex::operations_of(Id lane) const {
  return std::span(operations_).subspan(first_[lane], first_[lane + 1] - first_[lane]);
}

Id LaneIndex::lane_of_thread(Id thread) const {
  if (thread >= lane_of_thread_.size())
    return model::kNone;
  return lane_of_thread_[thread];
}

}  // namespace rangescope::analyze::replay
