// What a change (changes.hpp) makes of the time of some spans, with the interval that its parameter
// and the replay's own error leave. Three replays a prediction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analyze/replay/graph.hpp"
#include "analyze/replay/replay.hpp"

namespace rangescope::analyze::replay {

/// What was not measured: the speed of a pinned copy, how near a kernel is to its peak. 1 where a
/// change has none.
struct Parameter {
  double expected = 1, low = 1, high = 1;
};

using Change = std::function<Graph(const Graph& graph, double parameter)>;

struct Prediction {
  double before_ns = 0;  ///< replayed without the change
  double after_ns = 0, after_low_ns = 0, after_high_ns = 0;
  double replay_error = 0;  ///< of the recording, replayed as it was: 0.02
  bool is_bound = false;    ///< the recording does not replay: the saving is at most this

  [[nodiscard]] double saves_ns() const { return before_ns - after_ns; }
  [[nodiscard]] double saves_low_ns() const { return before_ns - after_high_ns; }
  [[nodiscard]] double saves_high_ns() const { return before_ns - after_low_ns; }
  [[nodiscard]] double saves_share() const;
};

/// Of several groups of spans, as the instances of each region, and of the whole recording: from
/// its begin to the end of its last operation.
struct Predictions {
  Prediction run;
  double run_recorded_ns = 0;
  std::vector<Prediction> groups;
};

/// A recording, ready to be changed. What tracing added to its calls is in neither side of a
/// prediction.
class Predictor {
 public:
  Predictor(Graph recorded, std::int64_t tracing_ns);

  /// The graph that changes are applied to.
  [[nodiscard]] const Graph& graph() const { return untraced_; }
  [[nodiscard]] Prediction predict(std::span<const Span> spans,
                                   const Change& change,
                                   Parameter parameter = {}) const;
  /// The same of many groups, by the same three replays.
  [[nodiscard]] Predictions predict_all(std::span<const std::vector<Span>> groups,
                                        const Change& change,
                                        Parameter parameter = {}) const;
  /// How far the recording, replayed as it was, is off.
  [[nodiscard]] double replay_error(std::span<const Span> spans) const;

 private:
  [[nodiscard]] Predictions predict_groups(std::span<const std::span<const Span>> groups,
                                           const Change& change,
                                           Parameter parameter) const;
  [[nodiscard]] Comparison compare_runs() const;

  Graph untraced_;  ///< differs from the recorded one in durations only
  Times recorded_times_, untraced_times_;
};

}  // namespace rangescope::analyze::replay
