// Checks of the environment that a profiled program would inherit: injected libraries, stub
// drivers.
#include "base/text.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Grade;

std::string variable(const MachineFacts& facts, const char* name) {
  const auto found = facts.environment.find(name);
  if (found == facts.environment.end())
    return {};
  return found->second;
}

}  // namespace

Findings check_injection(const MachineFacts& facts) {
  Findings out;
  std::vector<std::string> injected;
  for (const char* name :
       {"NVTX_INJECTION64_PATH", "NVTX_INJECTION32_PATH", "CUDA_INJECTION64_PATH"})
    if (const std::string value = variable(facts, name); !value.empty())
      injected.push_back(std::string(name) + "=" + value);
  if (!injected.empty()) {
    model::Finding finding =
        finding_of("machine.injection_set", Grade::kWarn, base::join(injected, "; "));
    std::string names;
    for (const std::string& setting : injected)
      names += " " + setting.substr(0, setting.find('='));
    finding.commands = {"unset" + names};
    out.push_back(std::move(finding));
  }
  if (const std::string preload = variable(facts, "LD_PRELOAD"); !preload.empty())
    out.push_back(finding_of("machine.preload_set", Grade::kWarn, "LD_PRELOAD=" + preload));
  if (out.empty())
    out.push_back(well("no injection variable is set, and no LD_PRELOAD"));
  return out;
}

Findings check_stubs(const MachineFacts& facts) {
  const std::string path = variable(facts, "LD_LIBRARY_PATH");
  for (const std::string_view folder : base::split(path, ':')) {
    if (folder.ends_with("/stubs") || folder.ends_with("/stubs/"))
      return {finding_of(
          "machine.cuda_stubs", Grade::kWarn, "LD_LIBRARY_PATH holds " + std::string(folder))};
  }
  if (path.empty())
    return {well("LD_LIBRARY_PATH is not set")};
  return {well("no stubs folder in LD_LIBRARY_PATH")};
}

}  // namespace rangescope::doctor
