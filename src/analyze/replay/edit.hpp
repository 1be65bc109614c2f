// Edits a graph: operations go, dependencies change, and the result is a graph again. O(operations
// + dependencies).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyze/replay/graph.hpp"

namespace rangescope::analyze::replay {

/// Who depended on an operation that goes depends on the one before it in its lane: on a thread the
/// call before, in a stream the work before.
class Edit {
 public:
  explicit Edit(const Graph& graph) : graph_(graph), removed_(graph.size()) {}

  [[nodiscard]] Operation& operation(Id id) { return graph_.operations[id]; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] bool is_removed(Id id) const { return removed_[id]; }

  void remove(Id id) { removed_[id] = true; }
  Id add_lane(Lane lane);
  /// The dependencies of an operation, to be changed; all must be on operations before it.
  [[nodiscard]] std::vector<Dependency>& dependencies(Id id);
  /// Ignored where `on` is kNone.
  void depend(Id id, Id on, std::int64_t lag_ns, Reason reason);

  [[nodiscard]] Graph finish();

 private:
  struct StandIn {
    Id id = 0;  ///< in the new graph
    std::int64_t lag_ns = 0;
  };
  [[nodiscard]] std::vector<StandIn> number();
  [[nodiscard]] StandIn stand_in(Id id, const std::vector<StandIn>& numbered) const;
  [[nodiscard]] std::span<const Dependency> current_dependencies(Id id) const;

  Graph graph_;
  std::vector<bool> removed_;
  std::unordered_map<Id, std::vector<Dependency>> changed_;
};

}  // namespace rangescope::analyze::replay
