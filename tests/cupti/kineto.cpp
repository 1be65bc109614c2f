// A profiler inside the program, as PyTorch's Kineto is one: linked with CUPTI, it asks for the
// subscription when it is first used, once, and takes the default clock, which counts from 1970.
// STANDIN_SHARES=1: it shares CUPTI, as XLA does from CUDA 13.3 on.
#include <cupti.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

constexpr std::size_t kBytes = 1 << 16;
constexpr std::uint64_t kSecond_ns = 1'000'000'000;
int kernels = 0, early = 0;
std::uint64_t began_ns = 0;
bool refused = true;

void CUPTIAPI nothing(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most) {
  *buffer = static_cast<std::uint8_t*>(std::malloc(kBytes));
  std::memset(*buffer, 0xa5, kBytes);  // never promised to be zeroes
  *bytes = kBytes;
  *most = 0;
}

void CUPTIAPI
complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      continue;
    ++kernels;
    if (reinterpret_cast<const CUpti_ActivityKernel9*>(record)->start + kSecond_ns < began_ns)
      ++early;
  }
  std::free(buffer);
}

void shared_request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most, void*) {
  request(buffer, bytes, most);
}
void shared_complete(std::uint8_t* buffer, std::size_t bytes, std::size_t valid, void*) {
  complete(nullptr, 0, buffer, bytes, valid);
}

CUpti_SubscriberHandle handle = nullptr;

bool shares() {
  return std::getenv("STANDIN_SHARES") != nullptr;
}

CUptiResult subscribe() {
  if (!shares())
    return cuptiSubscribe(&handle, nothing, nullptr);
  struct {
    CUpti_SubscriberParams before;
    std::uint8_t shared, reserved[7];
  } parameters{{sizeof parameters, "XLA", nullptr, 0}, 1, {}};
  return cuptiSubscribe_v2(&handle, nothing, nullptr, &parameters.before);
}

}  // namespace

// Of CUDA 13.3, which the headers may lack.
extern "C" CUptiResult cuptiActivityRegisterCallbacks_v2(
    CUpti_SubscriberHandle,
    void (*)(std::uint8_t**, std::size_t*, std::size_t*, void*),
    void (*)(std::uint8_t*, std::size_t, std::size_t, void*));
extern "C" CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle, CUpti_ActivityKind, void*);
extern "C" CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle, CUpti_ActivityKind, void*);

extern "C" void kineto_begin() {
  static const CUptiResult subscribed = subscribe();  // it never asks again
  refused = subscribed != CUPTI_SUCCESS;
  if (refused)
    return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (began_ns != 0)
    return;  // already
  began_ns = static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
             static_cast<std::uint64_t>(now.tv_nsec);
  if (shares()) {
    cuptiActivityRegisterCallbacks_v2(handle, shared_request, shared_complete);
    cuptiActivityEnable_v2(handle, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, nullptr);
    return;
  }
  cuptiActivityRegisterCallbacks(request, complete);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

/// Kernels recorded since it began; -1: it was refused, -2: some are of another clock.
extern "C" int kineto_end() {
  if (refused)
    return -1;
  if (shares())
    cuptiActivityDisable_v2(handle, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, nullptr);
  else
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityFlushAll(1);
  began_ns = 0;
  return early > 0 ? -2 : kernels;
}
