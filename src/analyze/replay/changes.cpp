#include "analyze/replay/changes.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "analyze/replay/between_calls.hpp"
#include "analyze/replay/edit.hpp"

namespace rangescope::analyze::replay {
namespace {

/// A thread's work for a call is at most this many times the usual; the rest of a longer stretch is
/// the program's own.
constexpr std::int64_t kUsualDispatches = 2;
/// Tracing takes at most this share of a call.
constexpr double kTracingShare = 0.5;

std::int64_t scale(std::int64_t ns, double factor) {
  return std::llround(static_cast<double>(ns) * factor);
}

Id before_in_lane(const Graph& graph, Id id) {
  return graph.find_dependency(id, Reason::kOrder);
}

bool is_stretch(const Graph& graph, Id id) {
  return id != model::kNone && graph.operations[id].kind == Kind::kStretch;
}

/// Takes away what a thread did to make a call.
void remove_dispatch(Edit& edit, Id call) {
  const Id before = before_in_lane(edit.graph(), call);
  if (!is_stretch(edit.graph(), before))
    return;
  std::int64_t& duration_ns = edit.operation(before).duration_ns;
  duration_ns -= std::min(duration_ns, kUsualDispatches * edit.graph().latencies.dispatch_ns);
}

void remove_call(Edit& edit, Id call) {
  if (edit.is_removed(call))
    return;
  edit.remove(call);
  remove_dispatch(edit, call);
}

/// How many works each call launched.
std::vector<std::uint32_t> count_launched(const Graph& graph) {
  std::vector<std::uint32_t> launched(graph.size());
  for (Id id = 0; id < graph.size(); ++id) {
    if (!is_gpu_work(graph.operations[id].kind))
      continue;
    const Id call = launch_of(graph, id);
    if (call != model::kNone)
      ++launched[call];
  }
  return launched;
}

/// The wait that is the rest of a blocking call, kNone where the call returns at once.
Id rest_of_call(const Graph& graph, const LaneIndex& lanes, Id call) {
  const auto operations = lanes.operations_of(graph.operations[call].lane);
  const auto next = std::ranges::upper_bound(operations, call);
  if (next == operations.end())
    return model::kNone;
  const Operation& rest = graph.operations[*next];
  const bool is_rest = rest.kind == Kind::kWait && rest.source == graph.operations[call].source;
  return is_rest ? *next : model::kNone;
}

class Removal {
 public:
  explicit Removal(Edit& edit)
      : edit_(edit), lanes_(edit.graph()), launched_(count_launched(edit.graph())) {}

  void remove(Id id) {
    if (is_gpu_work(edit_.graph().operations[id].kind)) {
      remove_work(id);
    } else {
      remove_call(edit_, id);
    }
  }

 private:
  void remove_work(Id work) {
    edit_.remove(work);
    const Id call = launch_of(edit_.graph(), work);
    if (call == model::kNone || --launched_[call] > 0)
      return;
    const Id rest = rest_of_call(edit_.graph(), lanes_, call);
    if (rest != model::kNone)
      edit_.remove(rest);
    remove_call(edit_, call);
  }

  Edit& edit_;
  LaneIndex lanes_;
  std::vector<std::uint32_t> launched_;  ///< by call: how many of its works are left
};

/// What a thread does in front of a call, behind the call before it.
struct Between {
  std::vector<Id> stretches;
  std::int64_t duration_ns = 0;
  Id call_before = model::kNone;
};

Between between_calls(const Graph& graph, Id call) {
  Between between;
  Id before = before_in_lane(graph, call);
  for (; is_stretch(graph, before); before = before_in_lane(graph, before)) {
    between.stretches.push_back(before);
    between.duration_ns += graph.operations[before].duration_ns;
  }
  between.call_before = before;
  return between;
}

/// A loop over tensors, values or copies that becomes one call: what a thread does between two of
/// its calls goes with them. `first_calls`: those that are left, of whose loop the next ones go.
void remove_between(Edit& edit, const std::unordered_set<Id>& first_calls) {
  const Graph& graph = edit.graph();
  for (Id id = 0; id < graph.size(); ++id) {
    const bool is_call_that_goes =
        edit.is_removed(id) && !is_gpu_work(graph.operations[id].kind) && !is_stretch(graph, id);
    if (!is_call_that_goes)
      continue;
    const Between between = between_calls(graph, id);
    const Id before = between.call_before;
    const bool is_between =
        before != model::kNone && (edit.is_removed(before) || first_calls.contains(before));
    if (!is_between || between.duration_ns > kLongestBetweenCalls_ns)
      continue;
    for (const Id stretch : between.stretches)
      edit.remove(stretch);
  }
}

/// What the calls of these works take, and what their thread does between two of them.
std::int64_t calling_ns(const Graph& graph, Ids works) {
  std::unordered_set<Id> calls;
  for (const Id work : works) {
    const Id call = launch_of(graph, work);
    if (call != model::kNone)
      calls.insert(call);
  }
  std::int64_t sum_ns = 0;
  for (const Id call : calls) {
    sum_ns += graph.operations[call].duration_ns;
    const Between between = between_calls(graph, call);
    const bool is_inside = calls.contains(between.call_before);
    if (is_inside && between.duration_ns <= kLongestBetweenCalls_ns)
      sum_ns += between.duration_ns;
  }
  return sum_ns;
}

}  // namespace

Id launch_of(const Graph& graph, Id work) {
  const Id call = graph.find_dependency(work, Reason::kLaunch);
  const bool recorded = call != model::kNone && graph.operations[call].kind == Kind::kCall;
  return recorded ? call : model::kNone;
}

Graph scaled(Graph graph, Ids operations, double factor) {
  for (const Id id : operations) {
    std::int64_t& duration_ns = graph.operations[id].duration_ns;
    duration_ns = scale(duration_ns, factor);
  }
  return graph;
}

Graph without_tracing(Graph graph, std::int64_t call_ns) {
  for (Operation& operation : graph.operations) {
    const bool is_call = operation.kind == Kind::kCall || operation.kind == Kind::kWait;
    if (!is_call)
      continue;
    operation.duration_ns -= std::min(call_ns, scale(operation.duration_ns, kTracingShare));
  }
  return graph;
}

Graph without(const Graph& graph, Ids operations) {
  Edit edit(graph);
  Removal removal(edit);
  for (const Id id : operations)
    removal.remove(id);
  remove_between(edit, {});
  return edit.finish();
}

Graph fused(const Graph& graph, std::span<const Fusion> fusions) {
  Edit edit(graph);
  Removal removal(edit);
  std::unordered_set<Id> first_calls;
  for (const Fusion& fusion : fusions) {
    if (fusion.works.empty())
      continue;
    const Id first_call = launch_of(graph, fusion.works.front());
    edit.operation(fusion.works.front()).duration_ns = fusion.duration_ns;
    if (fusion.call_ns > 0 && first_call != model::kNone) {
      const std::int64_t recorded_ns = calling_ns(graph, fusion.works);
      edit.operation(first_call).duration_ns = std::min(fusion.call_ns, recorded_ns);
    }
    first_calls.insert(first_call);
    for (const Id work : Ids(fusion.works).subspan(1))
      removal.remove(work);
  }
  remove_between(edit, first_calls);
  return edit.finish();
}

// ---- CUDA graphs

namespace {

struct Instance {
  std::vector<Id> calls, between;  ///< launching calls, and stretches between them
  bool waits = false;

  [[nodiscard]] bool can_be_graph() const { return !waits && calls.size() > 1; }
};

void add_operations_in(const Graph& graph,
                       const LaneIndex& lanes,
                       const Span& span,
                       Instance& instance) {
  const Id lane = lanes.lane_of_thread(span.thread);
  if (lane == model::kNone)
    return;
  const auto operations = lanes.operations_of(lane);
  const auto start_of = [&](Id id) { return graph.operations[id].start_ns; };
  auto next = std::ranges::lower_bound(operations, span.start_ns, {}, start_of);
  for (; next != operations.end() && start_of(*next) < span.end_ns; ++next) {
    const Operation& operation = graph.operations[*next];
    if (operation.kind == Kind::kWait)
      instance.waits = true;
    if (operation.kind == Kind::kCall)
      instance.calls.push_back(*next);
    const bool is_between = operation.kind == Kind::kStretch && !instance.calls.empty();
    if (is_between && operation.end_ns <= span.end_ns)
      instance.between.push_back(*next);
  }
}

Instance instance_in(const Graph& graph, const LaneIndex& lanes, const Capture& capture) {
  Instance instance;
  add_operations_in(graph, lanes, capture.span, instance);
  for (const Id helper : capture.helpers) {
    const Span meanwhile{helper, capture.span.start_ns, capture.span.end_ns};
    add_operations_in(graph, lanes, meanwhile, instance);
  }
  return instance;
}

}  // namespace

std::vector<Capture> captures_of(std::span<const Span> instances) {
  std::vector<Capture> captures;
  for (const Span& span : instances)
    captures.push_back({span, {}});
  return captures;
}

std::vector<bool> can_be_graphs(const Graph& graph, std::span<const Capture> instances) {
  const LaneIndex lanes(graph);
  std::vector<bool> can_be;
  for (const Capture& capture : instances)
    can_be.push_back(instance_in(graph, lanes, capture).can_be_graph());
  return can_be;
}

Graph as_graph_launches(const Graph& graph, std::span<const Capture> instances, GraphCost cost) {
  Edit edit(graph);
  const LaneIndex lanes(graph);
  std::unordered_map<Id, Id> graph_launch_of;
  for (const Capture& capture : instances) {
    const Instance instance = instance_in(graph, lanes, capture);
    if (!instance.can_be_graph())
      continue;
    const Id graph_launch = instance.calls.front();
    edit.operation(graph_launch).duration_ns = cost.launch_ns;
    for (const Id call : instance.calls) {
      graph_launch_of[call] = graph_launch;
      if (call != graph_launch)
        edit.remove(call);
    }
    for (const Id stretch : instance.between)
      edit.remove(stretch);
  }
  for (Id id = 0; id < graph.size(); ++id) {
    if (!is_gpu_work(graph.operations[id].kind))
      continue;
    const auto graph_launch = graph_launch_of.find(launch_of(graph, id));
    if (graph_launch == graph_launch_of.end())
      continue;
    const bool is_first = graph_launch->first == graph_launch->second;
    for (Dependency& dependency : edit.dependencies(id)) {
      if (dependency.reason == Reason::kLaunch)
        dependency.on = graph_launch->second;
      const bool inside = dependency.reason == Reason::kOrder && !is_first;
      if (inside)
        dependency.lag_ns = std::min(dependency.lag_ns, cost.order_ns);
    }
  }
  return edit.finish();
}

// ---- Copies

namespace {

/// A lag that holds nothing: the call is known as the work's, for further changes.
constexpr std::int64_t kLongAgo_ns = -(std::int64_t{1} << 60);

class CopiesAhead {
 public:
  CopiesAhead(const Graph& graph, Ids copies)
      : graph_(graph), lanes_(graph), edit_(graph), copies_(copies) {}

  Graph apply(std::span<const std::int64_t> durations_ns, std::uint32_t buffers) {
    const Id lane = edit_.add_lane({graph_.lanes[graph_.operations[copies_.front()].lane].process});
    for (std::size_t index = 0; index < copies_.size(); ++index) {
      const Id copy = copies_[index];
      release_followers(copy);
      edit_.operation(copy).duration_ns = durations_ns[index];
      edit_.operation(copy).lane = lane;
      make_asynchronous(launch_of(graph_, copy));
      if (index > 0)
        order_copy(index, buffers);
    }
    return edit_.finish();
  }

 private:
  /// What followed the copy in its stream waits for it by an event now, and follows what was before
  /// the copy.
  void release_followers(Id copy) {
    const auto stream = lanes_.operations_of(graph_.operations[copy].lane);
    for (auto next = std::ranges::upper_bound(stream, copy); next != stream.end(); ++next) {
      if (before_in_lane(graph_, *next) != copy)
        break;
      for (Dependency& dependency : edit_.dependencies(*next)) {
        if (dependency.on == copy)
          dependency.reason = Reason::kStream;
      }
      const std::int64_t order_ns =
          graph_.latencies.order_ns[static_cast<std::size_t>(Kind::kKernel)];
      edit_.depend(*next, before_in_lane(graph_, copy), order_ns, Reason::kOrder);
    }
  }

  void make_asynchronous(Id call) {
    if (call == model::kNone)
      return;
    const std::int64_t call_ns = graph_.latencies.call_ns;
    std::int64_t& duration_ns = edit_.operation(call).duration_ns;
    duration_ns = std::min(duration_ns, call_ns);
    const auto thread = lanes_.operations_of(graph_.operations[call].lane);
    for (const Id wait : waits_behind(graph_, thread, call))
      edit_.remove(wait);
  }

  void order_copy(std::size_t index, std::uint32_t buffers) {
    std::vector<Dependency>& dependencies = edit_.dependencies(copies_[index]);
    dependencies.clear();
    const Id own_call = launch_of(graph_, copies_[index]);
    if (own_call != model::kNone)
      dependencies.push_back({kLongAgo_ns, own_call, Reason::kLaunch});
    const Id previous = copies_[index - 1];
    const std::int64_t order_ns = graph_.latencies.order_ns[static_cast<std::size_t>(Kind::kCopy)];
    dependencies.push_back({order_ns, previous, Reason::kOrder});
    const Id call_before = launch_of(graph_, previous);
    if (call_before != model::kNone)
      dependencies.push_back({0, call_before, Reason::kAhead});
    if (index < buffers)
      return;
    const Id last_use = before_in_lane(graph_, copies_[index - buffers + 1]);
    if (last_use != model::kNone)
      dependencies.push_back({0, last_use, Reason::kAhead});
  }

  const Graph& graph_;
  LaneIndex lanes_;
  Edit edit_;
  Ids copies_;
};

}  // namespace

Graph copied_ahead(const Graph& graph,
                   Ids copies,
                   std::span<const std::int64_t> durations_ns,
                   std::uint32_t buffers) {
  if (copies.empty())
    return graph;
  return CopiesAhead(graph, copies).apply(durations_ns, buffers);
}

Graph copied_ahead_pinned(const Graph& graph,
                          Ids copies,
                          std::span<const double> bytes,
                          double bytes_per_s) {
  constexpr std::uint32_t kBuffers = 2;  // one is filled while the other one is read
  std::vector<std::int64_t> durations_ns;
  for (std::size_t index = 0; index < copies.size(); ++index) {
    std::int64_t duration_ns = graph.operations[copies[index]].duration_ns;
    if (bytes_per_s > 0) {
      const auto pinned_ns = static_cast<std::int64_t>(bytes[index] / bytes_per_s * 1e9);
      duration_ns = std::min(duration_ns, pinned_ns);
    }
    durations_ns.push_back(duration_ns);
  }
  return copied_ahead(graph, copies, durations_ns, kBuffers);
}

std::vector<Id> waits_behind(const Graph& graph, Ids operations_of_thread, Id call) {
  // What a program does between a copy and the wait for it is not more than this.
  constexpr std::int64_t kSameCall_ns = 50'000;
  std::vector<Id> waits;
  auto next = std::ranges::upper_bound(operations_of_thread, call);
  for (; next != operations_of_thread.end(); ++next) {
    const Operation& behind = graph.operations[*next];
    const bool is_short = behind.kind == Kind::kStretch && behind.duration_ns <= kSameCall_ns;
    if (behind.kind == Kind::kWait)
      waits.push_back(*next);
    if (behind.kind != Kind::kWait && !is_short)
      break;
  }
  return waits;
}

// ---- Other threads

Graph moved_ahead(const Graph& graph, Ids stretches, std::uint32_t workers, std::uint32_t ahead) {
  Edit edit(graph);
  const LaneIndex lanes(graph);
  std::vector<Id> lane_of_worker;
  for (std::uint32_t worker = 0; worker < workers; ++worker)
    lane_of_worker.push_back(edit.add_lane({}));

  for (std::size_t index = 0; index < stretches.size(); ++index) {
    const Id stretch = stretches[index];
    const Id before = before_in_lane(graph, stretch);
    const auto thread = lanes.operations_of(graph.operations[stretch].lane);
    const auto next = std::ranges::upper_bound(thread, stretch);
    if (next != thread.end()) {
      for (Dependency& dependency : edit.dependencies(*next)) {
        if (dependency.on == stretch)
          dependency.reason = Reason::kAhead;
      }
      edit.depend(*next, before, 0, Reason::kOrder);
    }
    edit.operation(stretch).lane = lane_of_worker[index % workers];
    std::vector<Dependency>& dependencies = edit.dependencies(stretch);
    if (index > 0)
      dependencies.clear();
    if (index >= workers)
      dependencies.push_back({0, stretches[index - workers], Reason::kOrder});
    const std::size_t early = std::size_t{workers} * ahead;
    if (index == 0)
      continue;
    const Id taken = index >= early ? stretches[index - early] : stretches.front();
    const Id begun = before_in_lane(graph, taken);
    if (begun != model::kNone)
      dependencies.push_back({0, begun, Reason::kAhead});
  }
  return edit.finish();
}

// ---- Streams

Graph side_by_side(const Graph& graph, std::span<const Chain> chains) {
  Edit edit(graph);
  if (chains.size() < 2)
    return edit.finish();
  double room = 0;
  for (const Chain& chain : chains)
    room += chain.room;
  const double slowdown = std::max(1.0, room);

  const Chain& first = chains.front();
  const Id common = before_in_lane(graph, first.works.front());
  const LaneIndex lanes(graph);
  const auto stream = lanes.operations_of(graph.operations[first.works.front()].lane);
  const auto after = std::ranges::upper_bound(stream, chains.back().works.back());
  const auto order_ns = graph.latencies.order_ns[static_cast<std::size_t>(Kind::kKernel)];

  for (const Chain& chain : chains) {
    const Id lane =
        edit.add_lane({graph.lanes[graph.operations[chain.works.front()].lane].process});
    Id before = common;
    for (const Id work : chain.works) {
      Operation& operation = edit.operation(work);
      operation.lane = lane;
      operation.duration_ns = scale(operation.duration_ns, slowdown);
      std::erase_if(edit.dependencies(work),
                    [](const Dependency& each) { return each.reason == Reason::kOrder; });
      edit.depend(work, before, order_ns, Reason::kOrder);
      before = work;
    }
    if (after != stream.end())
      edit.depend(*after, before, order_ns, Reason::kStream);
  }
  return edit.finish();
}

// ---- Ranks

namespace {

bool is_collective(const Graph& graph, Id id) {
  const Id before = before_in_lane(graph, id);
  return before != model::kNone && graph.operations[before].kind == Kind::kArrival;
}

/// When the first operation of a process began and the last one ended, and its time in collectives.
struct ProcessTime {
  std::int64_t begin_ns = model::kOpen, end_ns = 0;
  std::int64_t in_collectives_ns = 0;
  bool takes_part = false;

  [[nodiscard]] double outside_ns() const {
    return static_cast<double>(end_ns - begin_ns - in_collectives_ns);
  }
};

std::unordered_map<Id, ProcessTime> times_of_processes(const Graph& graph) {
  std::unordered_map<Id, ProcessTime> times;
  for (Id id = 0; id < graph.size(); ++id) {
    const Operation& operation = graph.operations[id];
    const Id process = graph.lanes[operation.lane].process;
    if (process == model::kNone)
      continue;
    ProcessTime& time = times[process];
    time.begin_ns = std::min(time.begin_ns, operation.start_ns);
    time.end_ns = std::max(time.end_ns, operation.end_ns);
    if (!is_collective(graph, id))
      continue;
    time.takes_part = true;
    time.in_collectives_ns += operation.end_ns - operation.start_ns;
  }
  return times;
}

}  // namespace

Graph with_rank_scaled(const Graph& graph, Id process, double factor) {
  Graph changed = graph;
  for (Id id = 0; id < graph.size(); ++id) {
    Operation& operation = changed.operations[id];
    const bool is_of_rank = graph.lanes[operation.lane].process == process;
    if (is_of_rank && !is_collective(graph, id))
      operation.duration_ns = scale(operation.duration_ns, factor);
  }
  return changed;
}

double factor_to_mean(const Graph& graph, Id process) {
  const std::unordered_map<Id, ProcessTime> times = times_of_processes(graph);
  const auto of_process = times.find(process);
  if (of_process == times.end() || !of_process->second.takes_part)
    return 1;
  double sum_ns = 0, ranks = 0;
  for (const auto& [id, time] : times) {
    if (!time.takes_part)
      continue;
    sum_ns += time.outside_ns();
    ++ranks;
  }
  const double own_ns = of_process->second.outside_ns();
  return own_ns > 0 ? sum_ns / ranks / own_ns : 1;
}

}  // namespace rangescope::analyze::replay
