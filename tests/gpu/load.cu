// A load whose DRAM traffic is known: a copy of 1 GiB (1 GiB read, 1 GiB written) so many times,
// ten at a time within the range `copies`, with 5 ms of sleep between. Prints the traffic and the
// time.
//
//   load [copies]     500 where not given
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void copy(const float4* from, float4* to, size_t count) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

int main(int argc, char** argv) {
  const int copies = argc > 1 ? std::atoi(argv[1]) : 500;
  const size_t bytes = size_t(1) << 30;
  float4 *from = nullptr, *to = nullptr;
  if (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess)
    return 1;
  cudaMemset(from, 1, bytes);
  cudaDeviceSynchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < copies; i += 10) {
    nvtxRangePushA("copies");
    for (int k = i; k < i + 10 && k < copies; ++k)
      copy<<<1024, 256>>>(from, to, bytes / 16);
    cudaDeviceSynchronize();
    nvtxRangePop();
    usleep(5000);
  }
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("RESULT read %.6g bytes, written as many, in %.4f s\n", double(bytes) * copies, s);
}
