// The least that tracing kernels can cost: a bare client of CUPTI that takes kernel records and
// nothing else, loaded through CUDA_INJECTION64_PATH. At exit it says on stderr how many it got:
// "floor: N kernels".
//
// FLOOR adds what rangescope asks for beside, one by one: kinds (copies, sets, devices, contexts),
// calls (records of launch functions), tid (the kernel's thread ids in them), clock (our clock for
// all times), resource (a subscriber that is told of graph nodes and contexts), zeroed (buffers of
// 1 MiB that CUPTI need not zero), shared (one buffer for all threads).
#include <cupti.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

std::size_t buffer_bytes = 8 << 20;
bool zeroed = false;
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
  if (spare.empty())
    spare.push_back(
        static_cast<std::uint8_t*>(mmap(nullptr,
                                        buffer_bytes,
                                        PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | (zeroed ? MAP_POPULATE : 0),
                                        -1,
                                        0)));
  *buffer = spare.back();
  spare.pop_back();
  *bytes = buffer_bytes;
  *records = 0;
}

void CUPTIAPI
completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  static const auto next =
      find<decltype(&cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  CUpti_Activity* record = nullptr;
  while (valid > 0 && next(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      kernels.fetch_add(1, std::memory_order_relaxed);
  if (zeroed)
    std::memset(buffer, 0, buffer_bytes);
  const std::lock_guard<std::mutex> guard(lock);
  spare.push_back(buffer);
}

void finish() {
  find<decltype(&cuptiActivityFlushAll)>("cuptiActivityFlushAll")(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::fprintf(stderr, "floor: %llu kernels\n", static_cast<unsigned long long>(kernels.load()));
}

bool asked(const char* word) {
  const char* said = std::getenv("FLOOR");
  return said != nullptr && std::strstr(said, word) != nullptr;
}

std::uint64_t CUPTIAPI now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void CUPTIAPI told(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

#define FIND(name) find<decltype(&name)>(#name)
void add_what_was_asked() {
  if (asked("kinds"))
    for (const auto kind : {CUPTI_ACTIVITY_KIND_MEMCPY,
                            CUPTI_ACTIVITY_KIND_MEMCPY2,
                            CUPTI_ACTIVITY_KIND_MEMSET,
                            CUPTI_ACTIVITY_KIND_DEVICE,
                            CUPTI_ACTIVITY_KIND_CONTEXT})
      FIND(cuptiActivityEnable)(kind);
  if (asked("tid"))
    FIND(cuptiSetThreadIdType)(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  if (asked("clock"))
    FIND(cuptiActivityRegisterTimestampCallback)(now);
  for (std::uint32_t id = 1; asked("calls") && id < 1200; ++id) {
    const char* name = nullptr;
    if (FIND(cuptiGetCallbackName)(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS ||
        name == nullptr)
      continue;
    for (const char* beginning : {"cuLaunch",
                                  "cuGraphLaunch",
                                  "cuMemcpy",
                                  "cuMemset",
                                  "cuCtxSynchronize",
                                  "cuStreamSynchronize",
                                  "cuEventSynchronize"})
      if (std::strncmp(name, beginning, std::strlen(beginning)) == 0)
        FIND(cuptiActivityEnableDriverApi)(id, 1);
  }
  CUpti_SubscriberHandle handle = nullptr;
  if (asked("resource") && FIND(cuptiSubscribe)(&handle, told, nullptr) == CUPTI_SUCCESS)
    for (const CUpti_CallbackId id : {CUPTI_CBID_RESOURCE_GRAPH_CREATED,
                                      CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                      CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                                      CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING})
      FIND(cuptiEnableCallback)(1, handle, CUPTI_CB_DOMAIN_RESOURCE, id);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* said = std::getenv("RANGESCOPE_CUPTI");
  library = said != nullptr ? dlopen(said, RTLD_NOW) : nullptr;
  for (const int flags :
       {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW})  // the program's own first, as rangescope does
    for (const char* name : {"libcupti.so.13",
                             "libcupti.so.12",
                             "libcupti.so",
                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                             "/usr/local/cuda/lib64/libcupti.so"})
      if (library == nullptr)
        library = dlopen(name, flags);
  if (library == nullptr) {
    std::fprintf(stderr, "floor: no CUPTI\n");
    return 1;
  }
  if (zeroed = asked("zeroed"); zeroed) {
    buffer_bytes = 1 << 20;
    std::size_t bytes = 1;
    std::uint8_t yes = 1;
    FIND(cuptiActivitySetAttribute)(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &yes);
  }
  if (asked("shared")) {
    std::size_t bytes = 1;
    std::uint8_t no = 0;
    FIND(cuptiActivitySetAttribute)(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes, &no);
  }
  add_what_was_asked();
  const bool good = find<decltype(&cuptiActivityRegisterCallbacks)>(
                        "cuptiActivityRegisterCallbacks")(requested, completed) == CUPTI_SUCCESS &&
                    find<decltype(&cuptiActivityEnable)>("cuptiActivityEnable")(
                        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
  if (good)
    std::atexit(finish);
  else
    std::fprintf(stderr, "floor: CUPTI refused\n");
  return 1;
}
