#include "base/busy_cpus.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::base {

std::optional<CpuLine> parse_cpu_line(std::string_view line) {
  constexpr std::string_view kPrefix = "cpu";
  // user, nice, system, idle, iowait, irq, softirq, steal; what a guest runs is in user and nice
  constexpr std::size_t kIdle = 3, kIoWait = 4, kFields = 8;
  const std::vector<std::string_view> words = split(line, ' ');
  if (words.empty() || !words[0].starts_with(kPrefix) || words.size() <= kFields)
    return std::nullopt;
  const auto cpu = to_uint(words[0].substr(kPrefix.size()));
  if (!cpu)
    return std::nullopt;
  CpuLine parsed{static_cast<int>(*cpu), 0};
  for (std::size_t field = 0; field < kFields; ++field) {
    const auto ticks = to_uint(words[field + 1]);
    if (!ticks)
      return std::nullopt;
    if (field != kIdle && field != kIoWait)
      parsed.busy_ticks += static_cast<std::int64_t>(*ticks);
  }
  return parsed;
}

std::optional<BusyCpus> read_busy_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const auto text = read_file("/proc/stat");
  const std::int64_t ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (!text || ticks_per_second <= 0 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return std::nullopt;
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  BusyCpus all;
  all.at_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  for (const std::string_view line : split(*text, '\n')) {
    const auto of_cpu = parse_cpu_line(line);
    if (!of_cpu || of_cpu->cpu >= CPU_SETSIZE || !CPU_ISSET(of_cpu->cpu, &allowed))
      continue;
    ++all.cpus;
    all.busy_ns += of_cpu->busy_ticks * (kSecond_ns / ticks_per_second);
  }
  if (all.cpus == 0)
    return std::nullopt;
  return all;
}

}  // namespace rangescope::base
