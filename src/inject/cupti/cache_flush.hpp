// Empties the caches of a GPU, so that what is measured begins as under ncu: a kernel of ours reads a buffer of twice
// the L2. What lies in the cache afterwards is nobody's and clean; after a memset a measured kernel would have to write
// it back first (seen on an H200: twice the DRAM bytes).
#pragma once

#include <cuda.h>

#include <cstddef>

#include "inject/cupti/driver.hpp"

namespace rangescope::inject::cupti {

class CacheFlush {
 public:
  /// Buffer and kernel, in the current context. False where there is no memory for them, or no compiler in the driver.
  [[nodiscard]] bool make(const Driver& driver, CUdevice device);
  [[nodiscard]] bool ready() const { return kernel_ != nullptr; }
  /// Puts the kernel into the stream of the current context. Harmless before make().
  void run(const Driver& driver, CUstream stream);
  /// This thread is in run(): the launch that a callback tells of is our own.
  [[nodiscard]] static bool running();

 private:
  CUfunction kernel_ = nullptr;
  CUdeviceptr buffer_ = 0;
  std::size_t count_ = 0;  // of 16 bytes
};

}  // namespace rangescope::inject::cupti
