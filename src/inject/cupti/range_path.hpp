// The path of a range within its domain, which identifies a target of counters: names bottom to
// top, and a hash of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/counters/plan.hpp"
#include "inject/nvtx/writer.hpp"

namespace rangescope::inject::cupti {

struct RangePath {
  static constexpr std::size_t kDeepest = 64;  ///< deeper stacks are ignored
  counters::Piece names[kDeepest];             ///< valid during the NVTX call
  std::size_t depth = 0;
  counters::Piece domain{"", 0};
  Payload payloads[kDeepest];  ///< of each name; type 0 if it is not part of the path
  std::uint64_t hash = 0;
};

/// The path of the push/pop range that `event` opens on this thread; false if it is too deep. With
/// `by_payload`, the same names with other integer payloads are another path.
[[nodiscard]] bool path_of_push(const Event& event, bool by_payload, RangePath& path);
/// The path of a start/end range: only its name.
void path_of_start(const Event& event, bool by_payload, RangePath& path);
/// Writes name `index` as reports show it, "decode [16]" with a payload. Returns the number of
/// bytes, at most `capacity`.
[[nodiscard]] std::size_t shown_name(const RangePath& path,
                                     std::size_t index,
                                     char* text,
                                     std::size_t capacity);

}  // namespace rangescope::inject::cupti
