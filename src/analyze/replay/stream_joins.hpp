// Where streams wait for each other: by CUDA events, which one stream records and others or threads
// wait for, and by the legacy default stream, whose work comes after what blocking streams were
// given before it, and before what they are given next.
//
// What is in a stream at a time is what calls had put there by then. Empty where the recording
// has neither calls that record events nor kinds of streams. O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyze/replay/timeline.hpp"

namespace rangescope::analyze::replay {

class StreamJoins {
 public:
  StreamJoins(const model::Session& session, const Timeline& timeline);

  /// Works of other streams that come before this one: indexes into Timeline::works.
  [[nodiscard]] std::span<const Id> before(Id work) const;
  /// What a call that waited for an event waited for; null where no event is known.
  [[nodiscard]] const std::vector<Id>* awaited_by(Id launch) const;

 private:
  std::vector<Id> first_, before_;                   ///< first_: by work; one more than there are
  std::unordered_map<Id, std::vector<Id>> awaited_;  ///< by launch
};

}  // namespace rangescope::analyze::replay
