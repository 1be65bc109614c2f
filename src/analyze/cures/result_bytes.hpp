// How large the results of works are, by what PyTorch's allocator handed out for them. O(log n) a
// work for n allocations.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/cures/recording.hpp"

namespace rangescope::analyze::cures {

class ResultBytes {
 public:
  explicit ResultBytes(const Recording& recording);

  /// The largest allocation between its call and the call before: a function allocates its result
  /// right before it launches. nullopt where there is none, or a block that may be much larger than
  /// what was asked for.
  [[nodiscard]] std::optional<double> of(Id work) const;

 private:
  struct Handout {
    std::uint32_t process = 0;
    std::int64_t at_ns = 0;
    std::uint64_t bytes = 0;
  };
  const Recording& recording_;
  std::vector<Handout> handouts_;  ///< by process and time
};

}  // namespace rangescope::analyze::cures
