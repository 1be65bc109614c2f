// Which work of its stream each work follows.
//
// Kernels and copies of a stream run one after the other, and each follows the one before it. The
// nodes of a CUDA graph may run side by side: a node follows what had ended since the node before
// it began, or else what ended last. Work that began before its predecessor had ended (programmatic
// dependent launch) still follows it. O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/replay/timeline.hpp"

namespace rangescope::analyze::replay {

class StreamOrder {
 public:
  explicit StreamOrder(const std::vector<Work>& works);

  /// Indexes into Timeline::works, all before `work`.
  [[nodiscard]] std::span<const Id> before(Id work) const;
  /// When the last of those ended; nothing where it is the first.
  [[nodiscard]] std::int64_t end_before(Id work) const { return end_before_[work]; }
  static constexpr std::int64_t kNothing = INT64_MIN;

 private:
  std::vector<Id> first_, before_;
  std::vector<std::int64_t> end_before_;
};

}  // namespace rangescope::analyze::replay
