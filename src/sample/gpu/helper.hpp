// The sampling process: rangescope starts itself once more, so that the driver, CUPTI and NVML are
// loaded where nothing of rangescope or of the program depends on them. It samples the GPUs that
// the program can see into files of a folder, says `ready` on stdout when it has begun, and ends
// when its stdin does: also when rangescope was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sample/gpu/counters.hpp"

namespace rangescope::sample {

/// The first word of the command line that makes rangescope a sampling process.
inline constexpr const char* kHelperWord = "__sample-devices";

struct Options {
  std::filesystem::path folder;  ///< exists
  std::int64_t interval_ns = 1'000'000;
  std::uint64_t most_bytes = 512ull << 20;  ///< of each device's file
  std::vector<Wanted> wanted;               ///< none: NVML alone
};

/// Of the devices that this process sees [first, last) are its own: two samplers cannot hold one
/// device, so that each local rank of a job takes its share. All of them where a launcher does not
/// say how many ranks there are, or where the program was given devices of its own
/// (CUDA_VISIBLE_DEVICES).
[[nodiscard]] std::pair<std::size_t, std::size_t> own_share(std::size_t devices);

/// What follows kHelperWord.
[[nodiscard]] std::vector<std::string> helper_arguments(const Options& options);

/// The sampling process itself; `arguments` as of helper_arguments(). Its exit code.
[[nodiscard]] int run_helper(const std::vector<std::string>& arguments);

/// A sampling process for a program: started before it, stopped after it.
class Beside {
 public:
  Beside() = default;
  Beside(Beside&& other) noexcept;
  Beside& operator=(Beside&& other) noexcept;
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() { stop(); }

  /// Starts it and waits until it samples, at most a few seconds. kToolMissing where nothing can be
  /// sampled.
  [[nodiscard]] static base::Result<Beside> start(const Options& options);
  /// Ends it; twice is once. False when it had ended before, or had to be killed.
  bool stop();

 private:
  int pid_ = -1, input_ = -1;
};

}  // namespace rangescope::sample
