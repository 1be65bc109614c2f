#include "sample/cpu/counters.hpp"

#include <linux/perf_event.h>

#include <charconv>
#include <cmath>

namespace rangescope::sample::cpu {
namespace {

constexpr std::uint64_t cache(std::uint64_t id, std::uint64_t result) {
  return id | std::uint64_t{PERF_COUNT_HW_CACHE_OP_READ} << 8 | result << 16;
}

struct NamedCounter {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t config, period;
  bool in_kernel = false;
};
constexpr NamedCounter kCounters[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 10'000'019},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 10'000'019},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 10'000'019},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 2'000'003},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 100'003},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 200'003},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 50'021},
    {"LLC-loads",
     PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_RESULT_ACCESS),
     200'003},
    {"LLC-load-misses",
     PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_RESULT_MISS),
     50'021},
    {"dTLB-load-misses",
     PERF_TYPE_HW_CACHE,
     cache(PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_RESULT_MISS),
     50'021},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1, true},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1, true},
};

}  // namespace

std::optional<CounterEvent> counter_event(std::string_view name) {
  for (const NamedCounter& counter : kCounters)
    if (counter.name == name)
      return CounterEvent{
          std::string(name), counter.type, counter.config, counter.period, counter.in_kernel};
  std::uint64_t raw = 0;
  const char* end = name.data() + name.size();
  if (name.size() < 2 || name.front() != 'r')
    return std::nullopt;
  if (const auto read = std::from_chars(name.data() + 1, end, raw, 16);
      read.ec != std::errc() || read.ptr != end)
    return std::nullopt;
  return CounterEvent{std::string(name), PERF_TYPE_RAW, raw, 1'000'003};
}

std::vector<std::string> counter_names() {
  std::vector<std::string> names;
  for (const NamedCounter& counter : kCounters)
    names.emplace_back(counter.name);
  return names;
}

CounterTotal counter_total(std::span<const CounterReading> counter,
                           std::span<const CounterReading> clock) {
  CounterTotal total;
  for (const CounterReading& core : counter) {
    total.count += core.count;
    total.running_ns += core.running_ns;
  }
  for (const CounterReading& core : clock)
    total.possible_ns += core.running_ns;
  // Events are not begun at the same nanosecond.
  if (static_cast<double>(total.running_ns) < 0.99 * static_cast<double>(total.possible_ns) &&
      total.running_ns > 0)
    total.count = static_cast<std::uint64_t>(
        std::llround(static_cast<double>(total.count) * static_cast<double>(total.possible_ns) /
                     static_cast<double>(total.running_ns)));
  return total;
}

}  // namespace rangescope::sample::cpu
