// What a fix does to a program, as pure functions from graph to graph. Each is O(operations), and
// leaves what it does not name as it was recorded; a replay (replay.hpp) tells what comes of it.
// They compose.
//
// Operations are named by their ids in the graph that is given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/replay/graph.hpp"
#include "analyze/replay/replay.hpp"

namespace rangescope::analyze::replay {

using Ids = std::span<const Id>;

/// Operations take `factor` times as long: a product at another precision, a slower GPU.
[[nodiscard]] Graph scaled(Graph graph, Ids operations, double factor);

/// Each call takes so much less, as far as it takes half of its time still: what recording it
/// added.
[[nodiscard]] Graph without_tracing(Graph graph, std::int64_t call_ns);

/// Work and waits do not happen. With work go the calls that launched nothing else, and with each
/// call what its thread did to make it: the stretch before, as far as that is a usual one.
[[nodiscard]] Graph without(const Graph& graph, Ids operations);

/// One kernel does the work of several that follow one another: a chain of element-wise kernels,
/// attention by hand, an optimizer parameter by parameter.
struct Fusion {
  std::vector<Id> works;
  std::int64_t duration_ns = 0;  ///< of the one
  /// What its thread takes to call it, as far as the calls of all took as long; 0: as recorded.
  std::int64_t call_ns = 0;
};
[[nodiscard]] Graph fused(const Graph& graph, std::span<const Fusion> fusions);

/// An instance of a range that becomes one CUDA graph.
struct Capture {
  Span span;                ///< of the thread that launches the graph
  std::vector<Id> helpers;  ///< threads that launch for it meanwhile: PyTorch's backward pass
};
/// Of instances whose threads launch alone.
[[nodiscard]] std::vector<Capture> captures_of(std::span<const Span> instances);

/// All that is launched in each instance comes from one launch of a CUDA graph at the first call's
/// place.
struct GraphCost {
  std::int64_t launch_ns = 0;  ///< of the call
  std::int64_t order_ns = 0;   ///< between two nodes
};
/// By instance: it launches twice or more, and does not wait for the GPU, which a graph cannot
/// hold.
[[nodiscard]] std::vector<bool> can_be_graphs(const Graph& graph,
                                              std::span<const Capture> instances);
/// Instances that cannot be one stay as they are.
[[nodiscard]] Graph as_graph_launches(const Graph& graph,
                                      std::span<const Capture> instances,
                                      GraphCost cost);

/// Copies run ahead in a stream of their own, asynchronously, into one of `buffers` buffers each: a
/// copy begins one call early, behind the one before it, when the work on the data that its buffer
/// held is done. `durations_ns`: how long each takes then. The waits right behind them go.
[[nodiscard]] Graph copied_ahead(const Graph& graph,
                                 Ids copies,
                                 std::span<const std::int64_t> durations_ns,
                                 std::uint32_t buffers);

/// The same with two buffers, from pinned memory: a copy takes as long as its bytes need at
/// `bytes_per_s`, and no longer than it took. `bytes`: of each copy; 0 bytes per second: unknown.
[[nodiscard]] Graph copied_ahead_pinned(const Graph& graph,
                                        Ids copies,
                                        std::span<const double> bytes,
                                        double bytes_per_s);

/// The waits right behind a call among the operations of its thread: what it returns for, as far as
/// a framework makes both in one call.
[[nodiscard]] std::vector<Id> waits_behind(const Graph& graph, Ids operations_of_thread, Id call);

/// Stretches of a thread are done ahead by `workers` others, each at most `ahead` results early.
[[nodiscard]] Graph moved_ahead(const Graph& graph,
                                Ids stretches,
                                std::uint32_t workers,
                                std::uint32_t ahead);

/// Chains of work that do not depend on each other run side by side, each in a stream of its own.
/// `room`: the share of the GPU that each chain fills; together they are as slow as those exceed 1.
struct Chain {
  std::vector<Id> works;
  double room = 1;
};
[[nodiscard]] Graph side_by_side(const Graph& graph, std::span<const Chain> chains);

/// A process takes `factor` of its time for all but its collectives, which last until every rank
/// has arrived (graph_of() has to know them): a slow rank as fast as the others.
[[nodiscard]] Graph with_rank_scaled(const Graph& graph, Id process, double factor);
/// How much of its own time a process would take outside of collectives if it were as fast as the
/// mean of those that take part in one; 1 where it takes part in none.
[[nodiscard]] double factor_to_mean(const Graph& graph, Id process);

/// A call that launched a work, kNone where it was not recorded.
[[nodiscard]] Id launch_of(const Graph& graph, Id work);

}  // namespace rangescope::analyze::replay
