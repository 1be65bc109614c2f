// The path of a range within its domain, as counters know their targets: names bottom to top, and a
// hash of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/counters/plan.hpp"
#include "inject/nvtx/writer.hpp"

namespace rangescope::inject::cupti {

struct RangePath {
  static constexpr std::size_t kDeepest = 64;  ///< deeper stacks are not looked at
  counters::Piece names[kDeepest];             ///< valid during the NVTX call
  std::size_t depth = 0;
  counters::Piece domain{"", 0};
  Payload payloads[kDeepest];  ///< of each name; type 0 where paths are not told apart by payload
  std::uint64_t hash = 0;
};

/// The path of the push/pop range that `event` opens on this thread; false when it is too deep.
/// `by_payload`: the same names with other whole-number payloads are another path.
[[nodiscard]] bool path_of_push(const Event& event, bool by_payload, RangePath& path);
/// The path of a start/end range: its name alone.
void path_of_start(const Event& event, bool by_payload, RangePath& path);
/// Name `index` as reports show it, "decode [16]" with a payload: the bytes written into `text`, at
/// most `most`.
[[nodiscard]] std::size_t shown_name(const RangePath& path, std::size_t index, char* text,
                                     std::size_t most);

}  // namespace rangescope::inject::cupti
