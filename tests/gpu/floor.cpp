// The least that tracing kernels can cost: a bare client of CUPTI that takes kernel records and nothing else, loaded
// through CUDA_INJECTION64_PATH. At exit it says on stderr how many it got: "floor: N kernels".
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace {

constexpr std::size_t kBytes = 8 << 20;
void* library = nullptr;
std::atomic<std::uint64_t> kernels{0};
std::mutex lock;
std::vector<std::uint8_t*> spare;

template <class F>
F find(const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
  const std::lock_guard<std::mutex> guard(lock);
  if (spare.empty()) spare.push_back(static_cast<std::uint8_t*>(std::aligned_alloc(8, kBytes)));
  *buffer = spare.back();
  spare.pop_back();
  *bytes = kBytes;
  *records = 0;
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  static const auto next = find<decltype(&cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  CUpti_Activity* record = nullptr;
  while (valid > 0 && next(buffer, valid, &record) == CUPTI_SUCCESS) kernels.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> guard(lock);
  spare.push_back(buffer);
}

void finish() {
  find<decltype(&cuptiActivityFlushAll)>("cuptiActivityFlushAll")(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::fprintf(stderr, "floor: %llu kernels\n", static_cast<unsigned long long>(kernels.load()));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* said = std::getenv("RANGESCOPE_CUPTI");
  library = said != nullptr ? dlopen(said, RTLD_NOW) : nullptr;
  for (const int flags : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW})  // the program's own first, as rangescope does
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda/lib64/libcupti.so"})
      if (library == nullptr) library = dlopen(name, flags);
  if (library == nullptr) {
    std::fprintf(stderr, "floor: no CUPTI\n");
    return 1;
  }
  const bool good =
      find<decltype(&cuptiActivityRegisterCallbacks)>("cuptiActivityRegisterCallbacks")(requested, completed) ==
          CUPTI_SUCCESS &&
      find<decltype(&cuptiActivityEnable)>("cuptiActivityEnable")(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ==
          CUPTI_SUCCESS;
  if (good)
    std::atexit(finish);
  else
    std::fprintf(stderr, "floor: CUPTI refused\n");
  return 1;
}
