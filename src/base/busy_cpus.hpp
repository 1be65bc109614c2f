// How busy the CPUs of this machine are, with all that runs on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rangescope::base {

/// Of the CPUs that this process may run on, as /proc/stat has it.
struct BusyCpus {
  int cpus = 0;
  std::int64_t busy_ns = 0;  ///< since boot, of all of them
  std::int64_t at_ns = 0;    ///< CLOCK_MONOTONIC
};

/// Nothing where /proc does not say it.
[[nodiscard]] std::optional<BusyCpus> read_busy_cpus();

/// Time that a CPU was not idle, of a line of /proc/stat ("cpu0 2255 34 2290 22625563 6290 127 456
/// 12 0 0"), in ticks; nothing for another line.
struct CpuLine {
  int cpu = 0;
  std::int64_t busy_ticks = 0;
};
[[nodiscard]] std::optional<CpuLine> parse_cpu_line(std::string_view line);

}  // namespace rangescope::base
