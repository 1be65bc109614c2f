#include "analyze/replay/stream_joins.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rangescope::analyze::replay {
namespace {

/// A work, and one of another stream that comes before it.
using Pair = std::pair<Id, Id>;

/// A work, and when it was put into its stream.
struct Enqueued {
  std::int64_t at_ns = 0;
  Id work = 0;
};

std::vector<Enqueued> enqueued_works(const Timeline& timeline) {
  std::vector<Enqueued> enqueued;
  enqueued.reserve(timeline.works.size());
  for (Id index = 0; index < timeline.works.size(); ++index) {
    const Work& work = timeline.works[index];
    const bool has_call = work.call != model::kNone;
    const std::int64_t at_ns = has_call ? timeline.calls[work.call].start_ns : work.start_ns;
    enqueued.push_back({at_ns, index});
  }
  std::ranges::stable_sort(enqueued, {}, &Enqueued::at_ns);
  return enqueued;
}

// ---- Events

class EventJoins {
 public:
  EventJoins(const model::Session& session,
             const Timeline& timeline,
             const std::vector<Enqueued>& enqueued)
      : session_(session), timeline_(timeline) {
    works_of_stream_.resize(session.streams.size());
    pending_.resize(session.streams.size());
    for (const Enqueued& entry : enqueued) {
      works_of_stream_[timeline.works[entry.work].stream].push_back(entry);
    }
  }

  void run(std::vector<Pair>& pairs, std::unordered_map<Id, std::vector<Id>>& awaited) {
    for (const model::EventCall* call : calls_by_time()) {
      const model::Launch& launch = session_.launches[call->launch];
      const Event event{session_.threads[launch.thread].process, call->event};
      switch (call->operation) {
        case model::EventOperation::kRecord:
          if (call->stream != model::kNone)
            reached_[event] = reached(call->stream, launch);
          break;
        case model::EventOperation::kStreamWait: stream_waits(*call, launch, event, pairs); break;
        case model::EventOperation::kSynchronize:
          if (const auto found = reached_.find(event); found != reached_.end())
            awaited[call->launch] = found->second;
          break;
      }
    }
  }

 private:
  using Event = std::pair<Id, std::uint64_t>;  ///< process, handle

  /// A stream waits for `work` before its work number `position`.
  struct Pending {
    std::size_t position = 0;
    Id work = 0;
  };

  [[nodiscard]] std::vector<const model::EventCall*> calls_by_time() const {
    std::vector<const model::EventCall*> calls;
    for (const model::EventCall& call : session_.event_calls) {
      if (call.launch != model::kNone)
        calls.push_back(&call);
    }
    std::ranges::stable_sort(calls, {}, [this](const model::EventCall* call) {
      return session_.launches[call->launch].start_ns;
    });
    return calls;
  }

  /// How many works the stream had been given when the call began.
  [[nodiscard]] std::size_t position(Id stream, const model::Launch& launch) const {
    const std::vector<Enqueued>& works = works_of_stream_[stream];
    const auto next = std::ranges::upper_bound(works, launch.start_ns, {}, &Enqueued::at_ns);
    return static_cast<std::size_t>(next - works.begin());
  }

  /// Of the nodes of a CUDA graph the one that ended last.
  [[nodiscard]] Id last_ended(Id work) const {
    const Id call = timeline_.works[work].call;
    if (call == model::kNone)
      return work;
    const Id last_work = timeline_.calls[call].last_work;
    const bool is_in_stream = timeline_.works[last_work].stream == timeline_.works[work].stream;
    return is_in_stream ? last_work : work;
  }

  /// What the stream has to do until it reaches an event that is recorded now: its last work, and
  /// what it waits for since.
  [[nodiscard]] std::vector<Id> reached(Id stream, const model::Launch& launch) const {
    const std::size_t next = position(stream, launch);
    std::vector<Id> works;
    if (next > 0)
      works.push_back(last_ended(works_of_stream_[stream][next - 1].work));
    for (const Pending& pending : pending_[stream]) {
      if (pending.position == next)
        works.push_back(pending.work);
    }
    return works;
  }

  void stream_waits(const model::EventCall& call,
                    const model::Launch& launch,
                    const Event& event,
                    std::vector<Pair>& pairs) {
    const auto found = reached_.find(event);
    if (found == reached_.end() || call.stream == model::kNone)
      return;
    const std::size_t next = position(call.stream, launch);
    std::vector<Pending>& pending = pending_[call.stream];
    std::erase_if(pending, [&](const Pending& entry) { return entry.position != next; });
    const std::vector<Enqueued>& works = works_of_stream_[call.stream];
    for (const Id work : found->second) {
      const bool is_own = timeline_.works[work].stream == call.stream;
      const bool is_known = std::ranges::find(pending, work, &Pending::work) != pending.end();
      if (is_own || is_known)
        continue;
      pending.push_back({next, work});
      if (next < works.size())
        pairs.emplace_back(works[next].work, work);
    }
  }

  const model::Session& session_;
  const Timeline& timeline_;
  std::vector<std::vector<Enqueued>> works_of_stream_;
  std::vector<std::vector<Pending>> pending_;  ///< by stream
  std::map<Event, std::vector<Id>> reached_;
};

// ---- The legacy default stream

class LegacyJoins {
 public:
  LegacyJoins(const model::Session& session, const Timeline& timeline)
      : session_(session), timeline_(timeline), streams_(session.streams.size()) {}

  void run(const std::vector<Enqueued>& enqueued, std::vector<Pair>& pairs) {
    for (const Enqueued& entry : enqueued) {
      const Id stream = timeline_.works[entry.work].stream;
      const model::Stream& properties = session_.streams[stream];
      Context& context = contexts_[{properties.process, properties.context}];
      if (properties.kind == model::StreamKind::kLegacyDefault) {
        for (const Id other : context.busy) {
          pairs.emplace_back(entry.work, streams_[other].latest);
          streams_[other].is_busy = false;
        }
        context.busy.clear();
        context.latest_legacy = entry.work;
      } else if (properties.kind == model::StreamKind::kBlocking) {
        add_blocking(stream, entry.work, context, pairs);
      }
    }
  }

 private:
  struct Context {
    Id latest_legacy = model::kNone;
    std::vector<Id> busy;  ///< blocking streams that were given work since
  };
  struct StreamState {
    Id latest = model::kNone;
    Id follows_legacy = model::kNone;  ///< the legacy stream's work that its own come after
    bool is_busy = false;
  };

  void add_blocking(Id stream, Id work, Context& context, std::vector<Pair>& pairs) {
    StreamState& state = streams_[stream];
    if (context.latest_legacy != state.follows_legacy) {
      pairs.emplace_back(work, context.latest_legacy);
      state.follows_legacy = context.latest_legacy;
    }
    if (!state.is_busy)
      context.busy.push_back(stream);
    state.is_busy = true;
    state.latest = work;
  }

  const model::Session& session_;
  const Timeline& timeline_;
  std::vector<StreamState> streams_;
  std::map<std::pair<Id, Id>, Context> contexts_;  ///< by process and CUPTI's context
};

bool has_blocking_streams(const model::Session& session) {
  return std::ranges::find(session.streams, model::StreamKind::kBlocking, &model::Stream::kind) !=
         session.streams.end();
}

}  // namespace

StreamJoins::StreamJoins(const model::Session& session, const Timeline& timeline)
    : first_(timeline.works.size() + 1) {
  const bool has_legacy_order = has_blocking_streams(session);
  if (session.event_calls.empty() && !has_legacy_order)
    return;
  const std::vector<Enqueued> enqueued = enqueued_works(timeline);
  std::vector<Pair> pairs;
  EventJoins(session, timeline, enqueued).run(pairs, awaited_);
  if (has_legacy_order)
    LegacyJoins(session, timeline).run(enqueued, pairs);

  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  before_.reserve(pairs.size());
  for (const auto& [work, comes_before] : pairs) {
    ++first_[work + 1];
    before_.push_back(comes_before);
  }
  for (std::size_t work = 0; work + 1 < first_.size(); ++work)
    first_[work + 1] += first_[work];
}

std::span<const Id> StreamJoins::before(Id work) const {
  return std::span(before_).subspan(first_[work], first_[work + 1] - first_[work]);
}

const std::vector<Id>* StreamJoins::awaited_by(Id launch) const {
  const auto found = awaited_.find(launch);
  return found != awaited_.end() ? &found->second : nullptr;
}

}  // namespace rangescope::analyze::replay
