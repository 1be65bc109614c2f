// The dependence graph of a session: what had to end before what could begin, on the threads of the
// CPU and in the streams of the GPUs.
//
// A *lane* is a thread or a stream. On a thread, stretches of the program's own work and CUDA calls
// follow one another. A call that returns when GPU work has ended is two operations: what it does
// itself, and the wait. A dependency holds an operation's begin, or the end of a wait, until
// another operation has ended and `lag_ns` have passed:
//
//   stretch -> call -> stretch -> call -> wait -> stretch      a thread
//                \                 \       ^
//                 launch            launch | awaited
//                  \                 \     |
//                   kernel --order--> copy +                   a stream
//
// Operations are in an order in which each follows all that it depends on, so that a replay is one
// pass. Ids are 32 bits; an operation with its dependencies takes 65 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/range.hpp"

namespace rangescope::analyze::replay {

/// An index: of an operation or a lane of a graph, or of an item of the session.
using Id = std::uint32_t;

enum class Kind : std::uint8_t {
  kBegin,    ///< of the recording: operation 0, the only one of its kind
  kStretch,  ///< what a thread does between calls
  kCall,     ///< a CUDA call, without what it waits for
  kWait,     ///< a call, or the end of one, that lasts until GPU work has ended
  kArrival,  ///< in a stream: its rank is ready for a collective, which is the operation behind it
  kKernel,
  kCopy,
  kMemset,
  kGraph,  ///< a CUDA graph that was recorded as a whole
};
inline constexpr std::size_t kKinds = 9;

[[nodiscard]] constexpr bool is_gpu_work(Kind kind) {
  return kind >= Kind::kKernel;
}

struct Operation {
  std::int64_t start_ns = 0, end_ns = 0;  ///< as recorded
  std::int64_t duration_ns = 0;           ///< without waiting for anything
  Id lane = 0;                            ///< index into Graph::lanes
  Id source =
      model::kNone;  ///< index into Session's launches, kernels, copies, memsets, graph_launches
  Kind kind = Kind::kStretch;
};

enum class Reason : std::uint8_t {
  kOrder,     ///< it is the one before it in its lane
  kLaunch,    ///< a call launched the work
  kStream,    ///< work in another stream comes first: an event, or the legacy default stream
  kQueue,     ///< the call found the queue of launches full until that work had ended
  kHandOver,  ///< a thread went on when another one had made this call
  kAwaited,   ///< a wait lasts until that work has ended; a collective, until other ranks arrived
  kAhead,     ///< a buffer is free again, or was filled
};

/// These hold the end of an operation, the others its begin.
[[nodiscard]] constexpr bool holds_end(Reason reason) {
  return reason == Reason::kAwaited || reason == Reason::kQueue;
}

struct Dependency {
  std::int64_t lag_ns =
      0;      ///< from the end of that operation; negative where a call returns a little early
  Id on = 0;  ///< index into Graph::operations
  Reason reason = Reason::kOrder;
};

/// A thread or a stream of the session; work that a change moves is in neither.
struct Lane {
  Id process = model::kNone;
  Id thread = model::kNone;  ///< index into Session::threads
  Id stream = model::kNone;  ///< index into Session::streams
};

/// How long after what it depends on an operation begins where nothing else holds it: medians of
/// the recording.
struct Latencies {
  std::int64_t launch_ns[kKinds] =
      {};  ///< by kind of work: from the end of a call to the work, in an idle stream
  std::int64_t order_ns[kKinds] =
      {};                        ///< from the end of the work before it, where both were queued
  std::int64_t return_ns = 0;    ///< from the end of awaited work to the return of the call
  std::int64_t wait_ns = 0;      ///< what a wait takes that finds the work done
  std::int64_t call_ns = 0;      ///< a call that launches
  std::int64_t dispatch_ns = 0;  ///< what a thread does between two such calls
};

struct Graph {
  std::vector<Lane> lanes;
  std::vector<Operation> operations;
  std::vector<Id> first_dependency{0};  ///< by operation; one more than there are
  std::vector<Dependency> dependencies;
  Latencies latencies;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(operations.size()); }
  [[nodiscard]] std::span<const Dependency> dependencies_of(Id operation) const;
  [[nodiscard]] std::span<Dependency> dependencies_of(Id operation);
  /// What it depends on for that reason, kNone where there is nothing.
  [[nodiscard]] Id find_dependency(Id operation, Reason reason) const;
};

/// Operations of each lane, in order.
class LaneIndex {
 public:
  explicit LaneIndex(const Graph& graph);
  [[nodiscard]] std::span<const Id> operations_of(Id lane) const;
  /// The lane of a thread of the session, kNone where it has none.
  [[nodiscard]] Id lane_of_thread(Id thread) const;

 private:
  std::vector<Id> first_, operations_;
  std::vector<Id> lane_of_thread_;
};

}  // namespace rangescope::analyze::replay
