// A small deterministic CUDA program that opens every kind of NVTX range, for recording profiler
// output. Prints the ground truth (occurrences and kernel launches per range) as JSON on stdout.
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>
#define CK(x)                                                 \
  do {                                                        \
    cudaError_t e = (x);                                      \
    if (e != cudaSuccess) {                                   \
      fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); \
      exit(1);                                                \
    }                                                         \
  } while (0)
__global__ void gemm_like(const float* a, const float* b, float* c, int n) {
  int r = blockIdx.y * 16 + threadIdx.y, q = blockIdx.x * 16 + threadIdx.x;
  float s = 0;
  if (r < n && q < n) {
    for (int k = 0; k < n; k++)
      s = fmaf(a[r * n + k], b[k * n + q], s);
    c[r * n + q] = s;
  }
}
__global__ void softmax_like(float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = __expf(c[i] * 1e-3f);
}
__global__ void copy_like(const float* a, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i];
}
template <int N>
__global__ void reduce_like(const float* a, float* o) {
  float s = 0;
  for (int i = threadIdx.x; i < N; i += blockDim.x)
    s += a[i];
  atomicAdd(o, s);
}
static const int N = 256;
static float *A, *B, *C, *O;
static cudaStream_t s1, s2;
static std::map<std::string, std::pair<int, int>> truth;
static std::vector<std::string> stack_;
static void note(int k) {
  std::string p;
  for (auto& s : stack_) {
    p += (p.empty() ? "" : " > ") + s;
    truth[p].second += k;
  }
  if (stack_.empty())
    truth["(none)"].second += k;
}
static void push(const char* n) {
  nvtxRangePushA(n);
  stack_.push_back(n);
  std::string p;
  for (auto& s : stack_)
    p += (p.empty() ? "" : " > ") + s;
  truth[p].first++;
}
static void pop() {
  nvtxRangePop();
  stack_.pop_back();
}
static void layer(const char* name, cudaStream_t st) {
  push(name);
  gemm_like<<<dim3(16, 16), dim3(16, 16), 0, st>>>(A, B, C, N);
  softmax_like<<<N * N / 256, 256, 0, st>>>(C, N * N);
  note(2);
  pop();
}
static void device_sync() {
  CK(cudaDeviceSynchronize());
}
int main(int argc, char** argv) {
  bool risky = argc > 1 && std::string(argv[1]) == "risky";
  CK(cudaMalloc(&A, N * N * 4));
  CK(cudaMalloc(&B, N * N * 4));
  CK(cudaMalloc(&C, N * N * 4));
  CK(cudaMalloc(&O, 4));
  CK(cudaStreamCreate(&s1));
  CK(cudaStreamCreate(&s2));
  std::vector<float> h(N * N, 1.f);
  CK(cudaMemcpy(A, h.data(), N * N * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(B, h.data(), N * N * 4, cudaMemcpyHostToDevice));
  gemm_like<<<dim3(16, 16), dim3(16, 16)>>>(A, B, C, N);
  softmax_like<<<256, 256>>>(C, N * N);
  copy_like<<<256, 256>>>(A, C, N * N);
  reduce_like<65536><<<1, 256>>>(A, O);
  note(4);
  device_sync();
  nvtxNameCategoryA(7, "compute");
  nvtxDomainHandle_t llm = nvtxDomainCreateA("LLM");
  nvtxStringHandle_t reg = nvtxDomainRegisterStringA(llm, "decode_all");
  for (int req = 0; req < 2; req++) {
    nvtxRangeId_t r = nvtxRangeStartA("request");  // start/end, overlaps everything below
    push("prefill");
    for (int l = 0; l < 2; l++)
      layer(l ? "layer1" : "layer0", s1);
    device_sync();
    pop();
    nvtxEventAttributes_t a = {};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = reg;
    nvtxDomainRangePushEx(llm, &a);  // registered string in a domain
    for (int t = 0; t < 3; t++) {
      push("decode");
      for (int l = 0; l < 2; l++)
        layer(l ? "layer1" : "layer0", s1);
      device_sync();
      pop();
    }
    nvtxDomainRangePop(llm);
    nvtxRangeEnd(r);
  }
  push("A");
  copy_like<<<256, 256>>>(A, C, N * N);
  note(1);
  push("A::A1");
  reduce_like<65536><<<1, 256>>>(A, O);
  note(1);
  device_sync();
  pop();
  device_sync();
  pop();
  push("B");
  copy_like<<<256, 256>>>(A, C, N * N);
  note(1);
  device_sync();
  pop();
  push("empty");
  pop();
  push("async");
  for (int i = 0; i < 5; i++)
    gemm_like<<<dim3(16, 16), dim3(16, 16), 0, s2>>>(A, B, C, N);
  note(5);
  pop();
  device_sync();  // still running at pop
  push("a/b [x], y@z");
  copy_like<<<256, 256>>>(A, C, N * N);
  note(1);
  device_sync();
  pop();  // characters with meaning in filters
  push("\xe5\xb1\xa4");
  copy_like<<<256, 256>>>(A, C, N * N);
  note(1);
  device_sync();
  pop();  // UTF-8
  {
    nvtxEventAttributes_t a = {};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = "attrs";
    a.category = 7;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0xff112233;
    a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    a.payload.llValue = 42;
    nvtxRangePushEx(&a);
    stack_.push_back("attrs");
    truth["attrs"].first++;
    copy_like<<<256, 256>>>(A, C, N * N);
    note(1);
    device_sync();
    pop();
  }
  push("main_thread");
  {
    std::thread th([] {
      nvtxRangePushA("worker");
      copy_like<<<256, 256, 0, s2>>>(A, C, N * N);
      copy_like<<<256, 256, 0, s2>>>(A, C, N * N);
      CK(cudaDeviceSynchronize());
      nvtxRangePop();
    });
    th.join();
    truth["worker"].first++;
    truth["worker"].second += 2;
  }
  pop();  // like autograd: kernels from another thread
  push("copies");
  CK(cudaMemcpyAsync(A, h.data(), N * N * 4, cudaMemcpyHostToDevice, s1));
  CK(cudaMemsetAsync(O, 0, 4, s1));
  CK(cudaMemcpyAsync(h.data(), C, N * N * 4, cudaMemcpyDeviceToHost, s1));
  device_sync();
  pop();
  cudaGraph_t g;
  cudaGraphExec_t ge;
  push("graph_capture");
  CK(cudaStreamBeginCapture(s1, cudaStreamCaptureModeGlobal));
  push("captured_layer");
  gemm_like<<<dim3(16, 16), dim3(16, 16), 0, s1>>>(A, B, C, N);
  softmax_like<<<N * N / 256, 256, 0, s1>>>(C, N * N);
  pop();
  CK(cudaStreamEndCapture(s1, &g));
  CK(cudaGraphInstantiate(&ge, g, 0));
  pop();
  for (int i = 0; i < 4; i++) {
    push("graph_replay");
    CK(cudaGraphLaunch(ge, s1));
    note(2);
    device_sync();
    pop();
  }
  if (risky) {
    push("alloc_inside");
    float* t;
    CK(cudaMalloc(&t, 1 << 20));
    copy_like<<<256, 256>>>(A, t, N * N);
    note(1);
    device_sync();
    CK(cudaFree(t));
    pop();
    push("alloc_async_inside");
    CK(cudaMallocAsync((void**)&t, 1 << 20, s1));
    copy_like<<<256, 256, 0, s1>>>(A, t, N * N);
    note(1);
    CK(cudaFreeAsync(t, s1));
    device_sync();
    pop();
  }
  nvtxMarkA("done");
  device_sync();
  printf("{");
  bool f = true;
  for (auto& [k, v] : truth) {
    printf("%s\n  \"%s\": {\"occurrences\": %d, \"kernels\": %d}",
           f ? "" : ",",
           k.c_str(),
           v.first,
           v.second);
    f = false;
  }
  printf("\n}\n");
}
