// The native collector: the program runs unchanged; its NVTX and CUDA load librangescope_inject.so.
//
// NVTX 3 loads the library named by NVTX_INJECTION64_PATH at its first call, CUDA the one named by
// CUDA_INJECTION64_PATH at cuInit. Each variable names one library: if another tool has set it, the
// plan is refused with that library's name, or, with `chain_injection`, ours is loaded first and
// passes every call on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collect/collector.hpp"

namespace rangescope::collect::native {

inline constexpr std::string_view kLibraryName = "librangescope_inject.so";
inline constexpr std::uint64_t kDefaultCaptureBytes = 4ull << 30;

struct Options {
  std::filesystem::path library;                           ///< from find_library()
  std::uint64_t max_capture_bytes = kDefaultCaptureBytes;  ///< a process
  bool chain_injection = false;
  std::filesystem::path mpi_library;  ///< preloaded: MPI calls become ranges; "" for none
  std::map<std::string, std::string> extra_env;  ///< further settings of the library
  /// The environment that the program would inherit; std::getenv when it is empty.
  std::function<std::optional<std::string>(const std::string&)> environment;
};

[[nodiscard]] base::Result<Plan> plan(const Options& options, const Request& request);

/// librangescope_mpi.so in the folder of our library, if it is requested or the program uses MPI: a
/// process of Open MPI, of PMIx (srun --mpi=pmix) or PMI (MPICH, Intel MPI), or a launcher. Else
/// "".
[[nodiscard]] std::filesystem::path mpi_library(const std::filesystem::path& library,
                                                const std::vector<std::string>& command,
                                                bool is_requested);

/// $RANGESCOPE_INJECT, else in the folder of the binary, in its ../lib*, or in the build tree.
/// kToolMissing with the places.
[[nodiscard]] base::Result<std::filesystem::path> find_library();

}  // namespace rangescope::collect::native
