// Attributes of a device as Nsight Compute names them, CUDA's numbers:
// "device__attribute_clock_rate" in kHz.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "model/gpu.hpp"

namespace rangescope::read::ncu {

class DeviceAttributes {
 public:
  static constexpr std::string_view kPrefix = "device__attribute_";

  /// `name` without the prefix; those that a session does not hold are left alone.
  void set(std::string_view name, double value, model::Device& device) {
    const auto rounded = static_cast<std::uint64_t>(std::clamp(value, 0.0, 1e18));
    const auto small = static_cast<std::uint32_t>(std::min<std::uint64_t>(rounded, UINT32_MAX));
    if (name == "compute_capability_major")
      device.compute_major = small;
    if (name == "compute_capability_minor")
      device.compute_minor = small;
    if (name == "multiprocessor_count")
      device.sm_count = small;
    if (name == "l2_cache_size")
      device.l2_bytes = rounded;
    if (name == "clock_rate")
      device.sm_clock_hz = value * 1e3;
    if (name == "memory_clock_rate")
      memory_khz_ = value;
    if (name == "global_memory_bus_width")
      bus_bits_ = value;
    device.memory_bytes_per_s =
        2e3 * memory_khz_ * bus_bits_ / 8;  // double data rate: two transfers a clock
  }

 private:
  double memory_khz_ = 0, bus_bits_ = 0;
};

}  // namespace rangescope::read::ncu
