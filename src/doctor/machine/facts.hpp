// What is known of this machine: plain data, gathered once; nothing is judged here.
//
// Everything that is read from files is read below `root`, so that a recorded /proc can be a
// machine in tests; the environment and the library of NVML are given too. Gathering starts no
// program that measures: it asks the first nsys and the first ncu that are found what they can do
// (cached, collect/nsight/tools.hpp) and nsys's importer for its version.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/nsight/abilities.hpp"

namespace rangescope::doctor {

/// Where to look.
struct MachineSources {
  std::filesystem::path root = "/";
  std::map<std::string, std::string> environment;
  std::filesystem::path nvml = "libnvidia-ml.so.1";  ///< handed to dlopen; "" asks no NVML
  std::filesystem::path inject_library;  ///< "" where none was found; then inject_error says why
  std::string inject_error;
  std::string
      launcher;  ///< of MPI programs: the first of mpirun and srun on PATH; "" where there is none
  std::string duckdb;                              ///< "v1.1.3"; "" where its library was not found
  std::filesystem::path runs = "rangescope-runs";  ///< where runs will lie; need not exist
};
/// This machine and this process's environment.
[[nodiscard]] MachineSources this_machine();

/// nsys or ncu.
struct ToolSeen {
  std::vector<std::filesystem::path> paths;  ///< all that were found, the one in use first
  std::optional<collect::Abilities> in_use;  ///< of the first
  std::string error;                         ///< why not
  std::vector<collect::Version>
      bundled_cupti;  ///< nsys: CUDA versions (12.4) of the CUPTIs that it ships, ascending
  std::optional<std::filesystem::path> importer;  ///< nsys: QdstrmImporter
  std::string importer_error;  ///< what it said when it was asked for its version and could not run
};

// What NVIDIA's management library says of driver and GPUs. Loaded at run time; nothing is linked,
// no header is needed. Function names and types are those of nvml.h (version 2 of the API,
// unchanged since CUDA 8; MIG since 11.0). Each GPU costs some microseconds; loading it a few
// milliseconds.

struct NvmlGpu {
  std::string name;
  std::optional<bool> mig;  ///< absent where the GPU cannot do MIG
  std::optional<std::uint64_t>
      clock_limits;  ///< bits of nvmlClocksThrottleReasons: what holds the clocks down now
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

/// A process that may hold the GPU's performance counters.
struct ProcessSeen {
  std::uint32_t pid = 0;
  std::string name;  ///< of /proc/<pid>/comm
};

/// What perf_event_open answered to a program's CPU samples.
struct CpuSamplingSeen {
  std::string refused, cure;  ///< why there are none, and what to change
  bool kernel = true;         ///< samples of the kernel too
  bool switches = true;       ///< waits between context switches
};

struct MachineFacts {
  std::string kernel_module;  ///< "580.159.03"; "" where no NVIDIA kernel module is loaded
  std::vector<std::string> kernel_gpus;  ///< models, of /proc/driver/nvidia/gpus
  std::map<std::string, std::string> module_params;
  bool device_nodes = false;  ///< /dev/nvidiactl is there
  Nvml nvml;

  std::optional<std::uint64_t> capabilities;  ///< effective
  bool user_namespace = false;                ///< capabilities hold in a user namespace only
  std::string container;  ///< evidence that this is one: "/.dockerenv"; "" where there is none

  std::map<std::string, std::string> environment;
  ToolSeen nsys, ncu;
  std::string cupti;        ///< "CUPTI 13.0.1, /usr/local/cuda/lib64/libcupti.so.13"
  std::string cupti_error;  ///< why there is none
  std::string inject_library, inject_error;
  std::string mpi_library;  ///< librangescope_mpi.so in the same folder; "" where there is none
  std::string launcher, duckdb;  ///< as in MachineSources

  std::vector<ProcessSeen> holders;
  std::optional<int> perf_event_paranoid, ptrace_scope;
  std::optional<CpuSamplingSeen>
      cpu_sampling;  ///< absent unless asked for: gathering opens no event
  std::map<std::string, std::uint64_t> soft_limits;  ///< of /proc/self/limits; unlimited is absent
  bool limits_known = false;
  std::filesystem::path runs;
  std::optional<std::uint64_t> free_bytes;  ///< for this user, where runs will lie
  std::string runs_error;                   ///< why runs cannot be written there
};

[[nodiscard]] MachineFacts gather_machine(const MachineSources& sources);

/// CAP_SYS_ADMIN that the driver respects: effective, and not only in a user namespace.
[[nodiscard]] bool is_administrator(const MachineFacts& facts);

}  // namespace rangescope::doctor
