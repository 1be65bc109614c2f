// Checks of driver and GPUs: driver, gpus, mig, clocks.
#include <fmt/format.h>

#include "base/text.hpp"
#include "base/units.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Grade;

std::string cuda_text(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

// nvml.h, nvmlClocksThrottleReasons: what may hold clocks down. Idle (1) and the display (256) hold
// nothing down that anybody measures.
struct Limit {
  std::uint64_t bit;
  std::string_view name;
};
constexpr Limit kLimits[] = {{0x2, "the application clocks setting"},
                             {0x4, "the power cap"},
                             {0x8, "a hardware slowdown"},
                             {0x10, "a sync boost group"},
                             {0x20, "heat (software)"},
                             {0x40, "heat (hardware)"},
                             {0x80, "the power brake"}};

/// " in a container (docker)", after `link`; "" outside one.
std::string in_container(const MachineFacts& facts, std::string_view link) {
  if (facts.container.empty())
    return {};
  return fmt::format("{} ({})", link, facts.container);
}

/// " (1200 of 1980 MHz)"; "" where the clocks are unknown.
std::string clocks_text(const NvmlGpu& gpu) {
  if (!gpu.sm_clock_mhz || !gpu.max_sm_clock_mhz)
    return {};
  return fmt::format(" ({} of {} MHz)", *gpu.sm_clock_mhz, *gpu.max_sm_clock_mhz);
}

}  // namespace

Findings check_driver(const MachineFacts& facts) {
  if (facts.kernel_module.empty() && !facts.nvml.loaded)
    return {finding_of(
        "machine.no_driver",
        Grade::kWarn,
        "no NVIDIA kernel module in /proc/driver/nvidia, and libnvidia-ml.so.1 cannot be loaded")};
  if (facts.nvml.error_code == kNvmlVersionMismatch)
    return {
        finding_of("machine.driver_mismatch",
                   Grade::kFail,
                   "NVML reports: " + facts.nvml.error + "; kernel module " + facts.kernel_module)};
  if (facts.kernel_module.empty() && facts.nvml.error_code != 0)
    return {finding_of(
        "machine.no_kernel_module",
        Grade::kFail,
        "the driver's libraries are installed, but no kernel module is loaded; NVML reports: " +
            facts.nvml.error)};
  if (!facts.kernel_module.empty() && !facts.nvml.loaded)
    return {finding_of("machine.no_driver_libraries",
                       facts.container.empty() ? Grade::kWarn : Grade::kFail,
                       fmt::format("kernel module {} is loaded, but libnvidia-ml.so.1 is not: {}{}",
                                   facts.kernel_module,
                                   facts.nvml.error,
                                   in_container(facts, "; in a container")))};
  if (!facts.kernel_module.empty() && !facts.device_nodes)
    return {finding_of("machine.no_device_nodes",
                       Grade::kFail,
                       fmt::format("kernel module {} is loaded, but there is no /dev/nvidiactl{}",
                                   facts.kernel_module,
                                   in_container(facts, " in this container")))};
  if (facts.nvml.error_code != 0)
    return {finding_of("machine.driver_silent", Grade::kFail, "NVML reports: " + facts.nvml.error)};
  std::string version = facts.nvml.driver;
  if (version.empty())
    version = facts.kernel_module;
  std::string text = "driver " + version;
  if (facts.nvml.cuda_version > 0)
    text += ", serves programs up to " + cuda_text(facts.nvml.cuda_version);
  return {well(text)};
}

Findings check_gpus(const MachineFacts& facts) {
  std::vector<std::string> names;
  for (const NvmlGpu& gpu : facts.nvml.gpus)
    names.push_back(gpu.name);
  if (names.empty())
    names = facts.kernel_gpus;
  if (names.empty())
    return {skipped("there is none")};
  const std::string gpus =
      fmt::format("{}: {}", base::counted(names.size(), "GPU"), base::join(names, ", "));
  const auto visible = facts.environment.find("CUDA_VISIBLE_DEVICES");
  if (visible != facts.environment.end()) {
    const std::string_view value = base::trim(visible->second);
    // CUDA stops at the first entry that names no device.
    const bool names_none = value == "none" || base::lower(value) == "nodevfiles";
    if (value.empty() || value.starts_with("-") || names_none)
      return {
          finding_of("machine.gpus_hidden",
                     Grade::kFail,
                     gpus + "; CUDA_VISIBLE_DEVICES='" + visible->second + "' hides all of them")};
    return {well(gpus + "; CUDA_VISIBLE_DEVICES=" + visible->second)};
  }
  return {well(gpus)};
}

Findings check_mig(const MachineFacts& facts) {
  if (facts.nvml.gpus.empty())
    return {skipped("NVML names no GPU")};
  std::vector<std::string> shared;
  for (std::size_t i = 0; i < facts.nvml.gpus.size(); ++i)
    if (facts.nvml.gpus[i].mig.value_or(false))
      shared.push_back("GPU " + std::to_string(i));
  if (shared.empty())
    return {well("no")};
  return {
      finding_of("machine.mig_on", Grade::kWarn, base::join(shared, ", ") + ": MIG mode is on")};
}

Findings check_clocks(const MachineFacts& facts) {
  Findings out;
  bool is_reported = false;
  for (std::size_t i = 0; i < facts.nvml.gpus.size(); ++i) {
    const NvmlGpu& gpu = facts.nvml.gpus[i];
    const std::string gpu_name = "GPU " + std::to_string(i);
    if (gpu.clock_limits) {
      is_reported = true;
      std::vector<std::string> causes;
      for (const Limit& limit : kLimits)
        if (*gpu.clock_limits & limit.bit)
          causes.emplace_back(limit.name);
      if (!causes.empty())
        out.push_back(finding_of("machine.clocks_held",
                                 Grade::kWarn,
                                 fmt::format("{}: clocks are throttled now by {}{}",
                                             gpu_name,
                                             base::join(causes, ", "),
                                             clocks_text(gpu))));
    }
    if (gpu.application_clock_mhz && gpu.default_application_clock_mhz) {
      is_reported = true;
      if (*gpu.application_clock_mhz != *gpu.default_application_clock_mhz)
        out.push_back(finding_of("machine.application_clocks",
                                 Grade::kWarn,
                                 fmt::format("{}: application clock {} MHz, by default {} MHz",
                                             gpu_name,
                                             *gpu.application_clock_mhz,
                                             *gpu.default_application_clock_mhz)));
    }
  }
  if (!is_reported)
    return {skipped("NVML does not report it")};
  if (out.empty())
    out.push_back(well("no throttling (clocks locked with nvidia-smi -lgc do not show here)"));
  return out;
}

}  // namespace rangescope::doctor
