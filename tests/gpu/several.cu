// Several GPUs, contexts and green contexts in one process, and ranges that are captured into CUDA
// graphs while their counters are collected. Prints its truth as zoo.cu does; exit code 3 when a
// capture was broken.
//
//   several [rounds]       40 where not given
//
// Ranges: device0, device1, ... (a thread each), both > layer (one thread, every device in turn),
// peer (copies between neighbours), green (a stream of a green context), captured (three of four
// occurrences run, the fourth is captured).
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

__global__ void work(float* x, int turns) {
  float value = x[threadIdx.x];
  for (int i = 0; i < turns; ++i)
    value = value * 1.0001f + 0.5f;
  x[threadIdx.x] = value;
}

struct Range {
  explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~Range() { nvtxRangePop(); }
};

struct Count {
  int occurrences, kernels;
};

template <typename Function>
bool find(Function& function, const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion(name, &entry, 12050, cudaEnableDefault, &found) !=
      cudaSuccess)
    return false;
  function = reinterpret_cast<Function>(entry);
  return entry != nullptr && found == cudaDriverEntryPointSuccess;
}

// A stream that may use a part of device 0 only; null where the driver knows no green contexts.
cudaStream_t green_stream() {
  CUresult (*resource)(CUdevice, CUdevResource*, CUdevResourceType) = nullptr;
  CUresult (*split)(
      CUdevResource*, unsigned*, const CUdevResource*, CUdevResource*, unsigned, unsigned) =
      nullptr;
  CUresult (*describe)(CUdevResourceDesc*, CUdevResource*, unsigned) = nullptr;
  CUresult (*create)(CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned) = nullptr;
  CUresult (*stream)(CUstream*, CUgreenCtx, unsigned, int) = nullptr;
  if (!find(resource, "cuDeviceGetDevResource") || !find(split, "cuDevSmResourceSplitByCount") ||
      !find(describe, "cuDevResourceGenerateDesc") || !find(create, "cuGreenCtxCreate") ||
      !find(stream, "cuGreenCtxStreamCreate"))
    return nullptr;
  CUdevResource all{}, part{};
  CUdevResourceDesc description{};
  CUgreenCtx context{};
  CUstream made = nullptr;
  unsigned groups = 1;
  if (resource(0, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
      split(&part, &groups, &all, nullptr, 0, 16) != CUDA_SUCCESS ||
      describe(&description, &part, 1) != CUDA_SUCCESS ||
      create(&context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS ||
      stream(&made, context, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS)
    return nullptr;
  return made;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    return 1;
  std::map<std::string, Count> truth;
  std::vector<float*> x(devices);
  for (int d = 0; d < devices; ++d) {
    cudaSetDevice(d);
    cudaMalloc(&x[d], 1 << 20);
    cudaMemset(x[d], 0, 1 << 20);
  }
  std::vector<std::thread> threads;
  for (int d = 0; d < devices; ++d) {
    const std::string name = "device" + std::to_string(d);
    truth[name] = {rounds, 3 * rounds};
    threads.emplace_back([=] {
      cudaSetDevice(d);
      for (int i = 0; i < rounds; ++i) {
        const Range range(name);
        for (int k = 0; k < 3; ++k)
          work<<<16, 128>>>(x[d], 2000);
        cudaDeviceSynchronize();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  for (int i = 0; i < rounds; ++i) {
    const Range both("both");
    for (int d = 0; d < devices; ++d) {
      cudaSetDevice(d);
      const Range layer("layer");
      work<<<8, 128>>>(x[d], 500);
      work<<<8, 128>>>(x[d], 500);
    }
    for (int d = 0; d < devices; ++d) {
      cudaSetDevice(d);
      cudaDeviceSynchronize();
    }
  }
  truth["both"] = {rounds, 2 * devices * rounds};
  truth["both > layer"] = {devices * rounds, 2 * devices * rounds};

  cudaSetDevice(0);
  if (devices > 1) {
    for (int i = 0; i < 4; ++i) {
      const Range peer("peer");
      cudaMemcpyPeerAsync(x[1], 1, x[0], 0, 1 << 20, nullptr);
      cudaDeviceSynchronize();
    }
    truth["peer"] = {4, 0};
  }

  if (cudaStream_t green = green_stream()) {
    for (int i = 0; i < 4; ++i) {
      const Range range("green");
      work<<<32, 128, 0, green>>>(x[0], 1000);
      cudaStreamSynchronize(green);
    }
    truth["green"] = {4, 4};
  }

  int broken = 0;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  for (int i = 0; i < rounds; ++i) {
    const bool capture = i % 4 == 3;
    cudaGraph_t graph = nullptr;
    if (capture)
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    {
      const Range range("captured");
      work<<<64, 128, 0, stream>>>(x[0], 3000);
      work<<<64, 128, 0, stream>>>(x[0], 3000);
    }
    if (capture) {
      broken += cudaStreamEndCapture(stream, &graph) != cudaSuccess ? 1 : 0;
      if (graph != nullptr)
        cudaGraphDestroy(graph);
    }
    cudaStreamSynchronize(stream);
  }
  truth["captured"] = {rounds, 2 * (rounds - rounds / 4)};

  std::printf("{");
  const char* comma = "";
  for (const auto& [path, count] : truth) {
    std::printf("%s\n  \"%s\": {\"occurrences\": %d, \"kernels\": %d}",
                comma,
                path.c_str(),
                count.occurrences,
                count.kernels);
    comma = ",";
  }
  std::printf("\n}\n");
  return broken > 0 ? 3 : 0;
}
