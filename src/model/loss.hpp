// What is missing: the run went on, but something that happened is not in the data. Every report prints its losses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rangescope::model {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };
[[nodiscard]] constexpr std::string_view severity_name(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

struct Loss {
  std::string kind;  ///< stable identifier, lower_snake_case: "torn_tail", "dropped_events", "unclosed_range"
  Severity severity = Severity::kWarning;
  std::uint64_t count = 0;  ///< how many events (or bytes, if `detail` says so); 0 where it cannot be known
  std::string detail;       ///< one sentence for people: what, where, what it means for the numbers
};

}  // namespace rangescope::model
