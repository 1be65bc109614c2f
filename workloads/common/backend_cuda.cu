#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "common/backend.hpp"
#include "common/gemm.hpp"
#include "common/kernels.cuh"

namespace workload {
namespace {

thread_local std::int64_t launched = 0;
std::atomic<bool> library_ran{false};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "cuda: %s: %s\n", what, cudaGetErrorString(error));
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    std::fprintf(stderr, "  hint: run the CPU build of this workload (its name without _cuda)\n");
  }
  std::_Exit(71);
}

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + kernels::kBlock - 1) / kernels::kBlock);
}

}  // namespace

const char* backend_name() {
  return "cuda";
}
std::int64_t launches() {
  return launched;
}
bool launches_are_exact() {
  return !library_ran;
}

struct Memory::Blocks {
  std::vector<void*> blocks;
  void* take(std::size_t bytes) {
    void* block = nullptr;
    check(cudaMalloc(&block, bytes), "cudaMalloc");
    check(cudaMemset(block, 0, bytes), "cudaMemset");
    blocks.push_back(block);
    return block;
  }
};

Memory::Memory() : blocks_(std::make_unique<Blocks>()) {}
Memory::~Memory() {
  for (void* block : blocks_->blocks)
    cudaFree(block);
}
float* Memory::floats(std::size_t count) {
  return static_cast<float*>(blocks_->take(count * sizeof(float)));
}
float* Memory::floats(const std::vector<float>& values) {
  float* to = floats(values.size());
  check(cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  return to;
}
std::int32_t* Memory::ints(std::size_t count) {
  return static_cast<std::int32_t*>(blocks_->take(count * sizeof(std::int32_t)));
}

struct Backend::State {
  cudaStream_t stream = nullptr;
  Gemm* gemm = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::int64_t launched_before_capture = 0;
  std::int64_t graph_kernels = 0;

  /// After every launch of a kernel of ours.
  void count(const char* what) const {
    check(cudaGetLastError(), what);
    ++launched;
  }
};

Backend::Backend(const Settings& settings) : state_(std::make_unique<State>()) {
  // What Memory zeroed and copied on the legacy stream is done before this stream, which does not
  // wait for it, starts.
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaStreamCreateWithFlags(&state_->stream, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
  if (!settings.own_gemm)
    state_->gemm = gemm_create(state_->stream, settings.tf32);
}

Backend::~Backend() {
  cudaStreamSynchronize(state_->stream);
  if (state_->executable)
    cudaGraphExecDestroy(state_->executable);
  if (state_->graph)
    cudaGraphDestroy(state_->graph);
  gemm_destroy(state_->gemm);
  cudaStreamDestroy(state_->stream);
}

namespace {

template <class T>
void copy_to_device(cudaStream_t stream, T* to, const std::vector<T>& from) {
  check(cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "upload");  // `from` may go away
}

template <class T>
std::vector<T> copy_to_host(cudaStream_t stream, const T* from, std::size_t count) {
  std::vector<T> to(count);
  check(cudaMemcpyAsync(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "download");
  return to;
}

}  // namespace

void Backend::upload(std::int32_t* to, const std::vector<std::int32_t>& from) {
  copy_to_device(state_->stream, to, from);
}
void Backend::upload(float* to, const std::vector<float>& from) {
  copy_to_device(state_->stream, to, from);
}
std::vector<float> Backend::download(const float* from, std::size_t count) {
  return copy_to_host(state_->stream, from, count);
}
std::vector<std::int32_t> Backend::download(const std::int32_t* from, std::size_t count) {
  return copy_to_host(state_->stream, from, count);
}
void Backend::sync() {
  check(cudaStreamSynchronize(state_->stream), "cudaStreamSynchronize");
}

void Backend::matmul(
    const float* x, const float* w, float* y, int rows, int in, int out, bool accumulate) {
  const float beta = accumulate ? 1.0F : 0.0F;
  if (state_->gemm) {
    library_ran = true;
    if (!gemm_run(state_->gemm, x, w, y, rows, in, out, beta)) {
      std::fprintf(
          stderr, "cuda: cuBLAS failed on %d x %d x %d\n  hint: try --own-gemm\n", rows, in, out);
      std::_Exit(71);
    }
    return;
  }
  const dim3 grid(static_cast<unsigned>((out + 15) / 16), static_cast<unsigned>((rows + 15) / 16));
  kernels::matmul<<<grid, dim3(16, 16), 0, state_->stream>>>(x, w, y, rows, in, out, beta);
  state_->count("matmul");
}

void Backend::embed(
    const std::int32_t* tokens, const float* table, float* out, int rows, int width) {
  kernels::embed<<<rows, kernels::kBlock, 0, state_->stream>>>(tokens, table, out, width);
  state_->count("embed");
}

void Backend::rms_norm(const float* x, const float* gain, float* out, int rows, int width) {
  kernels::rms_norm<<<rows, kernels::kBlock, 0, state_->stream>>>(x, gain, out, width);
  state_->count("rms_norm");
}

void Backend::rotate(float* x, const std::int32_t* position, int rows, int heads, int head_width) {
  kernels::rotate<<<rows, kernels::kBlock, 0, state_->stream>>>(x, position, heads, head_width);
  state_->count("rotate");
}

void Backend::store(
    const float* x, float* cache, const std::int32_t* position, int rows, int width) {
  kernels::store<<<rows, kernels::kBlock, 0, state_->stream>>>(x, cache, position, width);
  state_->count("store");
}

void Backend::attend(const float* q,
                     const float* keys,
                     const float* values,
                     float* out,
                     const std::int32_t* position,
                     int rows,
                     int heads,
                     int head_width,
                     int longest) {
  const dim3 grid(static_cast<unsigned>(heads), static_cast<unsigned>(rows));
  const auto bytes = static_cast<std::size_t>(longest) * sizeof(float);
  if (bytes > 46U << 10) {  // more than every device gives without asking
    check(
        cudaFuncSetAttribute(
            kernels::attend, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "attention over this many tokens");
  }
  kernels::attend<<<grid, kernels::kBlock, bytes, state_->stream>>>(
      q, keys, values, out, position, heads, head_width);
  state_->count("attend");
}

void Backend::swiglu(float* gate, const float* up, std::size_t count) {
  const auto total = static_cast<std::int64_t>(count);
  kernels::swiglu<<<blocks_for(total), kernels::kBlock, 0, state_->stream>>>(gate, up, total);
  state_->count("swiglu");
}

void Backend::argmax(const float* x, std::int32_t* token, int count) {
  kernels::argmax<<<1, kernels::kBlock, 0, state_->stream>>>(x, token, count);
  state_->count("argmax");
}

void Backend::advance(std::int32_t* position, int by) {
  kernels::advance<<<1, 1, 0, state_->stream>>>(position, by);
  state_->count("advance");
}

void Backend::im2col(const float* images, float* columns, int n, int channels, int size) {
  const std::int64_t total = static_cast<std::int64_t>(n) * size * size * channels * 9;
  kernels::im2col<<<blocks_for(total), kernels::kBlock, 0, state_->stream>>>(
      images, columns, total, channels, size);
  state_->count("im2col");
}

void Backend::normalize(const float* x,
                        const float* scale,
                        const float* shift,
                        const float* residual,
                        float* out,
                        int n,
                        int channels,
                        int size,
                        bool relu) {
  const std::int64_t total = static_cast<std::int64_t>(n) * channels * size * size;
  kernels::normalize<<<blocks_for(total), kernels::kBlock, 0, state_->stream>>>(
      x, scale, shift, residual, out, total, channels, size * size, relu);
  state_->count("normalize");
}

void Backend::average(const float* images, float* out, int n, int channels, int size) {
  kernels::average<<<n * channels, kernels::kBlock, 0, state_->stream>>>(images, out, size * size);
  state_->count("average");
}

bool Backend::begin_capture() {
  state_->launched_before_capture = launched;
  check(cudaStreamBeginCapture(state_->stream, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  return true;
}

// What was captured did not run: it counts when the graph is launched.
void Backend::end_capture() {
  check(cudaStreamEndCapture(state_->stream, &state_->graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&state_->executable, state_->graph, 0), "cudaGraphInstantiate");
  state_->graph_kernels = launched - state_->launched_before_capture;
  launched = state_->launched_before_capture;
}

void Backend::replay() {
  check(cudaGraphLaunch(state_->executable, state_->stream), "cudaGraphLaunch");
  launched += state_->graph_kernels;
}

}  // namespace workload
