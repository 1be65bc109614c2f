// A stand-in for CUPTI: the functions that the collector uses, writing activity records as a given
// release does.
//
// STANDIN_VERSION: what cuptiGetVersion says (default 130001); record layouts follow it.
// STANDIN_FAULT: subscriber_taken, no_permission, no_kernels, drop (no buffer is ever accepted
// twice). STANDIN_PLAY: a file of recorded activity buffers (layout below), whose records are
// delivered at the first flush, once. What a release lacks (cuptiSubscribe_v2 before 13) is not
// hidden: STANDIN_OLD builds leave it out.
//
// Recorded buffers: repeated { u64 'BUF', u64 bytes, u64 thread, records, { u64 pointer, u64
// length, text }..., u64 0, u64 0 }; the pairs give the text behind each kernel-name pointer in the
// records.
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hooks.hpp"
#include "impossible.hpp"
#include "profiler.hpp"

namespace {

std::uint32_t version() {
  static const std::uint32_t value = [] {
    const char* text = std::getenv("STANDIN_VERSION");
    return text ? static_cast<std::uint32_t>(std::atoi(text)) : 130001u;
  }();
  return value;
}

bool fault(const char* name) {
  const char* text = std::getenv("STANDIN_FAULT");
  return text && std::strcmp(text, name) == 0;
}

// What is switched on: asked by the program's threads while a thread of the collector switches.
template <typename T>
class Enabled {
 public:
  bool contains(const T& one) const {
    const std::lock_guard<std::mutex> guard(lock_);
    return set_.contains(one);
  }
  void insert(const T& one) {
    const std::lock_guard<std::mutex> guard(lock_);
    set_.insert(one);
  }
  void erase(const T& one) {
    const std::lock_guard<std::mutex> guard(lock_);
    set_.erase(one);
  }

 private:
  mutable std::mutex lock_;
  std::set<T> set_;
};

std::recursive_mutex lock;
CUpti_TimestampCallbackFunc clock_of_client = nullptr;
Enabled<std::uint32_t> recorded_calls;
bool kernel_thread_ids = false;
bool played = false;

using SharedRequest = void (*)(std::uint8_t**, std::size_t*, std::size_t*, void*);
using SharedComplete = void (*)(std::uint8_t*, std::size_t, std::size_t, void*);

// The second is there where both allow it (CUDA 13.3).
struct Subscriber {
  CUpti_CallbackFunc function = nullptr;
  void* data = nullptr;
  Enabled<std::pair<int, std::uint32_t>> callbacks;
  Enabled<int> kinds;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  SharedRequest shared_request = nullptr;
  SharedComplete shared_complete = nullptr;
  std::uint8_t* buffer = nullptr;
  std::size_t capacity = 0, used = 0, dropped = 0;
  bool zeroed_buffers = false;
};
Subscriber subscribers[2];
bool shared = false;

Subscriber& of(CUpti_SubscriberHandle handle) {
  return subscribers[reinterpret_cast<std::uintptr_t>(handle) == 2 ? 1 : 0];
}

std::uint64_t real_time() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}
std::uint64_t monotonic() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}
// CUPTI's own clock: ours with an offset that is read once, so that a wait between two reads bends
// no single time.
std::uint64_t to_cupti_time(std::uint64_t at) {
  static const std::uint64_t offset = real_time() - monotonic();
  return at + offset;
}
// A time of the stand-in driver on the clock that the client chose.
std::uint64_t client_time(std::uint64_t at) {
  const std::uint64_t now = monotonic();
  const bool same = clock_of_client && clock_of_client() - now < 1'000'000'000;
  return at == 0 || same ? at : to_cupti_time(at);
}

// Sizes of the structs that each release writes; see inject/cupti/records.cpp for what they share.
std::size_t record_size(int kind) {
  const std::uint32_t v = version();
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return v >= 130000 ? sizeof(CUpti_ActivityKernel10) : sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return v >= 26 ? sizeof(CUpti_ActivityMemcpy6) : sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return v >= 26 ? sizeof(CUpti_ActivitySynchronization2)
                     : sizeof(CUpti_ActivitySynchronization);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return v >= 21 ? sizeof(CUpti_ActivityGraphTrace2) : sizeof(CUpti_ActivityGraphTrace);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return v >= 26 ? sizeof(CUpti_ActivityDevice5) : sizeof(CUpti_ActivityDevice4);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return v >= 26   ? sizeof(CUpti_ActivityContext3)
             : v >= 23 ? sizeof(CUpti_ActivityContext2)
                       : sizeof(CUpti_ActivityContext);
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_STREAM: return sizeof(CUpti_ActivityStream);
    default: return 0;
  }
}

void deliver(Subscriber& to) {
  if (!to.buffer)
    return;
  std::uint8_t* full = to.buffer;
  to.buffer = nullptr;
  if (to.shared_complete)
    to.shared_complete(full, to.capacity, to.used, nullptr);
  else
    to.complete(nullptr, 0, full, to.capacity, to.used);
}

void append(Subscriber& to, const void* record, std::size_t bytes) {
  if (fault("drop") && to.used > 0) {
    ++to.dropped;
    return;
  }
  if (to.buffer && to.used + bytes > to.capacity)
    deliver(to);
  if (!to.buffer) {
    std::size_t most = 0;
    to.used = to.capacity = 0;
    if (to.shared_request)
      to.shared_request(&to.buffer, &to.capacity, &most, nullptr);
    else
      to.request(&to.buffer, &to.capacity, &most);
    if (!to.buffer || to.capacity < bytes) {
      ++to.dropped;
      return;
    }
  }
  // A client that promises buffers of zeroes and gives others loses their records.
  std::uint8_t* const at = to.buffer + to.used;
  if (to.zeroed_buffers &&
      std::any_of(at, at + bytes, [](std::uint8_t byte) { return byte != 0; })) {
    ++to.dropped;
    return;
  }
  std::memcpy(at, record, bytes);
  to.used += bytes;
}

template <typename Record>
void emit(Record record, CUpti_ActivityKind kind) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  record.kind = kind;
  for (Subscriber& to : subscribers) {
    if ((!to.request && !to.shared_request) || !to.kinds.contains(kind))
      continue;
    // The newest struct that is known here, cut to what the release writes.
    append(to, &record, record_size(kind));
  }
}

void on_kernel(const standin::Work& work) {
  standin::profile(work);
  standin::sample_pc(work);
  if (work.node && subscribers[0].kinds.contains(CUPTI_ACTIVITY_KIND_GRAPH_TRACE))
    return;
  CUpti_ActivityKernel10 record{};
  record.start = client_time(work.start_ns);
  record.end = client_time(work.end_ns);
  record.contextId = work.context;
  record.streamId = work.stream;
  record.gridX = static_cast<std::int32_t>(work.grid);
  record.gridY = record.gridZ = record.blockY = record.blockZ = 1;
  record.blockX = static_cast<std::int32_t>(work.block);
  record.registersPerThread = 32;
  record.dynamicSharedMemory = 1024;
  record.correlationId = work.correlation;
  record.name = work.name;
  record.graphNodeId = work.node;
  record.graphId = static_cast<std::uint32_t>(work.node >> 32);
  record.clusterX = record.clusterY = record.clusterZ = 0;
  standin::spoil(record, "kernel");
  emit(record, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

void on_copy(const standin::Work& work) {
  CUpti_ActivityMemcpy6 record{};
  record.copyKind = work.copy_kind;
  record.bytes = work.bytes;
  record.start = client_time(work.start_ns);
  record.end = client_time(work.end_ns);
  record.contextId = work.context;
  record.streamId = work.stream;
  record.correlationId = work.correlation;
  record.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  record.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  standin::spoil(record, "copy");
  emit(record, CUPTI_ACTIVITY_KIND_MEMCPY);
}

void on_set(const standin::Work& work) {
  CUpti_ActivityMemset4 record{};
  record.bytes = work.bytes;
  record.start = client_time(work.start_ns);
  record.end = client_time(work.end_ns);
  record.contextId = work.context;
  record.streamId = work.stream;
  record.correlationId = work.correlation;
  standin::spoil(record, "set");
  emit(record, CUPTI_ACTIVITY_KIND_MEMSET);
}

void on_sync(std::uint32_t correlation, std::uint64_t start, std::uint64_t end) {
  CUpti_ActivitySynchronization2 record{};
  record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  record.start = client_time(start);
  record.end = client_time(end);
  record.correlationId = correlation;
  record.contextId = standin::kContext;
  record.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  emit(record, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
}

void on_graph(std::uint32_t graph, const standin::Work& work) {
  CUpti_ActivityGraphTrace2 record{};
  record.start = client_time(work.start_ns);
  record.end = client_time(work.end_ns);
  record.correlationId = work.correlation;
  record.graphId = graph;
  record.contextId = work.context;
  record.streamId = work.stream;
  standin::spoil(record, "graph");
  emit(record, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

void tell(CUpti_CallbackDomain domain, std::uint32_t id, const void* data) {
  for (Subscriber& to : subscribers)
    if (to.function && to.callbacks.contains({domain, id}))
      to.function(to.data, domain, id, data);
}

void on_context() {
  CUpti_ResourceData made{};
  made.context = reinterpret_cast<CUcontext>(1);
  tell(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &made);
  standin::load_module([](const CUpti_ModuleResourceData& module) {
    CUpti_ResourceData data{};
    data.resourceDescriptor = const_cast<CUpti_ModuleResourceData*>(&module);
    tell(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &data);
  });
  tell(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED, nullptr);
  CUpti_ActivityDevice5 device{};
  const char* name = std::getenv("STANDIN_DEVICE");
  device.name = name != nullptr ? name : "Stand-in GPU";
  device.globalMemorySize = 1ull << 34;
  device.globalMemoryBandwidth = 1000000;
  device.l2CacheSize = 1u << 25;
  device.coreClockRate = 1500000;
  device.numMultiprocessors = 10;
  device.computeCapabilityMajor = 9;
  emit(device, CUPTI_ACTIVITY_KIND_DEVICE);
  CUpti_ActivityContext3 context{};
  context.contextId = standin::kContext;
  context.nullStreamId = 7;
  emit(context, CUPTI_ACTIVITY_KIND_CONTEXT);
}

void call_back(std::uint32_t cbid,
               std::uint32_t correlation,
               std::uint64_t* data,
               CUpti_ApiCallbackSite site,
               const void* parameters,
               const char* symbol,
               int result) {
  CUpti_CallbackData call{};
  call.callbackSite = site;
  call.correlationData = data;
  call.correlationId = correlation;
  call.contextUid = standin::kContext;
  call.context = reinterpret_cast<CUcontext>(1);
  call.functionParams = parameters;
  call.symbolName = symbol;
  call.functionReturnValue = site == CUPTI_API_EXIT ? &result : nullptr;
  tell(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &call);
}

void on_enter(std::uint32_t cbid,
              std::uint32_t correlation,
              std::uint64_t* data,
              const void* parameters,
              const char* symbol) {
  call_back(cbid, correlation, data, CUPTI_API_ENTER, parameters, symbol, 0);
}

void on_exit_call(std::uint32_t cbid,
                  std::uint32_t correlation,
                  std::uint64_t* data,
                  const void* parameters,
                  std::uint64_t start,
                  std::uint64_t end,
                  int result) {
  call_back(cbid, correlation, data, CUPTI_API_EXIT, parameters, nullptr, result);
  if (!recorded_calls.contains(cbid))
    return;
  CUpti_ActivityAPI record{};
  record.cbid = cbid;
  record.start = client_time(start);
  record.end = client_time(end);
  record.processId = static_cast<std::uint32_t>(getpid());
  record.threadId = kernel_thread_ids ? static_cast<std::uint32_t>(syscall(SYS_gettid))
                                      : static_cast<std::uint32_t>(pthread_self());
  record.correlationId = correlation;
  emit(record, CUPTI_ACTIVITY_KIND_DRIVER);
}

void resource(std::uint32_t id, CUgraph graph, CUgraphNode node, CUgraphNode original) {
  CUpti_GraphData data{};
  data.graph = graph;
  data.node = node;
  data.originalNode = original;
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &data;
  tell(CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
}

void on_graph_made(std::uint64_t graph) {
  resource(CUPTI_CBID_RESOURCE_GRAPH_CREATED, reinterpret_cast<CUgraph>(graph), nullptr, nullptr);
}

void on_node(std::uint64_t node, std::uint64_t original) {
  standin::pc_node_made(node);
  resource(original ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
           nullptr,
           reinterpret_cast<CUgraphNode>(node),
           reinterpret_cast<CUgraphNode>(original));
}

void on_context_end() {
  CUpti_ResourceData data{};
  data.context = reinterpret_cast<CUcontext>(1);
  tell(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, &data);
  standin::context_ends();
  standin::pc_context_ends();
}

// Recorded work ends now, and takes as long as it took: what is not of this run would be left out.
template <typename Record>
void move_times(std::uint8_t* bytes) {
  auto& record = *reinterpret_cast<Record*>(bytes);
  const std::uint64_t duration = record.end - record.start;
  record.end = client_time(monotonic());
  record.start = record.end - duration;
}

void play_now(std::int32_t kind, std::uint8_t* bytes) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return move_times<CUpti_ActivityKernel9>(bytes);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return move_times<CUpti_ActivityMemcpy5>(bytes);
    case CUPTI_ACTIVITY_KIND_MEMSET: return move_times<CUpti_ActivityMemset4>(bytes);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return move_times<CUpti_ActivityGraphTrace>(bytes);
    default: return;
  }
}

void play() {
  const char* path = std::getenv("STANDIN_PLAY");
  if (!path || played)
    return;
  played = true;
  std::FILE* file = std::fopen(path, "rb");
  if (!file)
    return;
  static std::map<std::uint64_t, std::string> names;
  std::uint64_t head[3];
  while (std::fread(head, 8, 3, file) == 3 && head[0] == 0x465542) {
    std::vector<std::uint8_t> bytes(head[1]);
    if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size())
      break;
    std::uint64_t pair[2];
    while (std::fread(pair, 8, 2, file) == 2 && pair[0] != 0) {
      std::string text(pair[1], '\0');
      if (std::fread(text.data(), 1, text.size(), file) != text.size())
        break;
      names[pair[0]] = text;
    }
    for (std::size_t at = 0; at + 4 <= bytes.size();) {
      std::int32_t kind;
      std::memcpy(&kind, bytes.data() + at, 4);
      const std::size_t size = record_size(kind);
      if (size == 0)
        break;
      play_now(kind, bytes.data() + at);
      if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        auto& kernel = *reinterpret_cast<CUpti_ActivityKernel9*>(bytes.data() + at);
        kernel.name = names[reinterpret_cast<std::uint64_t>(kernel.name)].c_str();
      }
      if (kind == CUPTI_ACTIVITY_KIND_DEVICE)
        reinterpret_cast<CUpti_ActivityDevice4*>(bytes.data() + at)->name = "NVIDIA H200";
      append(subscribers[0], bytes.data() + at, size);
      at += size;
    }
  }
  std::fclose(file);
}

bool records_kernels() {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  return subscribers[0].kinds.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

[[gnu::constructor]] void hook_the_driver() {
  static constexpr standin::Hooks kHooks{on_enter,
                                         on_exit_call,
                                         on_kernel,
                                         on_copy,
                                         on_set,
                                         on_sync,
                                         on_graph,
                                         on_context,
                                         on_context_end,
                                         on_graph_made,
                                         on_node};
  if (auto* set = reinterpret_cast<void (*)(const standin::Hooks*)>(
          dlsym(RTLD_DEFAULT, "standin_set_hooks")))
    set(&kHooks);
}

CUptiResult take_subscriber(CUpti_SubscriberHandle* handle,
                            CUpti_CallbackFunc function,
                            void* data,
                            bool shares) {
  if (fault("subscriber_taken"))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (fault("no_permission"))
    return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  const bool first = subscribers[0].function == nullptr && subscribers[1].function == nullptr;
  if (!first && (!shared || !shares))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  shared = shares;
  const std::uintptr_t number = subscribers[0].function == nullptr ? 1 : 2;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(number);
  of(*handle).function = function;
  of(*handle).data = data;
  return CUPTI_SUCCESS;
}

// Functions for the whole process beside several subscribers.
CUptiResult old() {
  return shared ? CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED : CUPTI_SUCCESS;
}

}  // namespace

bool standin::activity_records_kernels() {
  return records_kernels();
}

#pragma GCC visibility push(default)
extern "C" {

CUptiResult cuptiGetVersion(uint32_t* out) {
  *out = version();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
              ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
          : result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                          : "CUPTI_ERROR_SOMETHING";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle,
                           CUpti_CallbackFunc function,
                           void* data) {
  return take_subscriber(handle, function, data, false);
}
#ifndef STANDIN_OLD
// STANDIN_BLACKWELL=1: the GPU times kernels itself.
CUptiResult cuptiActivityEnableHWTrace(uint8_t) {
  return std::getenv("STANDIN_BLACKWELL") != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* handle,
                              CUpti_CallbackFunc function,
                              void* data,
                              CUpti_SubscriberParams* params) {
  struct {
    CUpti_SubscriberParams before;
    std::uint8_t shared, reserved[7];
  } since_13_2{};
  if (params)
    std::memcpy(&since_13_2, params, std::min(params->structSize, sizeof since_13_2));
  const CUptiResult result =
      take_subscriber(handle, function, data, version() >= 130300 && since_13_2.shared != 0);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params &&
      params->oldSubscriberName) {
    std::snprintf(params->oldSubscriberName, params->oldSubscriberSize, "CUPTI for Kineto");
  }
  return result;
}
CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind, void*) {
  of(handle).kinds.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind, void*) {
  of(handle).kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle handle,
                                         CUpti_ActivityAttribute attribute,
                                         size_t*,
                                         void* value) {
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)
    of(handle).zeroed_buffers = *static_cast<const std::uint8_t*>(value) != 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle handle,
                                              SharedRequest request,
                                              SharedComplete complete) {
  of(handle).shared_request = request;
  of(handle).shared_complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle, uint64_t* time) {
  *time = to_cupti_time(monotonic());
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  if (old() != CUPTI_SUCCESS)
    return old();
  clock_of_client = function;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  if (old() != CUPTI_SUCCESS)
    return old();
  static Enabled<std::uint32_t>
      spent;  // what was turned off is never recorded again (CUDA 13.0 on an H100)
  if (enable && !spent.contains(cbid)) {
    recorded_calls.insert(cbid);
    subscribers[0].kinds.insert(CUPTI_ACTIVITY_KIND_DRIVER);
  } else if (!enable) {
    recorded_calls.erase(cbid);
    spent.insert(cbid);
  }
  return CUPTI_SUCCESS;
}
#endif
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  kernel_thread_ids = type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  of(handle).function = nullptr;
  of(handle).shared_request = nullptr;
  of(handle).shared_complete = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t enable,
                                CUpti_SubscriberHandle handle,
                                CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  auto& callbacks = of(handle).callbacks;
  // Those that were turned off and on too often never come again (CUPTI 13.0 on an H200, from the
  // sixth time on).
  static const char* const often = std::getenv("STANDIN_CALLBACKS_OFTEN");
  static std::map<CUpti_CallbackId, int> turned_on;
  const bool calls = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (enable && calls && often != nullptr && ++turned_on[id] > std::atoi(often))
    return CUPTI_SUCCESS;
  if (enable) {
    callbacks.insert({domain, id});
  } else {
    callbacks.erase({domain, id});
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, uint32_t cbid, const char** name) {
  static const std::map<std::uint32_t, const char*> kNames = {
      {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel"},
      {CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, "cuGraphLaunch"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, "cuMemsetD8Async"},
      {CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v2, "cuCtxCreate_v2"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, "cuMemAlloc_v2"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync, "cuMemAllocAsync"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged, "cuMemAllocManaged"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc, "cuMemHostAlloc"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, "cuMemFree_v2"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync, "cuMemFreeAsync"},
      {CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost, "cuMemFreeHost"},
      {CUPTI_DRIVER_TRACE_CBID_cuStreamCreate, "cuStreamCreate"},
      {CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, "cuStreamBeginCapture_v2"},
      {CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, "cuStreamEndCapture"},
      {CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags"},
      {CUPTI_DRIVER_TRACE_CBID_cuEventRecord, "cuEventRecord"},
      {CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, "cuStreamWaitEvent"},
      {CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, "cuEventSynchronize"},
      {CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, "cuStreamSynchronize"},
      {CUPTI_DRIVER_TRACE_CBID_cuKernelSetAttribute, "cuKernelSetAttribute"},
      {CUPTI_DRIVER_TRACE_CBID_cuProfilerStart, "cuProfilerStart"},
      {CUPTI_DRIVER_TRACE_CBID_cuProfilerStop, "cuProfilerStop"},
      {CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, "cuCtxSynchronize"}};
  const auto at = kNames.find(cbid);
  if (at == kNames.end())
    return CUPTI_ERROR_INVALID_PARAMETER;
  *name = at->second;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc asked,
                                           CUpti_BuffersCallbackCompleteFunc done) {
  subscribers[0].request = asked;
  subscribers[0].complete = done;
  return old();
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (fault("no_kernels") && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
    return CUPTI_ERROR_NOT_SUPPORTED;
  if (old() != CUPTI_SUCCESS)
    return old();
  subscribers[0].kinds.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (old() != CUPTI_SUCCESS)
    return old();
  subscribers[0].kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard<std::recursive_mutex> guard(lock);
  if (const char* log = std::getenv("STANDIN_FLUSH_LOG")) {
    if (std::FILE* file = std::fopen(log, "a")) {
      std::fputs("flush\n", file);
      std::fclose(file);
    }
  }
  play();
  for (Subscriber& to : subscribers)
    deliver(to);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* from, size_t valid, CUpti_Activity** record) {
  std::uint8_t* next = from;
  if (*record)
    next = reinterpret_cast<std::uint8_t*>(*record) + record_size((*record)->kind);
  if (next >= from + valid)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* count) {
  *count = std::exchange(subscribers[0].dropped, 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t*, void* value) {
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)
    subscribers[0].zeroed_buffers = *static_cast<const std::uint8_t*>(value) != 0;
  return old();
}
CUptiResult cuptiGetTimestamp(uint64_t* time) {
  *time = clock_of_client ? clock_of_client() : to_cupti_time(monotonic());
  return CUPTI_SUCCESS;
}
// Handles of the stand-in driver are their own numbers; there are contexts and streams that it does
// not know.
CUptiResult cuptiGetStreamIdEx(CUcontext context,
                               CUstream stream,
                               uint8_t per_thread,
                               uint32_t* id) {
  if (context == nullptr)
    return CUPTI_ERROR_INVALID_CONTEXT;
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle > 10000)
    return CUPTI_ERROR_INVALID_STREAM;
  const std::uint32_t default_stream = per_thread != 0 ? 9 : 7;
  *id = handle == 0 ? default_stream : static_cast<std::uint32_t>(handle);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  *id = reinterpret_cast<std::uint64_t>(node);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  *id = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(graph));
  return CUPTI_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
