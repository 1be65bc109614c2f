// The driver functions that counters need, from the copy of libcuda that the program has loaded.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <type_traits>

namespace rangescope::inject::cupti {

// The driver functions that are needed, from the copy that the program has loaded.
struct Driver {
  CUresult (*cuCtxGetCurrent)(CUcontext*) = nullptr;
  CUresult (*cuCtxSetCurrent)(CUcontext) = nullptr;
  CUresult (*cuCtxSynchronize)() = nullptr;
  CUresult (*cuCtxGetDevice)(CUdevice*) = nullptr;

  bool load() {
    void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return false;
    const auto get = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return get(cuCtxGetCurrent, "cuCtxGetCurrent") && get(cuCtxSetCurrent, "cuCtxSetCurrent") &&
           get(cuCtxSynchronize, "cuCtxSynchronize") && get(cuCtxGetDevice, "cuCtxGetDevice");
  }
};

}  // namespace rangescope::inject::cupti
