// Energy, clocks, temperature, limits and memory of GPUs, read through NVML in a thread of its own:
// a call takes milliseconds. Loaded at run time; without it there are no such samples.
//
// The energy counter moves every 10 to 100 ms, so a sample reaches from one change to a later one,
// at least 190 ms; the rest is asked for once a second.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "sample/gpu/counters.hpp"

namespace rangescope::sample {

class NvmlSampler {
 public:
  /// Samples `devices` (by UUID; all GPUs of the machine when there are none) into files of
  /// `folder` until destroyed. Nothing where NVML is not there.
  static std::unique_ptr<NvmlSampler> start(const std::vector<Device>& devices,
                                            const std::filesystem::path& folder,
                                            std::uint64_t most_bytes);
  NvmlSampler& operator=(NvmlSampler&&) = delete;
  ~NvmlSampler();

  struct Gpu;

 private:
  NvmlSampler();
  void run();

  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace rangescope::sample
