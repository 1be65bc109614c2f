#include "analyze/replay/queues.hpp"

#include <algorithm>
#include <cmath>

#include "analyze/statistics/spread.hpp"

namespace rangescope::analyze::replay {
namespace {

/// A call that waited for room takes at least this long, and this many times the usual.
constexpr std::int64_t kQueuedCall_ns = 20'000;
constexpr std::int64_t kQueuedCallTimes = 5;
/// Fewer launches under way are no full queue; the smallest that is known has 1,024.
constexpr std::uint32_t kLeastDepth = 500;
/// Calls that have to agree.
constexpr std::size_t kLeastCallsUnderWay = 8;
/// They agree within this share of the depth.
constexpr double kAgree = 0.05;

/// A call that launched work, which is the `position`th of its stream.
struct Launching {
  Id call = 0;
  std::uint32_t position = 0;
  std::uint32_t under_way =
      0;  ///< launches of the stream that had not ended when the call returned
  bool is_long = false;
};

class StreamQueue {
 public:
  StreamQueue(const Timeline& timeline, const std::vector<Id>& works, std::int64_t call_ns)
      : timeline_(timeline), works_(works) {
    std::vector<std::int64_t> ends;
    for (const Id work : works)
      ends.push_back(timeline.works[work].end_ns);
    std::ranges::sort(ends);
    const std::int64_t long_ns = std::max(kQueuedCall_ns, kQueuedCallTimes * call_ns);
    for (std::uint32_t position = 0; position < works.size(); ++position) {
      const Id index = timeline.works[works[position]].call;
      if (index == model::kNone)
        continue;
      const Call& call = timeline.calls[index];
      if (call.blocks || call.first_work != works[position])
        continue;
      const auto ended =
          static_cast<std::uint32_t>(std::ranges::upper_bound(ends, call.end_ns) - ends.begin());
      Launching launching{index, position, 0, call.end_ns - call.start_ns >= long_ns};
      if (position + 1 > ended)
        launching.under_way = position + 1 - ended;
      launching_.push_back(launching);
    }
  }

  /// What most of the calls that waited found under way.
  [[nodiscard]] std::uint32_t depth() const {
    std::vector<std::uint32_t> under_way;
    for (const Launching& launching : launching_) {
      const bool waited = launching.is_long && launching.under_way >= kLeastDepth;
      if (waited)
        under_way.push_back(launching.under_way);
    }
    if (under_way.size() < kLeastCallsUnderWay)
      return Queues::kNeverFull;
    const std::uint32_t depth = upper_median(under_way);
    const auto agrees = [&](std::uint32_t count) { return is_near(count, depth); };
    const auto agreeing = static_cast<std::size_t>(std::ranges::count_if(under_way, agrees));
    if (2 * agreeing <= under_way.size())
      return Queues::kNeverFull;
    return depth;
  }

  void add_waits(std::uint32_t depth, Queues& queues) const {
    for (const Launching& launching : launching_) {
      if (launching.position < depth)
        continue;
      const Id awaited = works_[launching.position - depth];
      queues.awaited[launching.call] = awaited;
      const bool waited = launching.is_long || ends_within(awaited, launching.call);
      queues.found_full[launching.call] = waited && is_near(launching.under_way, depth);
    }
  }

 private:
  /// A short wait for room is no long call.
  [[nodiscard]] bool ends_within(Id work, Id call) const {
    const std::int64_t end_ns = timeline_.works[work].end_ns;
    return end_ns > timeline_.calls[call].start_ns && end_ns <= timeline_.calls[call].end_ns;
  }
  static bool is_near(std::uint32_t count, std::uint32_t depth) {
    const double difference = static_cast<double>(count) - static_cast<double>(depth);
    return std::abs(difference) <= kAgree * static_cast<double>(depth);
  }

  const Timeline& timeline_;
  const std::vector<Id>& works_;
  std::vector<Launching> launching_;
};

}  // namespace

Queues queues_of(const Timeline& timeline, std::size_t streams, std::int64_t call_ns) {
  Queues queues;
  queues.depth.assign(streams, Queues::kNeverFull);
  queues.awaited.assign(timeline.calls.size(), model::kNone);
  queues.found_full.assign(timeline.calls.size(), false);
  std::vector<std::vector<Id>> works(streams);
  for (Id work = 0; work < timeline.works.size(); ++work) {
    works[timeline.works[work].stream].push_back(work);
  }
  for (std::size_t stream = 0; stream < streams; ++stream) {
    if (works[stream].size() <= kLeastDepth)
      continue;
    const StreamQueue queue(timeline, works[stream], call_ns);
    queues.depth[stream] = queue.depth();
    if (queues.depth[stream] != Queues::kNeverFull)
      queue.add_waits(queues.depth[stream], queues);
  }
  return queues;
}

}  // namespace rangescope::analyze::replay
