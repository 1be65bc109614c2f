// What is missing: the run went on, but something that happened is not in the data. Every report prints its losses.
#pragma once

#include <cstdint>
#include <string>

namespace rangescope::model {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };

struct Loss {
  std::string kind;  ///< stable identifier, lower_snake_case: "torn_tail", "dropped_events", "unclosed_range"
  Severity severity = Severity::kWarning;
  std::uint64_t count = 0;  ///< how many events (or bytes, if `detail` says so); 0 where it cannot be known
  std::string detail;       ///< one sentence for people: what, where, what it means for the numbers
};

}  // namespace rangescope::model
