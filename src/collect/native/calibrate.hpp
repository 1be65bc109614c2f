// What this machine's GPU really reaches: device memory bandwidth by copying, FLOP/s by chains of
// fused multiply-adds and, where cuBLAS is installed, by large matrix products on the tensor cores.
//
// The driver and cuBLAS are loaded at run time (no CUDA at build), kernels are PTX that the driver
// compiles. Takes some seconds and up to 1.5 GiB of device memory. The best of several timings
// counts: a peak is what can be reached.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rangescope::collect::native {

struct Calibration {
  std::string device;             ///< name that the driver gives
  std::string driver;             ///< "13.0"
  double memory_bytes_per_s = 0;  ///< bytes read plus bytes written
  std::map<std::string, double>
      flop_per_s;  ///< keys of conf/device: fp32 fp64 tensor_bf16 tensor_fp16 tensor_tf32 ...
  std::vector<std::string> notes;  ///< what could not be measured, and why
};

/// kToolMissing without a driver, kNoInput without that GPU, kIo with CUDA's name of the error
/// where a call fails.
[[nodiscard]] base::Result<Calibration> calibrate(int ordinal);

}  // namespace rangescope::collect::native
