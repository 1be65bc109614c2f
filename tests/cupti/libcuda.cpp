// A stand-in for the CUDA driver: just enough of its API for the victim. Kernels "run" for as long
// as their first argument says (nanoseconds, one stream after the other is not modelled), graphs
// can be captured, instantiated and launched.
//
// Like the real driver it loads the library that CUDA_INJECTION64_PATH names and calls its
// InitializeInjection in cuInit.
#include <cupti.h>
#include <dlfcn.h>
#include <sys/file.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>
#include <vector>

#include "hooks.hpp"

namespace {

standin::Hooks hooks{};
std::atomic<std::uint32_t> next_correlation{1};
std::atomic<std::uint64_t> next_graph{1};
std::mutex lock;
bool up = false;
bool made = false;  // there is a context

struct Node {
  std::uint64_t id;
  const char* name;
  std::uint32_t grid, block;
  std::uint64_t duration;
};
struct Graph {
  std::uint64_t id;
  std::vector<Node> nodes;
};
struct Capture {
  CUstream stream;
  Graph* graph;
  bool broken;
};
std::vector<Capture> captures;
// Every graph that was made; kept for ever, as handles to them are.
Graph* keep(Graph graph) {
  static auto& graphs = *new std::vector<Graph*>;
  graphs.push_back(new Graph(std::move(graph)));
  return graphs.back();
}
std::uint64_t busy_until = 0;            // of the only device
std::uint32_t contexts = 0;              // made so far
thread_local std::uint32_t current = 0;  // the thread's context; 0: the first one

std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint32_t number(CUstream stream) {
  const auto value = reinterpret_cast<std::uintptr_t>(stream);
  return value == 0 ? 7 : static_cast<std::uint32_t>(value);
}

// One driver call: callbacks and record around whatever `body` does with the correlation id.
template <typename Body>
CUresult call(std::uint32_t cbid,
              Body&& body,
              const void* parameters = nullptr,
              const char* symbol = nullptr) {
  // As CUPTI 13.0 on an H200, which begins at small numbers again when its timeline was off.
  static const char* const again = std::getenv("STANDIN_CORRELATIONS");
  const std::uint32_t number = next_correlation++;
  const std::uint32_t correlation =
      again == nullptr ? number : 1 + number % static_cast<unsigned>(std::atoi(again));
  std::uint64_t data = 0;
  if (hooks.enter)
    hooks.enter(cbid, correlation, &data, parameters, symbol);
  const std::uint64_t start = now();
  CUresult result = CUDA_SUCCESS;
  if constexpr (std::is_void_v<decltype(body(correlation))>)
    body(correlation);
  else
    result = body(correlation);
  const std::uint64_t end = now();
  if (hooks.exit)
    hooks.exit(cbid, correlation, &data, parameters, start, end, result);
  return result;
}

// Memory is never looked into, and there are 16 GiB of it.
constexpr std::uint64_t kMemory = 1ull << 34;
CUdeviceptr next_memory =
    4096;  // small: a kernel takes as long as its first parameter says, an address or not
std::map<CUdeviceptr, std::uint64_t> in_use;

template <typename Parameters>
CUresult allocate(std::uint32_t cbid,
                  CUdeviceptr* memory,
                  std::uint64_t bytes,
                  const Parameters& given) {
  const auto take = [&](std::uint32_t) {
    const std::lock_guard<std::mutex> guard(lock);
    std::uint64_t used = 0;
    for (const auto& [address, size] : in_use)
      used += size;
    if (used + bytes > kMemory)
      return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = next_memory;
    next_memory += bytes;
    in_use[*memory] = bytes;
    return CUDA_SUCCESS;
  };
  return call(cbid, take, &given);
}

template <typename Parameters>
CUresult release(std::uint32_t cbid, CUdeviceptr memory, const Parameters& given) {
  const auto give_back = [&](std::uint32_t) {
    const std::lock_guard<std::mutex> guard(lock);
    if (memory == 0)
      return CUDA_SUCCESS;
    return in_use.erase(memory) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  return call(cbid, give_back, &given);
}

void await(std::uint32_t) {
  while (now() < busy_until) {
  }
}

Graph* capturing(CUstream stream) {
  for (const Capture& capture : captures) {
    if (capture.stream == stream)
      return capture.graph;
  }
  return nullptr;
}

standin::Work queue(std::uint32_t correlation, std::uint32_t stream, std::uint64_t duration) {
  const std::uint64_t time = now();
  const std::uint64_t start = std::max(time + 500, busy_until);
  busy_until = start + duration;
  standin::Work work{};
  work.start_ns = start;
  work.end_ns = start + duration;
  work.correlation = correlation;
  work.stream = stream;
  work.context = current == 0 ? standin::kContext : current;
  return work;
}

FILE* ran_file() {
  static FILE* file = [] {
    const char* path = std::getenv("STANDIN_RAN");
    return path ? std::fopen(path, "a") : nullptr;
  }();
  return file;
}

void run_node(const Node& node, std::uint32_t correlation, std::uint32_t stream, std::uint64_t id) {
  FILE* const ran = ran_file();  // for the stand-in PM sampling of another process
  if (ran != nullptr)
    flock(fileno(ran), LOCK_EX);  // which does not look between a start and its line
  standin::Work work = queue(correlation, stream, node.duration);
  work.name = node.name;
  work.grid = node.grid;
  work.block = node.block;
  work.node = id;
  if (std::getenv("STANDIN_NEVER_ENDS"))
    work.start_ns = work.end_ns = 0;
  if (ran != nullptr) {
    std::fprintf(ran,
                 "%llu %llu %u\n",
                 static_cast<unsigned long long>(work.start_ns),
                 static_cast<unsigned long long>(work.end_ns),
                 work.grid);
    std::fflush(ran);
    flock(fileno(ran), LOCK_UN);
  }
  if (hooks.kernel)
    hooks.kernel(work);
}

}  // namespace

extern "C" {

void standin_set_hooks(const standin::Hooks* given) {
  hooks = *given;
}

// STANDIN_INIT_ERROR: the machine has a driver, but cuInit fails.
CUresult cuInit(unsigned) {
  if (const char* error = std::getenv("STANDIN_INIT_ERROR"))
    return static_cast<CUresult>(std::atoi(error));
  const std::lock_guard<std::mutex> guard(lock);
  if (up)
    return CUDA_SUCCESS;
  up = true;
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH"); path && *path) {
    if (void* library = dlopen(path, RTLD_NOW)) {
      if (auto* start = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")))
        start();
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_NO_DEVICE ? "no CUDA-capable device is detected" : "unknown error";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "Stand-in GPU");
  return CUDA_SUCCESS;
}
#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice) {
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);  // as the stand-in CUPTI's device record
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  const char* text = std::getenv("STANDIN_DRIVER");
  *version = text ? std::atoi(text) : 13000;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v2, [&](std::uint32_t) {
    current = ++contexts;
    made = true;
    *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(current));
    if (current == standin::kContext && hooks.context_made)
      hooks.context_made();
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t bytes) {
  const cuMemAlloc_v2_params given{memory, bytes};
  return allocate(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, memory, bytes, given);
}
CUresult cuMemAllocAsync(CUdeviceptr* memory, size_t bytes, CUstream stream) {
  const cuMemAllocAsync_params given{memory, bytes, stream};
  return allocate(CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync, memory, bytes, given);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* memory,
                                 size_t bytes,
                                 CUmemoryPool pool,
                                 CUstream stream) {
  const cuMemAllocFromPoolAsync_params given{memory, bytes, pool, stream};
  return allocate(CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync, memory, bytes, given);
}
CUresult cuMemAllocManaged(CUdeviceptr* memory, size_t bytes, unsigned flags) {
  const cuMemAllocManaged_params given{memory, bytes, flags};
  return allocate(CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, memory, bytes, given);
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  const cuMemHostAlloc_params given{memory, bytes, flags};
  return allocate(
      CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc, reinterpret_cast<CUdeviceptr*>(memory), bytes, given);
}
CUresult cuMemFree_v2(CUdeviceptr memory) {
  const cuMemFree_v2_params given{memory};
  return release(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, memory, given);
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  const cuMemFreeAsync_params given{memory, stream};
  return release(CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync, memory, given);
}
CUresult cuMemFreeHost(void* memory) {
  const cuMemFreeHost_params given{memory};
  return release(
      CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost, reinterpret_cast<CUdeviceptr>(memory), given);
}

// Streams are numbers from 21 on, events are numbers from 1 on.
CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  static std::atomic<std::uintptr_t> next{21};
  const cuStreamCreate_params given{stream, flags};
  const auto make = [&](std::uint32_t) { *stream = reinterpret_cast<CUstream>(next++); };
  return call(CUPTI_DRIVER_TRACE_CBID_cuStreamCreate, make, &given);
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  static std::atomic<std::uintptr_t> next{1};
  *event = reinterpret_cast<CUevent>(next++);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  const cuEventRecord_params given{event, stream};
  return call(
      CUPTI_DRIVER_TRACE_CBID_cuEventRecord, [](std::uint32_t) {}, &given);
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  const cuStreamWaitEvent_params given{stream, event, flags};
  return call(
      CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, [](std::uint32_t) {}, &given);
}
CUresult cuEventSynchronize(CUevent event) {
  const cuEventSynchronize_params given{event};
  return call(CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, await, &given);
}
CUresult cuStreamSynchronize(CUstream stream) {
  const cuStreamSynchronize_params given{stream};
  return call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, await, &given);
}

CUresult cuProfilerStart() {
  return call(CUPTI_DRIVER_TRACE_CBID_cuProfilerStart, [](std::uint32_t) {});
}

CUresult cuProfilerStop() {
  return call(CUPTI_DRIVER_TRACE_CBID_cuProfilerStop, [](std::uint32_t) {});
}

CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuKernelSetAttribute, [](std::uint32_t) {});
}

CUresult cuCtxDestroy_v2(CUcontext) {
  if (hooks.context_ends)
    hooks.context_ends();
  return CUDA_SUCCESS;
}

// The function is its name, the first kernel parameter its duration.
CUresult cuLaunchKernel(CUfunction function,
                        unsigned grid,
                        unsigned,
                        unsigned,
                        unsigned block,
                        unsigned,
                        unsigned,
                        unsigned,
                        CUstream stream,
                        void** parameters,
                        void**) {
  cuLaunchKernel_params given{};
  given.gridDimX = grid;
  given.blockDimX = block;
  given.gridDimY = given.gridDimZ = given.blockDimY = given.blockDimZ = 1;
  const auto run = [&](std::uint32_t correlation) {
    const std::lock_guard<std::mutex> guard(lock);
    const Node node{0,
                    reinterpret_cast<const char*>(function),
                    grid,
                    block,
                    *static_cast<std::uint64_t*>(parameters[0])};
    if (Graph* graph = capturing(stream)) {
      graph->nodes.push_back(node);
      graph->nodes.back().id = graph->id << 32 | (graph->nodes.size() - 1);
      if (hooks.node_made)
        hooks.node_made(graph->nodes.back().id, 0);
      return;
    }
    run_node(node, correlation, number(stream), 0);
  };
  return call(
      CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, run, &given, reinterpret_cast<const char*>(function));
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(made ? 1 : 0);
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext) {
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE          ? 1 << 20
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 10
                                                                   : 0;
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t) {
  return CUDA_SUCCESS;
}

// A function is its name.
CUresult cuModuleLoadData(CUmodule*, const void*) {
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  *function = reinterpret_cast<CUfunction>(const_cast<char*>(name));
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t bytes, CUstream stream) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, [&](std::uint32_t correlation) {
    const std::lock_guard<std::mutex> guard(lock);
    standin::Work work = queue(correlation, number(stream), bytes / 8);
    work.bytes = bytes;
    work.copy_kind = 1;
    if (hooks.copy)
      hooks.copy(work);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t bytes, CUstream stream) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, [&](std::uint32_t correlation) {
    const std::lock_guard<std::mutex> guard(lock);
    standin::Work work = queue(correlation, number(stream), 1000);
    work.bytes = bytes;
    if (hooks.set)
      hooks.set(work);
  });
}

CUresult cuCtxSynchronize() {
  return call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, [&](std::uint32_t correlation) {
    {  // as the real one: nobody may wait while a stream is captured, and the capture is lost
      const std::lock_guard<std::mutex> guard(lock);
      for (Capture& capture : captures)
        capture.broken = true;
      if (!captures.empty())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    const std::uint64_t start = now();
    while (now() < busy_until) {
    }
    if (hooks.synchronized)
      hooks.synchronized(correlation, start, now());
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, [&](std::uint32_t) {
    const std::lock_guard<std::mutex> guard(lock);
    captures.push_back({stream, keep({next_graph++, {}}), false});
    if (hooks.graph_made)
      hooks.graph_made(captures.back().graph->id);
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, [&](std::uint32_t) {
    const std::lock_guard<std::mutex> guard(lock);
    const auto at = std::find_if(
        captures.begin(), captures.end(), [&](const Capture& c) { return c.stream == stream; });
    if (at == captures.end())
      return CUDA_ERROR_ILLEGAL_STATE;
    const bool broken = at->broken;
    *graph = broken ? nullptr : reinterpret_cast<CUgraph>(at->graph);
    captures.erase(at);
    return broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* instance, CUgraph graph, unsigned long long) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, [&](std::uint32_t) {
    const std::lock_guard<std::mutex> guard(lock);
    const Graph& from = *reinterpret_cast<Graph*>(graph);
    Graph* to = keep({next_graph++, from.nodes});
    if (hooks.graph_made)
      hooks.graph_made(to->id);
    for (Node& node : to->nodes) {
      const std::uint64_t original = node.id;
      node.id = to->id << 32 | (original & 0xffffffffu);
      if (hooks.node_made) {
        hooks.node_made(node.id, 0);
        hooks.node_made(node.id, original);
      }
    }
    *instance = reinterpret_cast<CUgraphExec>(to);
  });
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, [&](std::uint32_t correlation) {
    const std::lock_guard<std::mutex> guard(lock);
    const Graph& launched = *reinterpret_cast<Graph*>(graph);
    standin::Work whole = queue(correlation, number(stream), 0);
    for (const Node& node : launched.nodes)
      run_node(node, correlation, number(stream), node.id);
    whole.end_ns = busy_until;
    if (hooks.graph)
      hooks.graph(static_cast<std::uint32_t>(launched.id), whole);
  });
}

}  // extern "C"
