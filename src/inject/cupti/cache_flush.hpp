// Empties the caches of a GPU, so that measured work starts as under ncu: a kernel of ours reads a
// buffer of twice the L2 size. The cache then holds clean lines that no kernel of the program uses.
// After a memset a measured kernel would first have to write them back (seen on an H200: twice the
// DRAM bytes).
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <type_traits>

namespace rangescope::inject::cupti {

/// The driver functions that counters need, from the copy of libcuda that the program has loaded.
struct Driver {
  CUresult (*cuCtxGetCurrent)(CUcontext*) = nullptr;
  CUresult (*cuCtxSetCurrent)(CUcontext) = nullptr;
  CUresult (*cuCtxSynchronize)() = nullptr;
  CUresult (*cuCtxGetDevice)(CUdevice*) = nullptr;
  CUresult (*allocate)(CUdeviceptr*, std::size_t) = nullptr;
  CUresult (*set_bytes)(CUdeviceptr, unsigned char, std::size_t) = nullptr;
  CUresult (*attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*cuModuleLoadData)(CUmodule*, const void*) = nullptr;
  CUresult (*cuModuleGetFunction)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*cuLaunchKernel)(CUfunction,
                             unsigned,
                             unsigned,
                             unsigned,
                             unsigned,
                             unsigned,
                             unsigned,
                             unsigned,
                             CUstream,
                             void**,
                             void**) = nullptr;

  bool load() {
    void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr)
      return false;
    const auto get = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return get(cuCtxGetCurrent, "cuCtxGetCurrent") && get(cuCtxSetCurrent, "cuCtxSetCurrent") &&
           get(cuCtxSynchronize, "cuCtxSynchronize") && get(cuCtxGetDevice, "cuCtxGetDevice") &&
           get(allocate, "cuMemAlloc_v2") && get(set_bytes, "cuMemsetD8_v2") &&
           get(attribute, "cuDeviceGetAttribute") && get(cuModuleLoadData, "cuModuleLoadData") &&
           get(cuModuleGetFunction, "cuModuleGetFunction") && get(cuLaunchKernel, "cuLaunchKernel");
  }
};

class CacheFlush {
 public:
  /// Makes buffer and kernel in the current context. False without memory, or without a compiler in
  /// the driver.
  [[nodiscard]] bool make(const Driver& driver, CUdevice device);
  [[nodiscard]] bool ready() const { return kernel_ != nullptr; }
  /// Launches the kernel into a stream of the current context. Does nothing before make().
  void run(const Driver& driver, CUstream stream);
  /// The call that a callback reports on this thread is our own.
  [[nodiscard]] static bool running();

 private:
  CUfunction kernel_ = nullptr;
  CUdeviceptr buffer_ = 0;
  std::size_t count_ = 0;  // of 16 bytes
};

}  // namespace rangescope::inject::cupti
