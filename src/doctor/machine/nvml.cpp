#include "doctor/machine/nvml.hpp"

#include <dlfcn.h>

namespace rangescope::doctor {
namespace {

using Device = void*;

class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { ::dlclose(handle_); }

  /// The answer of a function, or kNoFunction where this version has none of that name.
  template <class... Arguments>
  [[nodiscard]] int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(handle_, name));
    return function ? function(arguments...) : kNoFunction;
  }
  [[nodiscard]] std::string words_of(int code) const {
    const auto function = reinterpret_cast<const char* (*)(int)>(::dlsym(handle_, "nvmlErrorString"));
    const char* words = function ? function(code) : nullptr;
    return words ? words : "NVML error " + std::to_string(code);
  }

  static constexpr int kNoFunction = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND

 private:
  void* handle_;
};

constexpr unsigned kGraphics = 0, kSm = 1;  // nvmlClockType_t
constexpr unsigned kTextBytes = 96;         // NVML_DEVICE_NAME_V2_BUFFER_SIZE

std::optional<unsigned> clock_of(const Library& nvml, const char* name, Device device, unsigned type) {
  unsigned mhz = 0;
  if (nvml.call(name, device, type, &mhz) != 0) return std::nullopt;
  return mhz;
}

NvmlGpu gpu_of(const Library& nvml, Device device) {
  NvmlGpu gpu;
  char name[kTextBytes] = {};
  if (nvml.call("nvmlDeviceGetName", device, static_cast<char*>(name), kTextBytes - 1) == 0) gpu.name = name;
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
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    answer.error = why ? why : "cannot be loaded";
    return answer;
  }
  const Library nvml(handle);
  answer.loaded = true;
  answer.error_code = nvml.call("nvmlInit_v2");
  if (answer.error_code != 0) {
    answer.error = nvml.words_of(answer.error_code);
    return answer;
  }
  char text[kTextBytes] = {};
  if (nvml.call("nvmlSystemGetDriverVersion", static_cast<char*>(text), kTextBytes - 1) == 0) answer.driver = text;
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
