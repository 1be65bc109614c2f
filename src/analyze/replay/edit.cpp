#include "analyze/replay/edit.hpp"

#include <utility>

namespace rangescope::analyze::replay {

Id Edit::add_lane(Lane lane) {
  graph_.lanes.push_back(lane);
  return static_cast<Id>(graph_.lanes.size() - 1);
}

std::vector<Dependency>& Edit::dependencies(Id id) {
  const auto [entry, is_new] = changed_.try_emplace(id);
  if (is_new) {
    const auto recorded = std::as_const(graph_).dependencies_of(id);
    entry->second.assign(recorded.begin(), recorded.end());
  }
  return entry->second;
}

void Edit::depend(Id id, Id on, std::int64_t lag_ns, Reason reason) {
  if (on == model::kNone)
    return;
  dependencies(id).push_back({lag_ns, on, reason});
}

std::span<const Dependency> Edit::current_dependencies(Id id) const {
  const auto changed = changed_.find(id);
  if (changed != changed_.end())
    return changed->second;
  return graph_.dependencies_of(id);
}

/// Of several before it the one that ended last in the recording. The first operation of a lane is
/// replaced by the begin of the recording, with a lag until the lane began.
Edit::StandIn Edit::stand_in(Id id, const std::vector<StandIn>& numbered) const {
  const Dependency* latest = nullptr;
  for (const Dependency& dependency : current_dependencies(id)) {
    if (dependency.reason != Reason::kOrder)
      continue;
    const bool is_later = latest == nullptr || graph_.operations[dependency.on].end_ns >
                                                   graph_.operations[latest->on].end_ns;
    if (is_later)
      latest = &dependency;
  }
  if (latest == nullptr)
    return {};
  StandIn before = numbered[latest->on];
  if (before.id == 0)
    before.lag_ns += latest->lag_ns;
  return before;
}

std::vector<Edit::StandIn> Edit::number() {
  std::vector<StandIn> numbered(graph_.size());
  Id kept = 0;
  for (Id id = 0; id < graph_.size(); ++id) {
    if (removed_[id]) {
      numbered[id] = stand_in(id, numbered);
    } else {
      numbered[id] = {kept++, 0};
    }
  }
  return numbered;
}

Graph Edit::finish() {
  const std::vector<StandIn> numbered = number();
  Graph edited;
  edited.lanes = std::move(graph_.lanes);
  edited.latencies = graph_.latencies;
  edited.operations.reserve(graph_.size());
  edited.first_dependency.reserve(graph_.first_dependency.size());
  edited.dependencies.reserve(graph_.dependencies.size());
  for (Id id = 0; id < graph_.size(); ++id) {
    if (removed_[id])
      continue;
    edited.operations.push_back(graph_.operations[id]);
    for (Dependency dependency : current_dependencies(id)) {
      const StandIn& on = numbered[dependency.on];
      dependency.on = on.id;
      dependency.lag_ns += on.lag_ns;
      edited.dependencies.push_back(dependency);
    }
    edited.first_dependency.push_back(static_cast<Id>(edited.dependencies.size()));
  }
  return edited;
}

}  // namespace rangescope::analyze::replay
