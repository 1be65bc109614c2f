// The range occurrences around a call, each once.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/tree/contexts.hpp"
#include "analyze/tree/tree.hpp"

namespace rangescope::analyze {

class OccurrencesAround {
 public:
  OccurrencesAround(const Tree& tree, const Contexts& contexts)
      : tree_(tree), contexts_(contexts), visited_(tree.parent.size(), 0) {}

  /// visit(occurrence) for the innermost ones of `context` and all around them.
  template <class Visit>
  void for_each(std::uint32_t context, Visit&& visit) {
    ++point_;
    for (const std::uint32_t entry : contexts_.of(context)) {
      std::uint32_t occurrence = entry & ~kInherited;
      for (; occurrence != kNone; occurrence = tree_.parent[occurrence]) {
        if (visited_[occurrence] == point_)
          break;  // those around it were visited, too
        visited_[occurrence] = point_;
        visit(occurrence);
      }
    }
  }

 private:
  const Tree& tree_;
  const Contexts& contexts_;
  std::vector<std::uint64_t> visited_;  ///< the last point for which it was visited
  std::uint64_t point_ = 0;
};

}  // namespace rangescope::analyze
