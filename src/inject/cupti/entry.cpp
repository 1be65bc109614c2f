// Where CUDA comes in: the driver loads the library that CUDA_INJECTION64_PATH names during cuInit and calls
// InitializeInjection. A program that never initialises CUDA never comes here, and CUPTI is never loaded in it.
//
// The stream is RANGESCOPE_DIR/<pid>.gpu; after an exec in the same process, <pid>.1.gpu and so on. Without
// RANGESCOPE_DIR nothing is recorded. RANGESCOPE_CHAIN_CUDA names another injection library, which is started
// afterwards.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "inject/cupti/trace.hpp"
#include "inject/nvtx/quiet.hpp"
#include "inject/nvtx/writer.hpp"
#include "wire/names.hpp"

namespace {

namespace cupti = rangescope::inject::cupti;
namespace wire = rangescope::wire;

bool free_path(const char* folder, char* path, std::size_t size) {
  for (int image = 0; image < 1000; ++image) {
    if (image == 0)
      std::snprintf(path, size, "%s/%d.gpu", folder, static_cast<int>(getpid()));
    else
      std::snprintf(path, size, "%s/%d.%d.gpu", folder, static_cast<int>(getpid()), image);
    if (access(path, F_OK) != 0) return true;
  }
  return false;
}

void start() {
  const char* folder = std::getenv(rangescope::wire::kDir);
  // The NVTX side's capture makes the process known, also one that never opens a range.
  if (folder == nullptr || folder[0] == '\0' || !rangescope::inject::writer_start()) return;
  static char path[4096];
  if (!free_path(folder, path, sizeof path)) return;
  cupti::TraceSettings settings = cupti::settings_from_environment();
  settings.path = path;
  if (const char* limit = std::getenv(rangescope::wire::kMaxCaptureSize); limit != nullptr)
    settings.size_limit = std::strtoull(limit, nullptr, 10);
  if (cupti::start_trace(settings)) std::atexit(cupti::finish_trace);
}

void start_chained() {
  const char* other = std::getenv(rangescope::wire::kChainCuda);
  if (other == nullptr || other[0] == '\0') return;
  void* library = dlopen(other, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return;
  if (auto* initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")); initialize != nullptr)
    initialize();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const rangescope::inject::NoCancel no_cancel;
  start();
  start_chained();
  return 1;
}
