// Events that the kernel counts of a thread, by perf's names: how to ask for one, and after how
// many a record is made.
//
// Periods are prime, so that no loop of a program runs in step with them, and long enough that a
// busy core makes some hundred records a second. What is rare is recorded each time, and so exact.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::sample::cpu {

struct CounterEvent {
  std::string name;  ///< "cycles", "page-faults", "r01c2"
  std::uint32_t type = 0;
  std::uint64_t config = 0, period = 1;
  bool in_kernel = false;  ///< happens in the kernel alone
};

/// A name of perf's, or `rHEX` as the processor's manual numbers its events; nothing for another.
[[nodiscard]] std::optional<CounterEvent> counter_event(std::string_view name);
/// All names but rHEX.
[[nodiscard]] std::vector<std::string> counter_names();

/// What a counter said in the end, on one core.
struct CounterReading {
  std::uint64_t count = 0, enabled_ns = 0, running_ns = 0;
};
struct CounterTotal {
  std::uint64_t count = 0;  ///< scaled to the whole run
  std::uint64_t running_ns = 0, possible_ns = 0;
};
/// Sums over cores. `clock`: the readings of an event that needs no hardware, and so ran as long as
/// the threads did; a core that has more events than counters takes turns, and what it counted is
/// scaled by the time that it had.
[[nodiscard]] CounterTotal counter_total(std::span<const CounterReading> counter,
                                         std::span<const CounterReading> clock);

}  // namespace rangescope::sample::cpu
