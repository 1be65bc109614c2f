// A CUDA program that checks itself while somebody attaches to it. Commands on its standard input,
// one answer each:
//
//   burst N   N kernels, a copy after every hundredth: "burst N done, T us a launch"
//   replay N  N replays of a graph of ten kernels, which was made before "ready": "replay N done"
//   busy      launches in a thread of its own until `idle`: "busy"
//   count     "count N": kernels launched so far, those of graphs too
//   idle      the thread ends: "idle"
//
// Every kernel maps x to 3x + 1 (mod 2^32) over all elements, so that what they must be is known
// after each command. At the end of its input: "right N" and code 0, or "wrong" and 1.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kElements = 4096;

__global__ void odd_step(unsigned* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] *= 3, ++x[blockIdx.x * blockDim.x + threadIdx.x];
}
__global__ void even_step(unsigned* x) {
  unsigned& at = x[blockIdx.x * blockDim.x + threadIdx.x];
  at = 3 * at + 1;
}

std::atomic<unsigned long> launched{0};

struct Work {
  cudaStream_t stream = nullptr;
  unsigned* data = nullptr;
  cudaGraphExec_t graph = nullptr;
  unsigned wanted = 1;
  bool right = true;

  Work() {
    const std::vector<unsigned> ones(kElements, 1);
    right = cudaStreamCreate(&stream) == cudaSuccess &&
            cudaMalloc(&data, kElements * sizeof(unsigned)) == cudaSuccess &&
            cudaMemcpy(data, ones.data(), kElements * sizeof(unsigned), cudaMemcpyHostToDevice) ==
                cudaSuccess;
    cudaGraph_t made = nullptr;
    right =
        right && cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    for (int i = 0; i < 10; ++i)
      even_step<<<kElements / 256, 256, 0, stream>>>(data);
    right = right && cudaStreamEndCapture(stream, &made) == cudaSuccess &&
            cudaGraphInstantiate(&graph, made, 0) == cudaSuccess &&
            cudaStreamSynchronize(stream) == cudaSuccess;
  }
  void counted(int kernels) {
    for (int i = 0; i < kernels; ++i)
      wanted = 3 * wanted + 1;
    launched += kernels;
  }
  void check() {
    std::vector<unsigned> now(kElements);
    right = right &&
            cudaMemcpyAsync(
                now.data(), data, kElements * sizeof(unsigned), cudaMemcpyDeviceToHost, stream) ==
                cudaSuccess &&
            cudaStreamSynchronize(stream) == cudaSuccess;
    for (const unsigned each : now)
      right = right && each == wanted;
  }
  void burst(int kernels) {
    for (int i = 1; i <= kernels; ++i) {
      (i % 2 != 0 ? odd_step : even_step)<<<kElements / 256, 256, 0, stream>>>(data);
      counted(1);
      if (i % 100 == 0)
        check();
    }
    if (kernels % 100 != 0)
      right = right && cudaStreamSynchronize(stream) == cudaSuccess;
  }
  void replay(int times) {
    for (int i = 0; i < times; ++i) {
      right = right && cudaGraphLaunch(graph, stream) == cudaSuccess;
      counted(10);
    }
    right = right && cudaStreamSynchronize(stream) == cudaSuccess;
  }
};

}  // namespace

int main() {
  Work own, other;
  std::atomic<bool> over{false};
  std::thread busy;
  own.burst(1000);
  std::printf("ready\n");
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    int number = 0;
    if (std::sscanf(line, "burst %d", &number) == 1) {
      const auto begin = std::chrono::steady_clock::now();
      own.burst(number);
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      std::printf("burst %d done, %.3f us a launch\n", number, took.count() / number);
    } else if (std::sscanf(line, "replay %d", &number) == 1) {
      own.replay(number);
      std::printf("replay %d done\n", number);
    } else if (std::strcmp(line, "busy\n") == 0) {
      busy = std::thread([&] {
        for (over = false; !over;)
          other.burst(200);
      });
      std::printf("busy\n");
    } else if (std::strcmp(line, "idle\n") == 0) {
      over = true;
      busy.join();
      std::printf("idle\n");
    } else {
      std::printf("count %lu\n", launched.load());
    }
    std::fflush(stdout);
  }
  over = true;
  if (busy.joinable())
    busy.join();
  own.check();
  other.check();
  const bool right = own.right && other.right && cudaGetLastError() == cudaSuccess;
  std::printf(right ? "right %lu\n" : "wrong %lu\n", launched.load());
  return right ? 0 : 1;
}
