// What happens in spans of threads: how much of an operation lies inside of them, and a graph in
// which all of it takes another time. Lookups are O(log spans of a thread).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/replay/graph.hpp"
#include "analyze/replay/replay.hpp"
#include "analyze/statistics/stretches.hpp"

namespace rangescope::analyze::replay {

/// Spans, which may overlap, as the stretches of each thread that they cover.
class CoveredTime {
 public:
  explicit CoveredTime(std::span<const Span> spans);
  /// Of [start_ns, end_ns] of a thread of the session.
  [[nodiscard]] std::int64_t covered_ns(Id thread,
                                        std::int64_t start_ns,
                                        std::int64_t end_ns) const;
  [[nodiscard]] bool covers(Id thread, std::int64_t moment_ns) const;

 private:
  std::vector<Stretches> stretches_;  ///< by thread
};

/// What the threads do in the spans, and the GPU work that they launch there, takes `factor` times
/// as long. 0: that work, its calls and the waits there do not happen.
[[nodiscard]] Graph scaled_inside(const Graph& graph, std::span<const Span> spans, double factor);

}  // namespace rangescope::analyze::replay
