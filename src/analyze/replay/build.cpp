#include "analyze/replay/build.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "analyze/replay/hand_overs.hpp"
#include "analyze/replay/latencies.hpp"
#include "analyze/replay/queues.hpp"
#include "analyze/replay/stream_joins.hpp"
#include "analyze/replay/stream_order.hpp"
#include "analyze/replay/timeline.hpp"

namespace rangescope::analyze::replay {
namespace {

/// Work that begins so much later than its call and its stream explain waited for something else.
constexpr std::int64_t kUnexplained_ns = 5'000;
/// Times of two streams, or of a stream and a call, differ by so much at most.
constexpr std::int64_t kClockError_ns = 1'000;
/// A wait that returned so long before a work ended did not wait for it.
constexpr std::int64_t kNotAwaited_ns = 20'000;
/// Works of a stream that are looked at for the one that something waited for.
constexpr std::size_t kLookBack = 64;

/// What a waiting call waits for.
struct Awaited {
  bool all_streams = false;  ///< of its process
  Id stream = model::kNone;  ///< else of this one
};

/// Works of several ranks that are one call.
struct Collective {
  std::vector<Id> works;                    ///< indexes into Timeline::works
  std::int64_t latest_start_ns = 0;         ///< when the last rank arrived
  std::int64_t transfer_ns = model::kOpen;  ///< the last to arrive waits for no other
};

class GraphBuilder {
 public:
  GraphBuilder(const model::Session& session, std::span<const CollectiveKernels> collectives)
      : session_(session),
        timeline_(timeline_of(session)),
        order_(timeline_.works),
        joins_(session, timeline_),
        hand_overs_(hand_overs_of(session, timeline_)) {
    graph_.latencies = latencies_of(timeline_, order_);
    queues_ = queues_of(timeline_, session.streams.size(), graph_.latencies.call_ns);
    find_collectives(collectives);
  }

  Graph build() {
    add_operation(Kind::kBegin, timeline_.begin_ns, timeline_.begin_ns, add_lane({}));
    add_threads();
    add_works();
    sort_operations();
    connect();
    set_wait_latencies();
    return std::move(graph_);
  }

 private:
  Id add_lane(Lane lane) {
    graph_.lanes.push_back(lane);
    return static_cast<Id>(graph_.lanes.size() - 1);
  }

  /// `entry`: the call or the work in timeline_ that it is; the call that follows a stretch.
  void add_operation(
      Kind kind, std::int64_t start_ns, std::int64_t end_ns, Id lane, Id entry = model::kNone) {
    Operation operation;
    operation.kind = kind;
    operation.start_ns = start_ns;
    operation.end_ns = end_ns;
    operation.duration_ns = end_ns - start_ns;
    operation.lane = lane;
    graph_.operations.push_back(operation);
    entries_.push_back(entry);
  }

  // ---- Threads

  struct Extent {
    std::int64_t begin_ns = model::kOpen, end_ns = 0;
  };

  /// From the first range to the end of the last one of each thread.
  [[nodiscard]] std::vector<Extent> extents_of_ranges() const {
    std::vector<Extent> extents(session_.threads.size());
    for (const model::Range& range : session_.ranges) {
      Extent& extent = extents[range.thread];
      extent.begin_ns = std::min(extent.begin_ns, range.start_ns);
      extent.end_ns = std::max(extent.end_ns, range.start_ns);
      if (range.end_ns != model::kOpen)
        extent.end_ns = std::max(extent.end_ns, range.end_ns);
    }
    return extents;
  }

  void add_threads() {
    const std::vector<Extent> extents = extents_of_ranges();
    const auto& calls = timeline_.calls;
    for (Id first = 0; first < calls.size();) {
      const Id thread = calls[first].thread;
      Id last = first;
      while (last < calls.size() && calls[last].thread == thread)
        ++last;
      add_thread(thread, first, last, extents[thread]);
      first = last;
    }
  }

  void add_thread(Id thread, Id first_call, Id last_call, Extent extent) {
    Lane lane;
    lane.process = session_.threads[thread].process;
    lane.thread = thread;
    const Id lane_id = add_lane(lane);
    std::int64_t now_ns = std::min(extent.begin_ns, timeline_.calls[first_call].start_ns);
    for (Id index = first_call; index < last_call; ++index) {
      const Call& call = timeline_.calls[index];
      const Id handed_over = hand_overs_[index];
      if (handed_over != model::kNone)
        now_ns = timeline_.calls[handed_over].end_ns;
      add_operation(Kind::kStretch, now_ns, std::max(now_ns, call.start_ns), lane_id, index);
      add_call(call, index, lane_id);
      now_ns = call.end_ns;
    }
    add_operation(Kind::kStretch, now_ns, std::max(now_ns, extent.end_ns), lane_id);
  }

  void add_call(const Call& call, Id index, Id lane) {
    if (call.synchronizes) {
      add_operation(Kind::kWait, call.start_ns, call.end_ns, lane, index);
    } else if (call.blocks) {
      const std::int64_t work_ns = timeline_.works[call.first_work].start_ns;
      const std::int64_t submitted_ns = std::clamp(work_ns, call.start_ns, call.end_ns);
      add_operation(Kind::kCall, call.start_ns, submitted_ns, lane, index);
      // Until its stream was free it waited: that is the work's dependency, and no time of its own.
      const bool held = order_.end_before(call.first_work) > call.start_ns;
      Operation& operation = graph_.operations.back();
      if (held)
        operation.duration_ns = std::min(operation.duration_ns, graph_.latencies.call_ns);
      add_operation(Kind::kWait, submitted_ns, call.end_ns, lane, index);
      graph_.operations.back().duration_ns = 0;
    } else {
      add_operation(Kind::kCall, call.start_ns, call.end_ns, lane, index);
      std::int64_t& duration_ns = graph_.operations.back().duration_ns;
      if (queues_.found_full[index])
        duration_ns = std::min(duration_ns, graph_.latencies.call_ns);
    }
  }

  // ---- Streams

  /// Which works are of one collective.
  void find_collectives(std::span<const CollectiveKernels> collectives) {
    if (collectives.empty())
      return;
    std::vector<Id> work_of_kernel(session_.kernels.size(), model::kNone);
    for (Id index = 0; index < timeline_.works.size(); ++index) {
      const Work& work = timeline_.works[index];
      if (work.kind == Kind::kKernel)
        work_of_kernel[work.source] = index;
    }
    collective_of_work_.assign(timeline_.works.size(), model::kNone);
    for (const CollectiveKernels& kernels : collectives) {
      Collective collective;
      for (const Id kernel : kernels) {
        const Id index = work_of_kernel[kernel];
        if (index == model::kNone)
          continue;
        const Work& work = timeline_.works[index];
        collective.works.push_back(index);
        collective.latest_start_ns = std::max(collective.latest_start_ns, work.start_ns);
        collective.transfer_ns = std::min(collective.transfer_ns, work.end_ns - work.start_ns);
        collective_of_work_[index] = static_cast<Id>(collectives_.size());
      }
      collectives_.push_back(std::move(collective));
    }
  }

  [[nodiscard]] const Collective* collective_of(Id work) const {
    if (collective_of_work_.empty() || collective_of_work_[work] == model::kNone)
      return nullptr;
    return &collectives_[collective_of_work_[work]];
  }

  void add_works() {
    lane_of_stream_.assign(session_.streams.size(), model::kNone);
    for (Id index = 0; index < timeline_.works.size(); ++index) {
      const Work& work = timeline_.works[index];
      Id& lane = lane_of_stream_[work.stream];
      if (lane == model::kNone) {
        lane = add_lane({session_.streams[work.stream].process, model::kNone, work.stream});
      }
      const Collective* collective = collective_of(index);
      if (collective != nullptr)
        add_operation(Kind::kArrival, work.start_ns, work.start_ns, lane, index);
      add_operation(work.kind, work.start_ns, work.end_ns, lane, index);
      if (collective != nullptr)
        graph_.operations.back().duration_ns = collective->transfer_ns;
    }
  }

  // ---- Order

  /// A wait comes after what it waited for, so it stands at its end; work comes after its call, and
  /// that of a collective after the arrival of all ranks.
  [[nodiscard]] std::int64_t place_of(Id draft) const {
    const Operation& operation = graph_.operations[draft];
    if (operation.kind == Kind::kWait)
      return operation.end_ns;
    if (operation.kind == Kind::kCall && queues_.found_full[entries_[draft]])
      return operation.end_ns;
    if (operation.kind == Kind::kArrival)
      return place_of_work(entries_[draft]);
    if (!is_gpu_work(operation.kind))
      return operation.start_ns;
    const Collective* collective = collective_of(entries_[draft]);
    if (collective == nullptr)
      return place_of_work(entries_[draft]);
    std::int64_t latest_ns = 0;
    for (const Id work : collective->works)
      latest_ns = std::max(latest_ns, place_of_work(work));
    return latest_ns;
  }

  [[nodiscard]] std::int64_t place_of_work(Id index) const {
    const Work& work = timeline_.works[index];
    if (work.call == model::kNone)
      return work.start_ns;
    const Call& call = timeline_.calls[work.call];
    const std::int64_t call_ns = queues_.found_full[work.call] ? call.end_ns : call.start_ns;
    return std::max(work.start_ns, call_ns);
  }

  /// Of operations at one place: waits go first, which others go on from, and collectives last.
  [[nodiscard]] std::int64_t turn_of(Id draft) const {
    const Kind kind = graph_.operations[draft].kind;
    if (kind == Kind::kWait)
      return 0;
    return is_gpu_work(kind) && collective_of(entries_[draft]) != nullptr ? 2 : 1;
  }

  /// At equal places and turns operations keep the order in which they were added: threads by time,
  /// then streams by time.
  void sort_operations() {
    const std::uint32_t count = graph_.size();
    std::vector<std::pair<std::int64_t, Id>> places(count);
    for (Id draft = 0; draft < count; ++draft) {
      constexpr std::int64_t kTurns = 3;
      places[draft] = {kTurns * place_of(draft) + turn_of(draft), draft};
    }
    std::ranges::sort(places.begin() + 1, places.end());

    std::vector<Operation> operations(count);
    std::vector<Id> entries(count);
    for (Id id = 0; id < count; ++id) {
      operations[id] = graph_.operations[places[id].second];
      entries[id] = entries_[places[id].second];
    }
    graph_.operations = std::move(operations);
    entries_ = std::move(entries);
    name_sources();
  }

  void name_sources() {
    operation_of_call_.assign(timeline_.calls.size(), 0);
    operation_returning_.assign(timeline_.calls.size(), 0);
    operation_of_work_.assign(timeline_.works.size(), 0);
    arrival_of_work_.assign(collectives_.empty() ? 0 : timeline_.works.size(), 0);
    for (Id id = 0; id < graph_.size(); ++id) {
      Operation& operation = graph_.operations[id];
      const Id entry = entries_[id];
      if (entry == model::kNone || operation.kind == Kind::kStretch)
        continue;
      if (operation.kind == Kind::kArrival) {
        arrival_of_work_[entry] = id;
        continue;
      }
      if (is_gpu_work(operation.kind)) {
        operation_of_work_[entry] = id;
        operation.source = timeline_.works[entry].source;
        continue;
      }
      operation.source = timeline_.calls[entry].launch;
      operation_returning_[entry] = id;
      if (operation.kind == Kind::kCall)
        operation_of_call_[entry] = id;
    }
  }

  // ---- Dependencies

  void connect() {
    latest_in_lane_.assign(graph_.lanes.size(), 0);
    works_of_stream_.resize(session_.streams.size());
    find_awaited();
    graph_.dependencies.reserve(graph_.operations.size() * 3 / 2);
    graph_.first_dependency.reserve(graph_.operations.size() + 1);
    graph_.first_dependency.push_back(0);  // the begin depends on nothing
    for (Id id = 1; id < graph_.size(); ++id) {
      const Kind kind = graph_.operations[id].kind;
      const Id entry = entries_[id];
      if (kind == Kind::kArrival) {
        connect_work(id);
      } else if (is_gpu_work(kind)) {
        const Collective* collective = collective_of(entry);
        if (collective == nullptr) {
          connect_work(id);
        } else {
          connect_collective(id, *collective);
        }
        works_of_stream_[timeline_.works[entry].stream].push_back(entry);
      } else {
        connect_on_thread(id);
      }
      graph_.first_dependency.push_back(static_cast<Id>(graph_.dependencies.size()));
    }
  }

  /// Nothing where that would come later: the recording's times contradict each other.
  void depend(Id operation, Id on, std::int64_t lag_ns, Reason reason) {
    if (on >= operation)
      return;
    graph_.dependencies.push_back({lag_ns, on, reason});
  }

  void connect_on_thread(Id id) {
    const Operation& operation = graph_.operations[id];
    Id& previous = latest_in_lane_[operation.lane];
    const Id handed_over = hand_over_before(id);
    if (handed_over != model::kNone) {
      depend(id, operation_returning_[handed_over], 0, Reason::kHandOver);
    }
    if (previous != 0) {
      depend(id, previous, 0, Reason::kOrder);
    } else if (handed_over == model::kNone) {
      depend(id, 0, operation.start_ns - timeline_.begin_ns, Reason::kOrder);
    }
    previous = id;
    if (operation.kind == Kind::kCall)
      await_room(id);
    if (operation.kind != Kind::kWait)
      return;
    const Call& call = timeline_.calls[entries_[id]];
    if (call.synchronizes) {
      await_streams(id, call);
    } else {
      const std::int64_t work_end_ns = timeline_.works[call.last_work].end_ns;
      depend(id, operation_of_work_[call.last_work], call.end_ns - work_end_ns, Reason::kAwaited);
    }
  }

  /// The call of another thread that a stretch waited for.
  [[nodiscard]] Id hand_over_before(Id id) const {
    const bool leads_to_call =
        graph_.operations[id].kind == Kind::kStretch && entries_[id] != model::kNone;
    if (!leads_to_call)
      return model::kNone;
    return hand_overs_[entries_[id]];
  }

  void await_room(Id id) {
    const Id work = queues_.awaited[entries_[id]];
    if (work != model::kNone)
      depend(id, operation_of_work_[work], 0, Reason::kQueue);
  }

  /// Of every synchronizing call: what its record says, or the stream that its thread used last.
  void find_awaited() {
    awaited_.resize(timeline_.calls.size());
    std::vector<const model::Synchronization*> recorded(session_.launches.size());
    for (const model::Synchronization& wait : session_.synchronizations) {
      if (wait.launch != model::kNone)
        recorded[wait.launch] = &wait;
    }
    Id thread = model::kNone, latest_stream = model::kNone;
    for (Id index = 0; index < timeline_.calls.size(); ++index) {
      const Call& call = timeline_.calls[index];
      if (call.thread != thread)
        latest_stream = model::kNone;
      thread = call.thread;
      if (call.launched())
        latest_stream = timeline_.works[call.first_work].stream;
      if (!call.synchronizes)
        continue;
      Awaited& awaited = awaited_[index];
      awaited.stream = latest_stream;
      const model::Synchronization* wait = recorded[call.launch];
      awaited.all_streams = wait == nullptr || wait->kind == model::SyncKind::kContext;
      if (wait == nullptr)
        continue;
      if (wait->stream != model::kNone)
        awaited.stream = wait->stream;
      // cudaStreamWaitEvent: the stream waits, and the thread goes on.
      if (wait->kind == model::SyncKind::kStreamWaitEvent)
        awaited.stream = model::kNone;
    }
  }

  void await_streams(Id id, const Call& call) {
    const Awaited& awaited = awaited_[entries_[id]];
    const Id process = session_.threads[call.thread].process;
    std::int64_t latest_end_ns = 0;
    const std::vector<Id>* recorded = joins_.awaited_by(call.launch);
    if (recorded != nullptr) {
      for (const Id work : *recorded) {
        const bool was_awaited = timeline_.works[work].end_ns <= call.end_ns + kNotAwaited_ns;
        if (!was_awaited)
          continue;
        depend(id, operation_of_work_[work], 0, Reason::kAwaited);
        latest_end_ns = std::max(latest_end_ns, timeline_.works[work].end_ns);
      }
      add_wait(id, call, latest_end_ns);
      return;
    }
    for (Id stream = 0; stream < session_.streams.size(); ++stream) {
      const bool is_awaited = awaited.all_streams ? session_.streams[stream].process == process
                                                  : stream == awaited.stream;
      if (!is_awaited)
        continue;
      const Id work = find_awaited_work(stream, call);
      if (work == model::kNone)
        continue;
      depend(id, operation_of_work_[work], 0, Reason::kAwaited);
      latest_end_ns = std::max(latest_end_ns, timeline_.works[work].end_ns);
    }
    add_wait(id, call, latest_end_ns);
  }

  /// `latest_end_ns`: when the last of what it waited for ended.
  void add_wait(Id id, const Call& call, std::int64_t latest_end_ns) {
    waits_.push_back(id);
    if (latest_end_ns > call.start_ns + kClockError_ns) {
      returns_ns_.push_back(std::max<std::int64_t>(0, call.end_ns - latest_end_ns));
    } else {
      idle_waits_ns_.push_back(call.end_ns - call.start_ns);
    }
  }

  /// The latest work of a stream that had been launched before the call, and had ended when it
  /// returned.
  [[nodiscard]] Id find_awaited_work(Id stream, const Call& call) const {
    const std::vector<Id>& works = works_of_stream_[stream];
    const std::size_t look_back = std::min(kLookBack, works.size());
    for (std::size_t back = 1; back <= look_back; ++back) {
      const Id index = works[works.size() - back];
      const Work& work = timeline_.works[index];
      const bool launched_before =
          work.call == model::kNone || timeline_.calls[work.call].start_ns < call.start_ns;
      if (launched_before && work.end_ns <= call.end_ns + kNotAwaited_ns)
        return index;
    }
    return model::kNone;
  }

  void connect_work(Id id) {
    const Id index = entries_[id];
    const Work& work = timeline_.works[index];
    const auto kind = static_cast<std::size_t>(work.kind);
    std::int64_t earliest_ns = timeline_.begin_ns;
    if (work.call == model::kNone) {
      depend(id, 0, work.start_ns - timeline_.begin_ns, Reason::kLaunch);
      earliest_ns = work.start_ns;
    } else {
      const Call& call = timeline_.calls[work.call];
      const Id call_id = operation_of_call_[work.call];
      const std::int64_t lag_ns = call.blocks ? 0 : graph_.latencies.launch_ns[kind];
      depend(id, call_id, lag_ns, Reason::kLaunch);
      earliest_ns = graph_.operations[call_id].end_ns + lag_ns;
    }
    for (const Id before : order_.before(index)) {
      const std::int64_t lag_ns = order_lag_ns(work, timeline_.works[before]);
      depend(id, operation_of_work_[before], lag_ns, Reason::kOrder);
      earliest_ns = std::max(earliest_ns, timeline_.works[before].end_ns + lag_ns);
    }
    for (const Id before : joins_.before(index)) {
      earliest_ns = std::max(earliest_ns, connect_join(id, work, before));
    }
    if (work.start_ns - earliest_ns > kUnexplained_ns)
      infer_event(id, work);
  }

  /// From its own arrival it takes as long as the transfer; it ends as long after the arrival of
  /// the last rank as it did.
  void connect_collective(Id id, const Collective& collective) {
    const Id index = entries_[id];
    const Work& work = timeline_.works[index];
    if (work.call != model::kNone)
      depend(id, operation_of_call_[work.call], 0, Reason::kLaunch);
    depend(id, arrival_of_work_[index], 0, Reason::kOrder);
    const std::int64_t lag_ns = work.end_ns - collective.latest_start_ns;
    for (const Id other : collective.works) {
      if (other != index)
        depend(id, arrival_of_work_[other], lag_ns, Reason::kAwaited);
    }
  }

  [[nodiscard]] std::int64_t order_lag_ns(const Work& work, const Work& before) const {
    const std::int64_t recorded_ns = work.start_ns - before.end_ns;
    const std::int64_t usual_ns = graph_.latencies.order_ns[static_cast<std::size_t>(work.kind)];
    return std::min(recorded_ns, usual_ns);
  }

  /// `before`: work of another stream that this one is recorded to wait for. Returns when it could
  /// begin then. Nothing where it began earlier: the event was recorded again, or in a graph.
  std::int64_t connect_join(Id id, const Work& work, Id before) {
    const Work& other = timeline_.works[before];
    const std::int64_t recorded_ns = work.start_ns - other.end_ns;
    if (recorded_ns < -kClockError_ns)
      return timeline_.begin_ns;
    const bool is_held = recorded_ns <= kUnexplained_ns;
    const std::int64_t lag_ns = is_held ? recorded_ns : order_lag_ns(work, other);
    depend(id, operation_of_work_[before], lag_ns, Reason::kStream);
    return other.end_ns + lag_ns;
  }

  /// Work of another stream that ended right before this one began.
  void infer_event(Id id, const Work& work) {
    const Id process = session_.streams[work.stream].process;
    for (Id stream = 0; stream < works_of_stream_.size(); ++stream) {
      if (stream == work.stream || session_.streams[stream].process != process)
        continue;
      const std::vector<Id>& works = works_of_stream_[stream];
      const std::size_t look_back = std::min(kLookBack, works.size());
      for (std::size_t back = 1; back <= look_back; ++back) {
        const Id other = works[works.size() - back];
        const std::int64_t lag_ns = work.start_ns - timeline_.works[other].end_ns;
        if (lag_ns < -kClockError_ns)
          continue;
        if (lag_ns <= kUnexplained_ns)
          depend(id, operation_of_work_[other], lag_ns, Reason::kStream);
        break;
      }
    }
  }

  // ---- Waits

  void set_wait_latencies() {
    Latencies& latencies = graph_.latencies;
    latencies.return_ns = median_of(std::move(returns_ns_), latencies.call_ns);
    latencies.wait_ns = median_of(std::move(idle_waits_ns_), latencies.call_ns);
    for (const Id id : waits_) {
      Operation& wait = graph_.operations[id];
      for (Dependency& dependency : graph_.dependencies_of(id)) {
        if (dependency.reason != Reason::kAwaited)
          continue;
        dependency.lag_ns = latencies.return_ns;
        const bool waited = graph_.operations[dependency.on].end_ns > wait.start_ns;
        if (waited)
          wait.duration_ns = std::min(wait.duration_ns, latencies.wait_ns);
      }
    }
  }

  const model::Session& session_;
  Timeline timeline_;
  StreamOrder order_;
  StreamJoins joins_;
  std::vector<Id> hand_overs_;
  Queues queues_;
  Graph graph_;
  std::vector<Id> entries_;  ///< by operation: index into the calls or works of timeline_
  std::vector<Id> lane_of_stream_, latest_in_lane_;
  std::vector<Id> operation_of_call_, operation_returning_, operation_of_work_;
  std::vector<Collective> collectives_;
  std::vector<Id> collective_of_work_, arrival_of_work_;  ///< empty without collectives
  std::vector<std::vector<Id>> works_of_stream_;          ///< those that are connected
  std::vector<Awaited> awaited_;                          ///< by call
  std::vector<Id> waits_;                                 ///< operations that synchronize
  std::vector<std::int64_t> returns_ns_, idle_waits_ns_;
};

}  // namespace

Graph graph_of(const model::Session& session, std::span<const CollectiveKernels> collectives) {
  return GraphBuilder(session, collectives).build();
}

}  // namespace rangescope::analyze::replay
