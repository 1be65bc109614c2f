// What tracing costs a program that does little else than launch: steps of `per` tiny kernels, each
// in a range of its own, inside a range for the step. Usage: launch [steps [per]], 2000 and 200
// where not given: 400,000 launches.
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void tiny(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = x[i] * 1.0001f + 1.f;
}

__global__ void tiny2(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = x[i] * 0.999f - 1.f;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 2000;
  const int per = argc > 2 ? std::atoi(argv[2]) : 200;
  float* x = nullptr;
  if (cudaMalloc(&x, 1 << 20) != cudaSuccess)
    return 1;
  cudaMemset(x, 0, 1 << 20);
  tiny<<<8, 128>>>(x);
  cudaDeviceSynchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    for (int i = 0; i < per / 2; ++i) {
      nvtxRangePushA("a");
      tiny<<<8, 128>>>(x);
      nvtxRangePop();
      nvtxRangePushA("b");
      tiny2<<<8, 128>>>(x);
      nvtxRangePop();
    }
    nvtxRangePop();
    if (step % 50 == 0)
      cudaDeviceSynchronize();
  }
  cudaDeviceSynchronize();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("RESULT %d launches %.3f s %.2f us/launch\n",
              steps * per,
              seconds,
              seconds / steps / per * 1e6);
}
