// Kernels that wait for known reasons, each in a range of its name in `step`; argument: steps. The
// line of a wait ends in `// WAITS name` (tests/gpu/pc.py). None lies in CUDA's headers; warps at a
// barrier stand at what is behind it.
// clang-format off
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

__global__ void chase(const int* next, int* out, int steps) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < steps; ++i)
    at = next[at];  // WAITS chase
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void banks(const int*, int* out, int steps) {
  __shared__ int shared[1024];
  shared[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int at = (threadIdx.x % 32) * 32;
  for (int i = 0; i < steps; ++i)
    at = (shared[at] + at) & 0x3e0;  // WAITS banks
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void chain(const int*, int* out, int steps) {
  float a = threadIdx.x;
  for (int i = 0; i < steps; ++i)
    a = a * 1.0001f + 0.5f;  // WAITS chain
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(a);
}

__global__ void uneven(const int*, int* out, int steps) {
  float a = threadIdx.x;
  for (int i = 0; i < steps; ++i) {
    if (threadIdx.x < 32)
      for (int k = 0; k < 64; ++k) a = a * 1.0001f + 0.5f;
    __syncthreads(), a += 1;  // WAITS uneven
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(a);
}

__global__ void strided(const int* in, int* out, int steps) {
  int sum = 0;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < steps; ++i)
    sum += in[(thread * 257 + i * 4099) & 0xffffff];  // WAITS strided
  out[thread] = sum;
}

__global__ void special(const int*, int* out, int steps) {
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < steps; ++i)
    a = __sinf(a), b = __sinf(b), c = __sinf(c), d = __sinf(d);  // WAITS special
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(a + b + c + d);
}

__global__ void doubles(const int*, int* out, int steps) {
  double a = threadIdx.x;
  for (int i = 0; i < steps; ++i)
    a = a * 1.0001 + 0.5;  // WAITS doubles
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(a);
}

__global__ void counting(const int*, int* out, int steps) {
  __shared__ int counts[4];
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(counts));
  for (int i = 0; i < steps; ++i)
    asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(out[threadIdx.x]) : "r"(at + i % 4 * 4));  // WAITS counting
}

__global__ void storing(const int*, int* out, int steps) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < steps; ++i)
    out[(thread * 257 + i * 4099) & 0xffffff] = i;  // WAITS storing
}

__global__ void sleeping(const int*, int*, int steps) {
  for (int i = 0; i < steps; ++i)
    asm volatile("nanosleep.u32 200;");  // WAITS sleeping
}

int main(int argc, char** argv) {
  constexpr int kItems = 1 << 24;
  std::vector<int> ring(kItems);
  for (long long i = 0; i < kItems; ++i) ring[i] = static_cast<int>((i * 1664525 + 1013904223) % kItems);
  int *next = nullptr, *out = nullptr;
  cudaMalloc(&next, kItems * sizeof(int));
  cudaMalloc(&out, kItems * sizeof(int));
  cudaMemcpy(next, ring.data(), kItems * sizeof(int), cudaMemcpyHostToDevice);
  const struct {
    const char* name;
    void (*kernel)(const int*, int*, int);
    int threads, steps;
  } kKernels[] = {{"chase", chase, 256, 300},       {"banks", banks, 1024, 2000},     {"chain", chain, 128, 20000},
                  {"uneven", uneven, 1024, 200},    {"strided", strided, 1024, 300},  {"special", special, 1024, 2000},
                  {"doubles", doubles, 1024, 4000}, {"counting", counting, 256, 500}, {"storing", storing, 1024, 300},
                  {"sleeping", sleeping, 128, 500}};
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < (argc > 1 ? std::atoi(argv[1]) : 30); ++step) {
    nvtxRangePushA("step");
    for (const auto& each : kKernels) {
      nvtxRangePushA(each.name);
      each.kernel<<<132, each.threads>>>(next, out, each.steps);
      nvtxRangePop();
    }
    cudaDeviceSynchronize();
    nvtxRangePop();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s, %.3f s\n", cudaGetErrorString(cudaGetLastError()), took.count());
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
