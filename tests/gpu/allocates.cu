// Every way to take memory from CUDA, events between streams, and what both cost. Prints its truth
// as JSON in one line.
//
//   allocates            all kinds of memory once, events between streams, 1,000 kernels
//   allocates cost       "record 0.61 us  wait 0.44 us  alloc 1.20 us": medians of ten rounds of
//   10,000 calls each
//
// Ranges: setup, step (3 of them), too much.
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kSteps = 3, kKernels = 1000;

__global__ void work(float* memory, int turns) {
  float value = memory[threadIdx.x];
  for (int turn = 0; turn < turns; ++turn)
    value = value * 1.0001f + 0.5f;
  memory[threadIdx.x] = value;
}

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
  std::exit(2);
}
#define CHECK(call) check(call, #call)

struct Range {
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
};

cudaMemPool_t pool_of_its_own() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  return pool;
}

// Physical memory through the driver: 2 MiB, never mapped. Frees it too.
bool create_physical() {
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const auto find = [&](const char* name, auto& function) {
    void* entry = nullptr;
    if (cudaGetDriverEntryPointByVersion(name, &entry, 12050, cudaEnableDefault, &found) !=
        cudaSuccess)
      return false;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(entry);
    return entry != nullptr;
  };
  if (!find("cuMemCreate", create) || !find("cuMemRelease", release))
    return false;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  if (create(&handle, 2 * kMiB, &properties, 0) != CUDA_SUCCESS)
    return false;
  return release(handle) == CUDA_SUCCESS;
}

void all_kinds() {
  float *kept = nullptr, *scratch = nullptr, *managed = nullptr, *pooled = nullptr,
        *pinned = nullptr;
  void* pitched = nullptr;
  std::size_t pitch = 0;
  bool physical = false;
  static float registered[4096];
  cudaStream_t copies = nullptr, kernels = nullptr;
  cudaEvent_t copied = nullptr;
  CHECK(cudaFree(nullptr));
  CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  CHECK(cudaStreamCreate(&kernels));
  CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
  const cudaMemPool_t pool = pool_of_its_own();
  {
    const Range range("setup");
    CHECK(cudaMalloc(&kept, 16 * kMiB));
    CHECK(cudaMallocHost(&pinned, kMiB));
    CHECK(cudaMallocManaged(&managed, 4 * kMiB));
    CHECK(cudaMallocPitch(&pitched, &pitch, 1000, 100));
    CHECK(cudaHostRegister(registered, sizeof registered, cudaHostRegisterDefault));
    physical = create_physical();
  }
  for (int step = 0; step < kSteps; ++step) {
    const Range range("step");
    CHECK(cudaMalloc(&scratch, 8 * kMiB));
    CHECK(cudaMallocAsync(&pooled, 2 * kMiB, kernels));
    CHECK(cudaMemcpyAsync(kept, pinned, kMiB, cudaMemcpyHostToDevice, copies));
    CHECK(cudaEventRecord(copied, copies));
    CHECK(cudaStreamWaitEvent(kernels, copied, 0));
    work<<<1, 128, 0, kernels>>>(kept, 1000);
    CHECK(cudaFreeAsync(pooled, kernels));
    CHECK(cudaMallocFromPoolAsync(&pooled, kMiB, pool, kernels));
    CHECK(cudaFreeAsync(pooled, kernels));
    CHECK(cudaEventSynchronize(copied));
    CHECK(cudaStreamSynchronize(kernels));
    CHECK(cudaFree(scratch));
  }
  int failed = 0;
  {
    const Range range("too much");
    failed = cudaMalloc(&scratch, std::size_t{1} << 50) == cudaErrorMemoryAllocation ? 1 : 0;
    (void)cudaGetLastError();
  }
  for (int kernel = 0; kernel < kKernels; ++kernel)
    work<<<1, 128, 0, kernels>>>(kept, 10);
  CHECK(cudaMemcpy(registered, kept, sizeof registered, cudaMemcpyDeviceToHost));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaHostUnregister(registered));
  CHECK(cudaFreeHost(pinned));
  // Never freed: kept, managed, pitched.
  std::printf(
      "{\"steps\": %d, \"kernels\": %d, \"failed\": %d, \"physical\": %d, \"pitched_bytes\": %zu, "
      "\"kept_bytes\": "
      "%zu}\n",
      kSteps,
      kSteps + kKernels,
      failed,
      physical ? 1 : 0,
      pitch * 100,
      20 * kMiB + pitch * 100);
}

template <typename Call>
double microseconds(Call call) {
  constexpr int kRounds = 10, kCalls = 10000;
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int index = 0; index < kCalls; ++index)
      call();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    rounds.push_back(took.count() / kCalls);
    CHECK(cudaDeviceSynchronize());
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

void cost() {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreate(&second));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const double record = microseconds([&] { CHECK(cudaEventRecord(event, first)); });
  const double wait = microseconds([&] { CHECK(cudaStreamWaitEvent(second, event, 0)); });
  const double alloc = microseconds([&] {
    void* memory = nullptr;
    CHECK(cudaMallocAsync(&memory, 1 << 16, first));
    CHECK(cudaFreeAsync(memory, first));
  });
  std::printf("record %.3f us  wait %.3f us  alloc %.3f us\n", record, wait, alloc / 2);
}

}  // namespace

int main(int argc, char** argv) {
  const bool costs = argc > 1 && std::strcmp(argv[1], "cost") == 0;
  costs ? cost() : all_kinds();
  return 0;
}
