#include "analyze/replay/predict.hpp"

#include <algorithm>

namespace rangescope::analyze::replay {
namespace {

double replayed_ns(const Graph& graph, std::span<const Span> spans) {
  const Times times = replay(graph);
  return compare(ReplayedClock(graph, times), spans).replayed_ns;
}

}  // namespace

double Prediction::saves_share() const {
  if (before_ns <= 0) return 0;
  return saves_ns() / before_ns;
}

Prediction predict(const Graph& graph, std::span<const Span> spans, const Change& change,
                   Parameter parameter) {
  const Times times = replay(graph);
  const Comparison unchanged = compare(ReplayedClock(graph, times), spans);

  Prediction prediction;
  prediction.before_ns = unchanged.replayed_ns;
  prediction.replay_error = unchanged.error();
  prediction.is_bound = prediction.replay_error > kTrustedError;
  prediction.after_ns = replayed_ns(change(graph, parameter.expected), spans);

  const double one_end_ns = replayed_ns(change(graph, parameter.low), spans);
  const double other_end_ns = replayed_ns(change(graph, parameter.high), spans);
  const double error_ns = prediction.replay_error * prediction.after_ns;
  prediction.after_low_ns = std::min({one_end_ns, other_end_ns, prediction.after_ns}) - error_ns;
  prediction.after_high_ns = std::max({one_end_ns, other_end_ns, prediction.after_ns}) + error_ns;
  return prediction;
}

}  // namespace rangescope::analyze::replay
