#include "analyze/replay/predict.hpp"

#include <algorithm>
#include <utility>

#include "analyze/replay/changes.hpp"

namespace rangescope::analyze::replay {
namespace {

/// How long a replay took.
struct Lengths {
  double run_ns = 0;
  std::vector<double> groups_ns;
};

double run_length_ns(const Graph& graph, std::span<const std::int64_t> ends_ns) {
  const std::int64_t begin_ns = graph.operations.front().start_ns;
  return static_cast<double>(std::ranges::max(ends_ns) - begin_ns);
}

using Groups = std::span<const std::span<const Span>>;

Lengths lengths_of(const Graph& graph, const Times& times, Groups groups) {
  Lengths lengths;
  lengths.run_ns = run_length_ns(graph, times.end_ns);
  const ReplayedClock clock(graph, times);
  for (const std::span<const Span> spans : groups)
    lengths.groups_ns.push_back(compare(clock, spans).replayed_ns);
  return lengths;
}

Lengths changed_lengths(const Graph& graph, Groups groups, const Change& change, double parameter) {
  const Graph changed = change(graph, parameter);
  return lengths_of(changed, replay(changed), groups);
}

/// One length in the four replays that make a prediction.
struct Outcomes {
  double before_ns = 0, expected_ns = 0, low_ns = 0, high_ns = 0;
};

Prediction prediction_of(const Outcomes& outcomes, double replay_error) {
  Prediction prediction;
  prediction.before_ns = outcomes.before_ns;
  prediction.after_ns = outcomes.expected_ns;
  prediction.replay_error = replay_error;
  prediction.is_bound = replay_error > kTrustedError;
  const auto [least_ns, most_ns] =
      std::minmax({outcomes.low_ns, outcomes.high_ns, outcomes.expected_ns});
  const double error_ns = replay_error * outcomes.expected_ns;
  prediction.after_low_ns = std::max(0.0, least_ns - error_ns);
  prediction.after_high_ns = most_ns + error_ns;
  return prediction;
}

}  // namespace

double Prediction::saves_share() const {
  if (before_ns <= 0)
    return 0;
  return saves_ns() / before_ns;
}

Predictor::Predictor(Graph recorded, std::int64_t tracing_ns) {
  recorded_times_ = replay(recorded);
  untraced_ = without_tracing(std::move(recorded), tracing_ns);
  untraced_times_ = replay(untraced_);
}

double Predictor::replay_error(std::span<const Span> spans) const {
  return compare(ReplayedClock(untraced_, recorded_times_), spans).error();
}

Prediction Predictor::predict(std::span<const Span> spans,
                              const Change& change,
                              Parameter parameter) const {
  return predict_groups(std::span(&spans, 1), change, parameter).groups.front();
}

Predictions Predictor::predict_all(std::span<const std::vector<Span>> groups,
                                   const Change& change,
                                   Parameter parameter) const {
  return predict_groups(
      std::vector<std::span<const Span>>(groups.begin(), groups.end()), change, parameter);
}

Predictions Predictor::predict_groups(std::span<const std::span<const Span>> groups,
                                      const Change& change,
                                      Parameter parameter) const {
  const Lengths before = lengths_of(untraced_, untraced_times_, groups);
  const Lengths expected = changed_lengths(untraced_, groups, change, parameter.expected);
  const Lengths low = changed_lengths(untraced_, groups, change, parameter.low);
  const Lengths high = changed_lengths(untraced_, groups, change, parameter.high);

  Predictions predictions;
  const Comparison run = compare_runs();
  predictions.run_recorded_ns = run.recorded_ns;
  predictions.run =
      prediction_of({before.run_ns, expected.run_ns, low.run_ns, high.run_ns}, run.error());
  const ReplayedClock clock(untraced_, recorded_times_);
  for (std::size_t index = 0; index < groups.size(); ++index) {
    const Outcomes outcomes = {before.groups_ns[index],
                               expected.groups_ns[index],
                               low.groups_ns[index],
                               high.groups_ns[index]};
    const double error = compare(clock, groups[index]).error();
    predictions.groups.push_back(prediction_of(outcomes, error));
  }
  return predictions;
}

Comparison Predictor::compare_runs() const {
  std::vector<std::int64_t> recorded_ends_ns;
  recorded_ends_ns.reserve(untraced_.size());
  for (const Operation& operation : untraced_.operations)
    recorded_ends_ns.push_back(operation.end_ns);
  Comparison run;
  run.recorded_ns = run_length_ns(untraced_, recorded_ends_ns);
  run.replayed_ns = run_length_ns(untraced_, recorded_times_.end_ns);
  return run;
}

}  // namespace rangescope::analyze::replay
