// When every operation of a graph begins and ends: each as early as what it depends on allows.
// O(dependencies).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/replay/graph.hpp"

namespace rangescope::analyze::replay {

/// By operation, on the clock of the session.
struct Times {
  std::vector<std::int64_t> start_ns, end_ns;
};

[[nodiscard]] Times replay(const Graph& graph);

/// A stretch of a thread of the session, as recorded: an instance of a range.
struct Span {
  Id thread = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

[[nodiscard]] inline double length_ns(const Span& span) {
  return static_cast<double>(span.end_ns - span.start_ns);
}

/// Where moments of the recording lie in a replay: what was half way between two operations of its
/// thread, or through one, still is.
class ReplayedClock {
 public:
  ReplayedClock(const Graph& graph, const Times& times)
      : graph_(graph), times_(times), lanes_(graph) {}

  /// O(log operations of the thread). A thread without calls keeps its times.
  [[nodiscard]] std::int64_t moment(Id thread, std::int64_t recorded_ns) const;
  [[nodiscard]] std::int64_t length(const Span& span) const;

 private:
  const Graph& graph_;
  const Times& times_;
  LaneIndex lanes_;
};

/// The replayed length of all spans together, and the recorded one.
struct Comparison {
  double recorded_ns = 0, replayed_ns = 0;

  /// 0.03: the replay is 3 % off; 0 where nothing was recorded.
  [[nodiscard]] double error() const;
};
[[nodiscard]] Comparison compare(const ReplayedClock& clock, std::span<const Span> spans);

/// Beyond this error of a region its predictions are bounds.
inline constexpr double kTrustedError = 0.10;

}  // namespace rangescope::analyze::replay
