// What a cure does to a program, as data: it can be applied to the graph of a recording in which
// other cures were applied before. O(operations) a step.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/replay/changes.hpp"
#include "analyze/replay/graph.hpp"

namespace rangescope::analyze::cures {

/// Steps in the order in which they are applied; ids are of the recording's graph. A step whose
/// value is a factor takes the parameter of the prediction times it.
struct Remedy {
  /// Operations that keep a share of what they do: works on fewer rows.
  struct Reduction {
    std::vector<replay::Id> operations;
    double share = 1;      ///< of which `parameter` is left
    double unchanged = 0;  ///< of all
  };
  std::vector<replay::Id> shortened;      ///< take `parameter` times as long: kernels, stretches
  std::vector<Reduction> reduced;         ///< take `parameter` times a share of their time
  std::vector<replay::Id> removed;        ///< work, calls and waits
  std::vector<replay::Fusion> fused;      ///< their durations and calls times `parameter`
  std::vector<replay::Id> copies;         ///< copied ahead, at `parameter` bytes per second
  std::vector<double> copy_bytes;         ///< by copy
  std::vector<replay::Id> moved;          ///< stretches done ahead by `parameter` other threads
  std::vector<replay::Capture> captured;  ///< each one CUDA graph, gaps between nodes `parameter`
                                          ///< of what lies between queued kernels
  std::int64_t graph_launch_ns = 0;       ///< of the call that launches each of them

  /// Operations that the recording would lack, or that take another time.
  [[nodiscard]] std::vector<replay::Id> operations() const;
};

/// `changed`: made from `recorded` by remedies.
[[nodiscard]] replay::Graph apply(const Remedy& remedy,
                                  const replay::Graph& recorded,
                                  const replay::Graph& changed,
                                  double parameter);

}  // namespace rangescope::analyze::cures
