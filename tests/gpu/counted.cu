// Work whose counters are known beforehand, for comparing what profilers measure: every range's
// FLOPs and bytes can be worked out from the source. Prints that truth, a checksum and the wall
// time as JSON on one line.
//
//   counted [occurrences [seldom]]     40 and 2 where not given
//
// Ranges, each ended by a synchronization:
//   copy     64 Mi floats from one buffer to another: 256 MiB read, 256 MiB written, no FLOP
//   fma      256 FP32 fused multiply-adds a thread of 2 Mi threads: 2^30 FLOP, next to no memory
//   layers   16 small kernels of two kinds, for the cost of a kernel
//   graph    the same 16 as one CUDA graph
//   sized    a copy of payload Mi floats: 16, 32, 64, 16, ... (the payload is an NVTX payload)
//   seldom   like fma, but only `seldom` times: fewer than a metric set has passes
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void copy_floats(const float* __restrict__ from, float* __restrict__ to, size_t count) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

__global__ void fma_256(float* out, float a) {
  float x = threadIdx.x * 0.001f;
#pragma unroll 16
  for (int i = 0; i < 256; ++i)
    x = __fmaf_rn(x, a, 0.5f);
  if (x == 12345.678f)
    out[0] = x;  // keeps the loop
}

__global__ void small_add(float* x, float by) {
  x[blockIdx.x * blockDim.x + threadIdx.x] += by;
}
__global__ void small_scale(float* x, float by) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= by;
}

constexpr size_t kMi = size_t(1) << 20;

void layers(float* x, cudaStream_t stream) {
  for (int i = 0; i < 8; ++i) {
    small_add<<<64, 256, 0, stream>>>(x, 1.f);
    small_scale<<<64, 256, 0, stream>>>(x, 0.5f);
  }
}

int main(int argc, char** argv) {
  const int occurrences = argc > 1 ? std::atoi(argv[1]) : 40,
            seldom = argc > 2 ? std::atoi(argv[2]) : 2;
  float *from = nullptr, *to = nullptr, *x = nullptr;
  if (cudaMalloc(&from, 64 * kMi * sizeof(float)) != cudaSuccess ||
      cudaMalloc(&to, 64 * kMi * sizeof(float)) != cudaSuccess ||
      cudaMalloc(&x, 64 * 256 * sizeof(float)) != cudaSuccess)
    return 1;
  cudaMemset(from, 0, 64 * kMi * sizeof(float));
  cudaMemset(x, 0, 64 * 256 * sizeof(float));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  layers(x, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  const auto ranged = [](const char* name, auto work) {
    nvtxRangePushA(name);
    work();
    cudaDeviceSynchronize();
    nvtxRangePop();
  };
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < occurrences; ++i) {
    ranged("copy", [&] { copy_floats<<<1056, 512>>>(from, to, 64 * kMi); });
    ranged("fma", [&] { fma_256<<<2 * kMi / 256, 256>>>(x, 0.999f); });
    ranged("layers", [&] { layers(x, nullptr); });
    ranged("graph", [&] { cudaGraphLaunch(executable, stream); });
    const uint64_t size = uint64_t(16) << (i % 3);
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "sized";
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = size;
    nvtxRangePushEx(&attributes);
    copy_floats<<<1056, 512>>>(from, to, size * kMi);
    cudaDeviceSynchronize();
    nvtxRangePop();
    if (i < seldom)
      ranged("seldom", [&] { fma_256<<<2 * kMi / 256, 256>>>(x, 0.999f); });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<float> back(64 * 256);
  cudaMemcpy(back.data(), x, back.size() * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (const float value : back)
    sum += value;
  std::printf(
      "{\"seconds\": %.3f, \"checksum\": %.6f, \"copy\": {\"bytes\": %zu, \"fma\": 0}, \"fma\": "
      "{\"bytes\": 0, "
      "\"fma\": %zu}}\n",
      seconds,
      sum,
      128 * kMi * sizeof(float),
      2 * kMi * 256);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
