#include "analyze/replay/predict.hpp"

#include <algorithm>
#include <utility>

#include "analyze/replay/changes.hpp"

namespace rangescope::analyze::replay {
namespace {

double replayed_ns(const Graph& graph, const Times& times, std::span<const Span> spans) {
  return compare(ReplayedClock(graph, times), spans).replayed_ns;
}

double changed_ns(const Graph& graph, std::span<const Span> spans, const Change& change,
                  double parameter) {
  const Graph changed = change(graph, parameter);
  return replayed_ns(changed, replay(changed), spans);
}

}  // namespace

double Prediction::saves_share() const {
  if (before_ns <= 0) return 0;
  return saves_ns() / before_ns;
}

Predictor::Predictor(Graph recorded, std::int64_t tracing_ns)
    : recorded_(std::move(recorded)),
      untraced_(without_tracing(recorded_, tracing_ns)),
      recorded_times_(replay(recorded_)),
      untraced_times_(replay(untraced_)) {}

double Predictor::replay_error(std::span<const Span> spans) const {
  return compare(ReplayedClock(recorded_, recorded_times_), spans).error();
}

Prediction Predictor::predict(std::span<const Span> spans, const Change& change,
                              Parameter parameter) const {
  Prediction prediction;
  prediction.before_ns = replayed_ns(untraced_, untraced_times_, spans);
  prediction.replay_error = replay_error(spans);
  prediction.is_bound = prediction.replay_error > kTrustedError;
  prediction.after_ns = changed_ns(untraced_, spans, change, parameter.expected);

  const double one_end_ns = changed_ns(untraced_, spans, change, parameter.low);
  const double other_end_ns = changed_ns(untraced_, spans, change, parameter.high);
  const double error_ns = prediction.replay_error * prediction.after_ns;
  const auto [least_ns, most_ns] = std::minmax({one_end_ns, other_end_ns, prediction.after_ns});
  prediction.after_low_ns = least_ns - error_ns;
  prediction.after_high_ns = most_ns + error_ns;
  return prediction;
}

}  // namespace rangescope::analyze::replay
