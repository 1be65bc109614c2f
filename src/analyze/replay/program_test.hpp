// Programs for tests, as a machine would run them: what a session of them holds, and what comes of
// a fix that is written out. Times are those of an H100, in round numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/replay/replay.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze::replay::testing {

inline constexpr std::int64_t kCall_ns = 4'000;    ///< a call that launches
inline constexpr std::int64_t kLaunch_ns = 2'000;  ///< from its end to the work
inline constexpr std::int64_t kOrder_ns = 1'000;   ///< between queued works
inline constexpr std::int64_t kReturn_ns = 5'000;  ///< from the end of work to the return of a wait
inline constexpr std::int64_t kWait_ns = 3'000;    ///< a wait for nothing
inline constexpr std::int64_t kEventCall_ns = 1'000;

/// One thread and some streams.
class Program {
 public:
  /// `queue`: launches that a stream holds; a call waits for room.
  explicit Program(std::uint32_t streams = 1, std::size_t queue = 1'000'000)
      : queue_(queue), free_ns_(streams), ends_(streams) {
    process_ = builder_.process(1);
    thread_ = builder_.thread(process_, 1);
    const Id device = builder_.device(process_, 0);
    for (Id stream = 0; stream < streams; ++stream)
      builder_.stream(process_, device, 7 + stream);
  }

  void compute(std::int64_t ns) { now_ns_ += ns; }

  Id kernel(std::string_view name, std::int64_t ns, Id stream = 0) {
    const Id launch = call(model::LaunchKind::kKernel, stream);
    const std::int64_t start_ns = run(ns, stream);
    return builder_.kernel(launch, name, start_ns, start_ns + ns, stream);
  }

  /// From pinned memory; returns at once.
  void copy(std::int64_t ns, std::uint64_t bytes, Id stream = 0) {
    const Id launch = call(model::LaunchKind::kCopy, stream);
    const std::int64_t start_ns = run(ns, stream);
    builder_.copy(launch, start_ns, start_ns + ns, bytes, model::CopyKind::kHostToDevice, stream);
  }

  /// From pageable memory; returns when it is done.
  void blocking_copy(std::int64_t ns, std::uint64_t bytes) {
    const std::int64_t called_ns = now_ns_;
    now_ns_ += kCall_ns;
    const std::int64_t start_ns = std::max(now_ns_, free_ns_[0] + kOrder_ns);
    free_ns_[0] = start_ns + ns;
    now_ns_ = free_ns_[0];
    const Id launch = builder_.launch(thread_, called_ns, now_ns_, model::LaunchKind::kCopy);
    builder_.copy(launch, start_ns, start_ns + ns, bytes, model::CopyKind::kHostToDevice);
  }

  /// Until all streams are idle.
  void wait() {
    const std::int64_t called_ns = now_ns_;
    now_ns_ = std::max(now_ns_ + kWait_ns, std::ranges::max(free_ns_) + kReturn_ns);
    builder_.launch(thread_, called_ns, now_ns_, model::LaunchKind::kSynchronize);
  }

  /// Work of stream `to` waits for what stream `from` has to do now.
  void wait_event(Id from, Id to) { free_ns_[to] = std::max(free_ns_[to], free_ns_[from]); }

  /// The same by calls: stream `from` records an event, and stream `to` waits for it.
  void join(Id from, Id to) {
    record(from);
    event_call(model::EventOperation::kStreamWait, to);
    wait_event(from, to);
  }

  /// Stream `from` records an event, for which synchronize() waits.
  void record(Id from) {
    event_call(model::EventOperation::kRecord, from);
    event_ns_ = free_ns_[from];
  }
  void synchronize() {
    const std::int64_t called_ns = now_ns_;
    now_ns_ = std::max(now_ns_ + kWait_ns, event_ns_ + kReturn_ns);
    const Id launch = builder_.launch(thread_, called_ns, now_ns_, model::LaunchKind::kSynchronize);
    builder_.session.event_calls.push_back(
        {kEvent, launch, model::kNone, model::EventOperation::kSynchronize});
  }

  void set_kind(Id stream, model::StreamKind kind) { builder_.session.streams[stream].kind = kind; }

  void begin(std::string_view name) { open_.push_back({std::string(name), now_ns_}); }
  void end() {
    builder_.range(thread_, open_.back().first, open_.back().second, now_ns_);
    spans_.push_back({open_.back().first, {thread_, open_.back().second, now_ns_}});
    open_.pop_back();
  }

  [[nodiscard]] const model::Session& session() const { return builder_.session; }
  [[nodiscard]] std::vector<Span> spans(std::string_view name) const {
    std::vector<Span> named;
    for (const auto& [span_name, span] : spans_) {
      if (span_name == name)
        named.push_back(span);
    }
    return named;
  }
  [[nodiscard]] std::int64_t length(std::string_view name) const {
    std::int64_t ns = 0;
    for (const Span& span : spans(name))
      ns += span.end_ns - span.start_ns;
    return ns;
  }

 private:
  Id call(model::LaunchKind kind, Id stream) {
    const std::int64_t called_ns = now_ns_;
    now_ns_ += kCall_ns;
    const std::vector<std::int64_t>& ends = ends_[stream];
    if (ends.size() >= queue_)
      now_ns_ = std::max(now_ns_, ends[ends.size() - queue_]);
    return builder_.launch(thread_, called_ns, now_ns_, kind);
  }
  void event_call(model::EventOperation operation, Id stream) {
    const std::int64_t called_ns = now_ns_;
    now_ns_ += kEventCall_ns;
    const Id launch = builder_.launch(thread_, called_ns, now_ns_, model::LaunchKind::kOther);
    builder_.session.event_calls.push_back({kEvent, launch, stream, operation});
  }
  std::int64_t run(std::int64_t ns, Id stream) {
    const std::int64_t start_ns = std::max(now_ns_ + kLaunch_ns, free_ns_[stream] + kOrder_ns);
    free_ns_[stream] = start_ns + ns;
    ends_[stream].push_back(free_ns_[stream]);
    return start_ns;
  }

  analyze::testing::SessionBuilder builder_;
  Id process_ = 0, thread_ = 0;
  static constexpr std::uint64_t kEvent = 42;
  std::int64_t now_ns_ = 1'000'000;
  std::int64_t event_ns_ = 0;  ///< when the event is reached
  std::size_t queue_;
  std::vector<std::int64_t> free_ns_;            ///< by stream
  std::vector<std::vector<std::int64_t>> ends_;  ///< of all work, by stream
  std::vector<std::pair<std::string, std::int64_t>> open_;
  std::vector<std::pair<std::string, Span>> spans_;
};

/// The operations of a kind, in order.
[[nodiscard]] inline std::vector<Id> operations_of(const Graph& graph, Kind kind) {
  std::vector<Id> found;
  for (Id id = 0; id < graph.size(); ++id) {
    if (graph.operations[id].kind == kind)
      found.push_back(id);
  }
  return found;
}

/// The replayed length of all spans of that name.
[[nodiscard]] inline std::int64_t replayed(const Graph& graph,
                                           const Program& program,
                                           std::string_view name) {
  const Times times = replay(graph);
  return static_cast<std::int64_t>(
      compare(ReplayedClock(graph, times), program.spans(name)).replayed_ns);
}

}  // namespace rangescope::analyze::replay::testing
