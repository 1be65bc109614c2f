#include "analyze/memory/asked_points.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace rangescope::analyze {
namespace {

using model::kNone;
using model::kOpen;
using model::Session;

struct Moment {
  std::uint32_t thread = kNone;
  std::int64_t at_ns = 0;
};

bool puts_work_on_gpu(model::LaunchKind kind) {
  using enum model::LaunchKind;
  return kind == kKernel || kind == kCopy || kind == kMemset || kind == kGraph;
}

/// The calls of each process by their ends, and when ranges of the program change on each thread.
class NextCalls {
 public:
  explicit NextCalls(const Session& session)
      : session_(session), calls_(session.processes.size()), changes_ns_(session.threads.size()) {
    for (std::uint32_t i = 0; i < session.launches.size(); ++i) {
      const model::Launch& call = session.launches[i];
      if (!puts_work_on_gpu(call.kind) || call.thread >= session.threads.size())
        continue;
      const std::int64_t end_ns = call.end_ns == kOpen ? call.start_ns : call.end_ns;
      calls_[session.threads[call.thread].process].emplace_back(end_ns, i);
    }
    for (auto& calls : calls_)
      std::ranges::sort(calls);
    for (const model::Range& range : session.ranges) {
      if (range.module || range.thread >= changes_ns_.size())
        continue;
      changes_ns_[range.thread].push_back(range.start_ns);
      if (range.end_ns != kOpen)
        changes_ns_[range.thread].push_back(range.end_ns);
    }
    for (auto& changes : changes_ns_)
      std::ranges::sort(changes);
  }

  /// Nothing where no call follows.
  [[nodiscard]] std::optional<Moment> after(std::uint32_t process, std::int64_t at_ns) const {
    if (process >= calls_.size())
      return std::nullopt;
    const auto& calls = calls_[process];
    const auto next = std::ranges::upper_bound(calls, at_ns, {}, &Call::first);
    if (next == calls.end())
      return std::nullopt;
    const model::Launch& call = session_.launches[next->second];
    const std::int64_t launched_ns = std::max(at_ns, call.start_ns);
    const bool is_in_one_range = !has_change(call.thread, at_ns, launched_ns);
    return Moment{call.thread, is_in_one_range ? launched_ns : at_ns};
  }

 private:
  using Call = std::pair<std::int64_t, std::uint32_t>;  ///< its end and its index

  [[nodiscard]] bool has_change(std::uint32_t thread,
                                std::int64_t from_ns,
                                std::int64_t to_ns) const {
    const auto& changes_ns = changes_ns_[thread];
    const auto next = std::ranges::upper_bound(changes_ns, from_ns);
    return next != changes_ns.end() && *next <= to_ns;
  }

  const Session& session_;
  std::vector<std::vector<Call>> calls_;               ///< by process
  std::vector<std::vector<std::int64_t>> changes_ns_;  ///< by thread
};

}  // namespace

AskedPoints asked_points(const Session& session) {
  const model::Allocators& allocators = session.allocators;
  std::optional<NextCalls> next_calls;  // made where a thread is unknown
  AskedPoints points;
  const auto add = [&](std::uint32_t thread, std::uint32_t allocator, std::int64_t at_ns) {
    std::optional<Moment> moment = Moment{thread, at_ns};
    if (thread >= session.threads.size()) {
      if (!next_calls)
        next_calls.emplace(session);
      moment = next_calls->after(allocators.allocators[allocator].process, at_ns);
    }
    if (!moment)
      return kNone;
    model::Launch& call = points.calls.emplace_back();
    call.start_ns = call.end_ns = moment->at_ns;
    call.thread = moment->thread;
    return static_cast<std::uint32_t>(points.calls.size() - 1);
  };
  for (const model::Allocation& allocation : allocators.allocations) {
    const std::uint32_t point =
        allocation.older ? kNone
                         : add(allocation.thread, allocation.allocator, allocation.start_ns);
    points.of_allocation.push_back(point);
  }
  for (const model::FailedAllocation& failure : allocators.failures)
    points.of_failure.push_back(add(failure.thread, failure.allocator, failure.at_ns));
  return points;
}

}  // namespace rangescope::analyze
