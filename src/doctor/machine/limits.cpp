// Checks of what the operating system allows: perf events, room on disk, ulimits.
#include <fmt/format.h>

#include "base/units.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Grade;

std::string limit_text(const MachineFacts& facts, const char* name, bool bytes) {
  const auto found = facts.soft_limits.find(name);
  if (found == facts.soft_limits.end())
    return "unlimited";
  if (bytes)
    return base::format_bytes(static_cast<double>(found->second));
  return std::to_string(found->second);
}

}  // namespace

Findings check_perf_events(const MachineFacts& facts) {
  if (!facts.perf_event_paranoid)
    return {skipped("/proc/sys/kernel/perf_event_paranoid cannot be read")};
  const std::string text =
      "kernel.perf_event_paranoid is " + std::to_string(*facts.perf_event_paranoid);
  if (*facts.perf_event_paranoid <= 2 || is_administrator(facts))
    return {well(text)};
  model::Finding finding = finding_of("machine.perf_events_locked", Grade::kWarn, text);
  finding.commands = {"sudo sysctl -w kernel.perf_event_paranoid=2"};
  return {finding};
}

Findings check_cpu_sampling(const MachineFacts& facts) {
  if (!facts.cpu_sampling)
    return {skipped("perf_event_open was not asked")};
  const CpuSamplingSeen& sampling = *facts.cpu_sampling;
  if (!sampling.refused.empty()) {
    model::Finding finding =
        finding_of("machine.cpu_not_sampled", Grade::kWarn, sampling.refused, sampling.cure);
    if (sampling.refused.find("paranoid") != std::string::npos)
      finding.commands = {"sudo sysctl -w kernel.perf_event_paranoid=2"};
    return {finding};
  }
  Findings out;
  std::string text = "call chains";
  if (sampling.switches)
    text += " and waits";
  text += " of programs started here";
  if (!sampling.kernel)
    text += "; the operating system's part is computed, since its code may not be sampled";
  constexpr unsigned kPtrace = 19;  // CAP_SYS_PTRACE
  const bool has_ptrace = (facts.capabilities.value_or(0) >> kPtrace & 1) != 0;
  if (facts.ptrace_scope.value_or(0) >= 2 && !has_ptrace)
    out.push_back(finding_of("machine.python_hidden",
                             Grade::kWarn,
                             "kernel.yama.ptrace_scope is " + std::to_string(*facts.ptrace_scope)));
  out.push_back(well(text));
  return out;
}

Findings check_disk(const MachineFacts& facts) {
  if (!facts.runs_error.empty())
    return {finding_of("machine.runs_not_writable", Grade::kFail, facts.runs_error)};
  if (!facts.free_bytes)
    return {skipped("the file system does not report it")};
  // A native capture may take 4 GiB a process by default (collector/native); a report of ncu some
  // 100 MiB.
  constexpr std::uint64_t kLittle = 4ull << 30, kTooLittle = 256ull << 20;
  const std::string text = base::format_bytes(static_cast<double>(*facts.free_bytes)) +
                           " free for " + facts.runs.string();
  if (*facts.free_bytes < kTooLittle)
    return {finding_of("machine.disk_full", Grade::kFail, text)};
  if (*facts.free_bytes < kLittle)
    return {finding_of("machine.disk_full", Grade::kWarn, text)};
  return {well(text)};
}

Findings check_limits(const MachineFacts& facts) {
  if (!facts.limits_known)
    return {skipped("/proc/self/limits cannot be read")};
  Findings out;
  const auto low = [&](const char* name, std::uint64_t least) {
    const auto found = facts.soft_limits.find(name);
    return found != facts.soft_limits.end() && found->second < least;
  };
  // nsys 2022.4.2 works with 24 of them and ends with an exception at 16; the program's own come on
  // top.
  if (low("open files", 64))
    out.push_back(finding_of("machine.few_open_files",
                             Grade::kWarn,
                             limit_text(facts, "open files", false) + " open files"));
  if (facts.soft_limits.count("file size"))
    out.push_back(finding_of("machine.file_size_limited",
                             Grade::kWarn,
                             "files may grow to " + limit_text(facts, "file size", true)));
  if (facts.soft_limits.count("address space"))
    out.push_back(finding_of("machine.address_space_limited",
                             Grade::kWarn,
                             "a process may map " + limit_text(facts, "address space", true)));
  if (out.empty())
    out.push_back(well(fmt::format("{} open files, {} locked memory, file size {}",
                                   limit_text(facts, "open files", false),
                                   limit_text(facts, "locked memory", true),
                                   limit_text(facts, "file size", true))));
  return out;
}

}  // namespace rangescope::doctor
