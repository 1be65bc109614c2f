#include "doctor/machine/nvml.hpp"

#include "base/nvml.hpp"

namespace rangescope::doctor {
namespace {

using Library = base::Nvml;
using Device = base::Nvml::Device;

constexpr unsigned kGraphics = 0, kSm = 1;  // nvmlClockType_t

std::optional<unsigned> clock_of(const Library& nvml, const char* name, Device device, unsigned type) {
  unsigned mhz = 0;
  if (nvml.call(name, device, type, &mhz) != 0) return std::nullopt;
  return mhz;
}

NvmlGpu gpu_of(const Library& nvml, Device device) {
  NvmlGpu gpu;
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  unsigned mig = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetMigMode", device, &mig, &pending) == 0) gpu.mig = mig != 0;
  unsigned long long limits = 0;
  if (nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &limits) == 0) gpu.clock_limits = limits;
  gpu.sm_clock_mhz = clock_of(nvml, "nvmlDeviceGetClockInfo", device, kSm);
  gpu.max_sm_clock_mhz = clock_of(nvml, "nvmlDeviceGetMaxClockInfo", device, kSm);
  gpu.application_clock_mhz = clock_of(nvml, "nvmlDeviceGetApplicationsClock", device, kGraphics);
  gpu.default_application_clock_mhz = clock_of(nvml, "nvmlDeviceGetDefaultApplicationsClock", device, kGraphics);
  return gpu;
}

}  // namespace

Nvml ask_nvml(const std::filesystem::path& library) {
  Nvml answer;
  if (library.empty()) {
    answer.error = "NVML was not asked";
    return answer;
  }
  const Library nvml(library.c_str());
  if (!nvml.loaded()) {
    const char* why = ::dlerror();
    answer.error = why ? why : "cannot be loaded";
    return answer;
  }
  answer.loaded = true;
  answer.error_code = nvml.call("nvmlInit_v2");
  if (answer.error_code != 0) {
    answer.error = nvml.words_of(answer.error_code);
    return answer;
  }
  answer.driver = nvml.text("nvmlSystemGetDriverVersion");
  int cuda = 0;
  if (nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0) answer.cuda_version = cuda;
  unsigned count = 0;
  if (nvml.call("nvmlDeviceGetCount_v2", &count) == 0) {
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0) answer.gpus.push_back(gpu_of(nvml, device));
    }
  }
  (void)nvml.call("nvmlShutdown");
  return answer;
}

}  // namespace rangescope::doctor
