// Checks of the GPU's performance counters: who may read them, who holds them.
#include <fmt/format.h>

#include "base/text.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Grade;

/// ncu or nsys; the other processes that hold counters are DCGM's.
bool is_nsight(const ProcessSeen& process) {
  const std::string_view name = process.name;
  return name.starts_with("ncu") || name.starts_with("nsys") || name.starts_with("nv-nsight");
}

}  // namespace

Findings check_counter_access(const MachineFacts& facts) {
  // What the module option NVreg_RestrictProfilingToAdminUsers became.
  const auto param = facts.module_params.find("RmProfilingAdminOnly");
  if (param == facts.module_params.end() && facts.kernel_module.empty())
    return {skipped("there is no NVIDIA kernel module")};
  if (param == facts.module_params.end())
    return {skipped("/proc/driver/nvidia/params has no RmProfilingAdminOnly")};
  if (param->second == "0")
    return {well("every user may (RmProfilingAdminOnly is 0)")};
  if (!facts.capabilities)
    return {
        skipped("administrators only, and /proc/self/status does not show whether you are one")};
  if (is_administrator(facts))
    return {
        well("administrators only, and this process has CAP_SYS_ADMIN (RmProfilingAdminOnly is " +
             param->second + ")")};
  const std::string base = "RmProfilingAdminOnly is " + param->second + " and this process ";
  if (facts.user_namespace)
    return {finding_of(
        "machine.counters_locked_namespace",
        Grade::kFail,
        base + "runs in a user namespace, where CAP_SYS_ADMIN does not reach the driver")};
  if (!facts.container.empty())
    return {finding_of("machine.counters_locked_container",
                       Grade::kFail,
                       base + "has no CAP_SYS_ADMIN in this container (" + facts.container + ")")};
  model::Finding finding =
      finding_of("machine.counters_locked", Grade::kFail, base + "has no CAP_SYS_ADMIN");
  finding.commands = {
      "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee "
      "/etc/modprobe.d/nvidia-counters.conf"};
  return {finding};
}

Findings check_counter_holders(const MachineFacts& facts) {
  std::string scope;
  if (!facts.container.empty())
    scope = "; processes outside this container (" + facts.container + ") cannot be seen";
  if (facts.holders.empty())
    return {well("no DCGM, ncu or nsys runs" + scope)};
  std::vector<std::string> dcgm, tools;
  for (const ProcessSeen& process : facts.holders) {
    std::string text = fmt::format("{} (pid {})", process.name, process.pid);
    if (is_nsight(process))
      tools.push_back(std::move(text));
    else
      dcgm.push_back(std::move(text));
  }
  Findings out;
  if (!dcgm.empty())
    out.push_back(finding_of("machine.dcgm_running", Grade::kWarn, base::join(dcgm, ", ") + scope));
  if (!tools.empty())
    out.push_back(
        finding_of("machine.profiler_running", Grade::kWarn, base::join(tools, ", ") + scope));
  return out;
}

}  // namespace rangescope::doctor
