// Graph nodes and the ranges that were open when each was captured.
//
// CUDA_GRAPH_NODE_EVENTS (CUDA_GRAPH_EVENTS up to schema 3.4) has a row for each node: when and on which thread it was
// made, and, for a node of an instantiated graph, the node that it was cloned from. Kernels name the clone; the path is
// that of the original, found by one sweep over the ranges of the threads concerned, O(n log n) in nodes and O(r) in
// ranges.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/session.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/source.hpp"

namespace rangescope::read::nsys_sqlite {

struct NodeEvent {
  std::uint64_t process = 0, id = 0, original = 0;  ///< original 0: not a clone
  std::int64_t at_ns = 0;
  std::uint64_t thread = 0;  ///< globalTid
};

[[nodiscard]] std::vector<NodeEvent> read_node_events(const Source& source, Scanned& scanned);

/// Sets `captured_path` of the session's graph nodes. `thread_of` maps globalTid to the index of a session thread.
void place_nodes(model::Session& session, const std::vector<NodeKey>& nodes, const std::vector<NodeEvent>& events,
                 const std::map<std::uint64_t, std::uint32_t>& thread_of);

}  // namespace rangescope::read::nsys_sqlite
