#include "analyze/replay/replay.hpp"

#include <algorithm>
#include <cmath>

namespace rangescope::analyze::replay {
namespace {

/// From [from_start, from_end] to the same share of [to_start, to_end].
std::int64_t interpolate(std::int64_t at,
                         std::int64_t from_start,
                         std::int64_t from_end,
                         std::int64_t to_start,
                         std::int64_t to_end) {
  const std::int64_t length = from_end - from_start;
  if (length <= 0)
    return to_start;
  const double share = static_cast<double>(at - from_start) / static_cast<double>(length);
  return to_start + std::llround(share * static_cast<double>(to_end - to_start));
}

}  // namespace

Times replay(const Graph& graph) {
  Times times;
  times.start_ns.resize(graph.size());
  times.end_ns.resize(graph.size());
  for (Id id = 0; id < graph.size(); ++id) {
    const Operation& operation = graph.operations[id];
    std::int64_t start_ns = graph.operations.front().start_ns;
    std::int64_t held_until_ns = start_ns;
    for (const Dependency& dependency : graph.dependencies_of(id)) {
      const std::int64_t free_ns = times.end_ns[dependency.on] + dependency.lag_ns;
      std::int64_t& bound_ns = holds_end(dependency.reason) ? held_until_ns : start_ns;
      bound_ns = std::max(bound_ns, free_ns);
    }
    times.start_ns[id] = start_ns;
    times.end_ns[id] = std::max(start_ns + operation.duration_ns, held_until_ns);
  }
  return times;
}

std::int64_t ReplayedClock::moment(Id thread, std::int64_t recorded_ns) const {
  const Id lane = lanes_.lane_of_thread(thread);
  if (lane == model::kNone)
    return recorded_ns;
  const std::span<const Id> operations = lanes_.operations_of(lane);
  const auto start_of = [&](Id id) { return graph_.operations[id].start_ns; };
  const auto next = std::ranges::upper_bound(operations, recorded_ns, {}, start_of);
  if (next == operations.begin()) {
    const Id first = operations.front();
    return times_.start_ns[first] - (start_of(first) - recorded_ns);
  }
  const Id id = *(next - 1);
  const Operation& operation = graph_.operations[id];
  if (recorded_ns <= operation.end_ns) {
    return interpolate(
        recorded_ns, operation.start_ns, operation.end_ns, times_.start_ns[id], times_.end_ns[id]);
  }
  if (next == operations.end())
    return times_.end_ns[id] + (recorded_ns - operation.end_ns);
  return interpolate(
      recorded_ns, operation.end_ns, start_of(*next), times_.end_ns[id], times_.start_ns[*next]);
}

std::int64_t ReplayedClock::length(const Span& span) const {
  return moment(span.thread, span.end_ns) - moment(span.thread, span.start_ns);
}

double Comparison::error() const {
  if (recorded_ns <= 0)
    return 0;
  return std::abs(replayed_ns - recorded_ns) / recorded_ns;
}

Comparison compare(const ReplayedClock& clock, std::span<const Span> spans) {
  Comparison sums;
  for (const Span& span : spans) {
    sums.recorded_ns += static_cast<double>(span.end_ns - span.start_ns);
    sums.replayed_ns += static_cast<double>(clock.length(span));
  }
  return sums;
}

}  // namespace rangescope::analyze::replay
