// What NVIDIA's management library says of driver and GPUs. Loaded at run time; nothing is linked, no header is needed.
//
// Function names and types are those of nvml.h (version 2 of the API, unchanged since CUDA 8; MIG since 11.0). Each GPU
// costs some microseconds; loading it a few milliseconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rangescope::doctor {

struct NvmlGpu {
  std::string name;
  std::optional<bool> mig;                    ///< absent where the GPU cannot do MIG
  std::optional<std::uint64_t> clock_limits;  ///< bits of nvmlClocksThrottleReasons: what holds the clocks down now
  std::optional<unsigned> sm_clock_mhz, max_sm_clock_mhz;
  std::optional<unsigned> application_clock_mhz, default_application_clock_mhz;  ///< graphics
};

struct Nvml {
  bool loaded = false;   ///< the library is there
  std::string error;     ///< why there are no answers: of dlopen, or of nvmlInit
  int error_code = 0;    ///< nvmlReturn_t of nvmlInit
  std::string driver;    ///< "580.159.03"
  int cuda_version = 0;  ///< that the driver serves: 13000 is 13.0; 0 where unknown
  std::vector<NvmlGpu> gpus;
};

inline constexpr int kNvmlDriverNotLoaded = 9, kNvmlVersionMismatch = 18;

/// Never fails: what cannot be had is absent.
[[nodiscard]] Nvml ask_nvml(const std::filesystem::path& library);

}  // namespace rangescope::doctor
