// Where the nodes of CUDA graphs were made: the ranges that were open on their thread, from the
// capture's begin on.
//
// A replayed kernel belongs to the range of its launch and, below it, to the path inside the
// capture. So ranges that were open before the graph was made ("graph_capture", around the whole
// capture) are no part of it, where the recording tells when that was. Kernels name nodes of an
// instantiated graph, which are clones: the path is that of the node that they were cloned from.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "model/session.hpp"

namespace rangescope::read {

struct NodeMade {
  std::uint64_t node = 0;               ///< CUPTI's id; the upper half is the graph
  std::uint64_t original = 0;           ///< the node that it was copied from, or 0
  std::uint32_t thread = model::kNone;  ///< index into Session::threads
  std::int64_t at_ns = 0;
  std::uint8_t type = 0;  ///< CUgraphNodeType; 0 is a kernel
};

/// Of one process.
class GraphNodes {
 public:
  void graph_made(std::uint32_t graph, std::int64_t at_ns) { graphs_.try_emplace(graph, at_ns); }
  void add(const NodeMade& node);
  /// Kernel nodes of a graph, 0 where unknown.
  [[nodiscard]] std::uint32_t kernel_nodes(std::uint32_t graph) const;
  /// Index into session.graph_nodes for a node that a kernel, copy or set names; added when it is
  /// new.
  std::uint32_t use(std::uint64_t node, std::uint32_t process, model::Session& session);
  /// Gives every used node its captured path. O(n log n) in nodes, one pass over the session's
  /// ranges.
  void place(model::Session& session) const;

 private:
  [[nodiscard]] const NodeMade* origin(std::uint64_t node) const;

  std::unordered_map<std::uint32_t, std::int64_t> graphs_;
  std::unordered_map<std::uint64_t, NodeMade> made_;
  std::unordered_map<std::uint64_t, std::uint32_t> used_;
};

}  // namespace rangescope::read
