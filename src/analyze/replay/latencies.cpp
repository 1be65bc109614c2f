#include "analyze/replay/latencies.hpp"

#include <algorithm>
#include <array>

namespace rangescope::analyze::replay {
namespace {

/// Where nothing was recorded that tells: an H100's, which other cards are near.
constexpr std::int64_t kUsualLaunch_ns = 2'000;
constexpr std::int64_t kUsualOrder_ns = 1'000;
constexpr std::int64_t kUsualCall_ns = 4'000;
constexpr std::int64_t kUsualDispatch_ns = 5'000;
/// Work whose call returned so long before the work ahead of it ended was queued behind that.
constexpr std::int64_t kQueued_ns = 5'000;
/// Of work in an idle stream some waited for an event of another one: the quick ones tell what a
/// launch takes.
constexpr double kQuickLaunches = 0.25;
/// No launch takes longer: what began later waited for something that was not recorded.
constexpr std::int64_t kLongestLaunch_ns = 100'000;
/// A call that takes longer loads a module, or waits for room in a full queue.
constexpr std::int64_t kLongCall_ns = 20'000;

using Samples = std::array<std::vector<std::int64_t>, kKinds>;

struct Lags {
  Samples launch, order;
};

Lags lags_of(const Timeline& timeline, const StreamOrder& order) {
  Lags lags;
  for (Id index = 0; index < timeline.works.size(); ++index) {
    const Work& work = timeline.works[index];
    if (work.call == model::kNone)
      continue;
    const Call& call = timeline.calls[work.call];
    const auto kind = static_cast<std::size_t>(work.kind);
    const std::int64_t end_before_ns = order.end_before(index);
    const bool is_first = index == call.first_work;
    if (end_before_ns <= call.end_ns && is_first && !call.blocks) {
      const std::int64_t lag_ns = std::max<std::int64_t>(0, work.start_ns - call.end_ns);
      if (lag_ns <= kLongestLaunch_ns)
        lags.launch[kind].push_back(lag_ns);
    }
    if (end_before_ns >= call.end_ns + kQueued_ns && !work.in_graph) {
      lags.order[kind].push_back(std::max<std::int64_t>(0, work.start_ns - end_before_ns));
    }
  }
  return lags;
}

void fill(const Samples& samples,
          double share,
          std::int64_t otherwise,
          std::int64_t (&lags)[kKinds]) {
  const auto kernel = static_cast<std::size_t>(Kind::kKernel);
  const std::int64_t of_kernels = quantile_of(samples[kernel], share, otherwise);
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    lags[kind] = quantile_of(samples[kind], share, of_kernels);
}

void add_calls(const Timeline& timeline, Latencies& latencies) {
  std::vector<std::int64_t> calls, dispatches;
  const Call* previous = nullptr;
  for (const Call& call : timeline.calls) {
    const bool launches = call.launched() && !call.blocks;
    if (!launches) {
      previous = nullptr;
      continue;
    }
    const std::int64_t call_ns = call.end_ns - call.start_ns;
    if (call_ns <= kLongCall_ns)
      calls.push_back(call_ns);
    if (previous != nullptr && previous->thread == call.thread) {
      dispatches.push_back(call.start_ns - previous->end_ns);
    }
    previous = &call;
  }
  latencies.call_ns = median_of(std::move(calls), kUsualCall_ns);
  latencies.dispatch_ns = median_of(std::move(dispatches), kUsualDispatch_ns);
}

}  // namespace

std::int64_t quantile_of(std::vector<std::int64_t> values, double share, std::int64_t otherwise) {
  if (values.empty())
    return otherwise;
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  const auto value = values.begin() + rank;
  std::ranges::nth_element(values, value);
  return *value;
}

Latencies latencies_of(const Timeline& timeline, const StreamOrder& order) {
  const Lags lags = lags_of(timeline, order);
  Latencies latencies;
  fill(lags.launch, kQuickLaunches, kUsualLaunch_ns, latencies.launch_ns);
  fill(lags.order, 0.5, kUsualOrder_ns, latencies.order_ns);
  add_calls(timeline, latencies);
  return latencies;
}

}  // namespace rangescope::analyze::replay
