#include "analyze/replay/inside.hpp"

#include <cmath>

#include "analyze/replay/changes.hpp"

namespace rangescope::analyze::replay {

CoveredTime::CoveredTime(std::span<const Span> spans) {
  for (const Span& span : spans) {
    if (span.thread >= stretches_.size())
      stretches_.resize(span.thread + 1);
    stretches_[span.thread].add(span.start_ns, span.end_ns);
  }
  for (Stretches& stretches : stretches_)
    stretches.finish();
}

std::int64_t CoveredTime::covered_ns(Id thread, std::int64_t start_ns, std::int64_t end_ns) const {
  return thread < stretches_.size() ? stretches_[thread].within(start_ns, end_ns) : 0;
}

bool CoveredTime::covers(Id thread, std::int64_t moment_ns) const {
  return thread < stretches_.size() && stretches_[thread].holds(moment_ns);
}

namespace {

/// How much of an operation of a thread lies inside: 0 to 1.
double share_inside(const CoveredTime& covered, Id thread, const Operation& operation) {
  const std::int64_t length_ns = operation.end_ns - operation.start_ns;
  if (length_ns <= 0)
    return covered.covers(thread, operation.start_ns) ? 1 : 0;
  const std::int64_t inside_ns = covered.covered_ns(thread, operation.start_ns, operation.end_ns);
  return static_cast<double>(inside_ns) / static_cast<double>(length_ns);
}

bool launched_inside(const Graph& graph, const CoveredTime& covered, Id work) {
  const Id call = launch_of(graph, work);
  if (call == model::kNone)
    return false;
  const Operation& launch = graph.operations[call];
  const Id thread = graph.lanes[launch.lane].thread;
  return thread != model::kNone && covered.covers(thread, launch.start_ns);
}

}  // namespace

Graph scaled_inside(const Graph& graph, std::span<const Span> spans, double factor) {
  const CoveredTime covered(spans);
  Graph changed = graph;
  std::vector<Id> removed;
  for (Id id = 0; id < graph.size(); ++id) {
    const Operation& operation = graph.operations[id];
    const Id thread = graph.lanes[operation.lane].thread;
    double share = 0;
    if (is_gpu_work(operation.kind)) {
      share = launched_inside(graph, covered, id) ? 1 : 0;
    } else if (thread != model::kNone) {
      share = share_inside(covered, thread, operation);
    }
    if (share <= 0)
      continue;
    const double left = 1 - share * (1 - factor);
    std::int64_t& duration_ns = changed.operations[id].duration_ns;
    duration_ns = std::llround(static_cast<double>(duration_ns) * left);
    const bool can_go = is_gpu_work(operation.kind) || operation.kind == Kind::kWait;
    if (factor <= 0 && can_go && share > 0.5)
      removed.push_back(id);
  }
  return removed.empty() ? changed : without(changed, removed);
}

}  // namespace rangescope::analyze::replay
