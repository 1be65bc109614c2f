// What a change (changes.hpp) makes of the time of some spans, with the interval that its parameter
// and the replay's own error leave. Three replays a prediction.
#pragma once

#include <functional>
#include <span>

#include "analyze/replay/graph.hpp"
#include "analyze/replay/replay.hpp"

namespace rangescope::analyze::replay {

/// What nobody measured: the speed of a pinned copy, how near a kernel comes to its peak. 1 where a
/// change has none.
struct Parameter {
  double expected = 1, low = 1, high = 1;
};

struct Prediction {
  double before_ns = 0;  ///< replayed without the change
  double after_ns = 0, after_low_ns = 0, after_high_ns = 0;
  double replay_error = 0;  ///< of the unchanged replay: 0.02
  bool is_bound = false;    ///< the session does not replay: the saving is at most this

  [[nodiscard]] double saves_ns() const { return before_ns - after_ns; }
  [[nodiscard]] double saves_low_ns() const { return before_ns - after_high_ns; }
  [[nodiscard]] double saves_high_ns() const { return before_ns - after_low_ns; }
  [[nodiscard]] double saves_share() const;
};

using Change = std::function<Graph(const Graph& graph, double parameter)>;

[[nodiscard]] Prediction predict(const Graph& graph, std::span<const Span> spans,
                                 const Change& change, Parameter parameter = {});

}  // namespace rangescope::analyze::replay
