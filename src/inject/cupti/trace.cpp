#include "inject/cupti/trace.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "inject/cupti/cache_flush.hpp"
#include "inject/cupti/counters.hpp"
#include "inject/cupti/encode.hpp"
#include "inject/cupti/give_way.hpp"
#include "inject/cupti/pc_sampler.hpp"
#include "inject/cupti/threads.hpp"
#include "inject/cupti/tracer.hpp"
#include "inject/nvtx/capture.hpp"
#include "inject/nvtx/control.hpp"
#include "inject/nvtx/process.hpp"
#include "inject/nvtx/setting.hpp"
#include "inject/text.hpp"
#include "wire/counters.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {
namespace gpu = wire::gpu;
namespace {

std::atomic<bool> begun{false};  // until end_trace()

std::int64_t utc_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// The clock of CUPTI's records. It stays registered when CUPTI continues with another tool, which
// expects CUPTI's own clock (UTC).
std::uint64_t CUPTIAPI timestamp() {
  return static_cast<std::uint64_t>(begun.load(std::memory_order_relaxed) ? now_ns() : utc_ns());
}

// Never destroyed: CUPTI's threads may call back after static destructors have run.
alignas(Tracer) unsigned char tracer_memory[sizeof(Tracer)];
std::atomic<Tracer*> the_tracer{nullptr};

Tracer& tracer() {
  return *the_tracer.load(std::memory_order_acquire);
}

// False in the child of a fork: tracing belongs to the parent, and any of the locks may have been
// held by a thread that does not exist in the child.
bool is_of_this_process(const Tracer& t) {
  return t.generation == process.generation.load(std::memory_order_relaxed);
}

// Null if tracing does not run, and in the child of a fork, which has no tracer until it loads CUDA
// again after exec.
Tracer* running_tracer() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  if (t == nullptr || !is_of_this_process(*t))
    return nullptr;
  if (t->state.load() != State::kRunning)
    return nullptr;
  return t;
}

void report_dropped(Tracer& t) {
  const std::uint64_t dropped = t.cupti_dropped + t.launches.dropped();
  if (dropped > t.reported_dropped) {
    t.encoder.loss(
        gpu::LossKind::kDropped,
        dropped - t.reported_dropped,
        "GPU records were dropped because no buffer was free: kernels or copies are missing");
    t.reported_dropped = dropped;
  }
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer,
                               std::size_t* bytes,
                               std::size_t* most_records) {
  *buffer = nullptr;
  *bytes = 0;
  *most_records = 0;
  if (is_of_this_process(tracer()))
    *buffer = tracer().buffers.take();
  if (*buffer != nullptr)
    *bytes = BufferPool::kBytes;
}

void CUPTIAPI
buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Tracer& t = tracer();
  if (!is_of_this_process(t))
    return;
  {
    const std::lock_guard<std::mutex> guard(t.stream_lock);
    CUpti_Activity* record = nullptr;
    while (valid > 0 && t.api.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
      t.encoder.activity(t.api, *record);
    std::size_t dropped = 0;
    if (t.api.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS)
      t.cupti_dropped += dropped;
  }
  t.buffers.give_back(buffer);
  t.buffers_filled.fetch_add(1);
}

void note_node(Tracer& t, const CUpti_GraphData& data, bool clone) {
  std::uint64_t node = 0, original = 0;
  if (t.api.cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS)
    return;
  if (clone && t.api.cuptiGetGraphNodeId(data.originalNode, &original) != CUPTI_SUCCESS)
    return;
  const std::uint64_t now = timestamp();
  const std::uint32_t tid = thread_id();
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.node(tid, static_cast<std::uint8_t>(data.nodeType), now, node, original);
}

// Notes when a capture began: ranges that were open before are not part of the path inside it.
void note_graph(Tracer& t, CUgraph graph) {
  static auto* const id_of =
      reinterpret_cast<CUptiResult (*)(CUgraph, std::uint32_t*)>(t.api.find("cuptiGetGraphId"));
  std::uint32_t id = 0;
  if (graph == nullptr || id_of == nullptr || id_of(graph, &id) != CUPTI_SUCCESS)
    return;
  const std::uint64_t now = timestamp();
  const std::uint32_t tid = thread_id();
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.node(tid, gpu::kGraphBegun, now, id, 0);
}

void flush_once(Tracer& t, bool forced);
CUptiResult switch_kinds(Tracer& t, bool on);

void note_times(Tracer& t, const char* source) {
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info("kernel_times", source);
}

void on_resource(Tracer& t, CUpti_CallbackId id, const void* data) {
  if (id == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED) {  // enabled if there may be hardware times
    char text[128];
    const char* source = begin_hardware_times(t.api, text, sizeof text);
    t.hardware_times = std::strcmp(source, "hardware") == 0;
    note_times(t, source);
  }
  if (data == nullptr)
    return;  // of the driver's initialization (CUPTI 13.0)
  const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPH_CREATED:
      if (resource.resourceDescriptor != nullptr)
        note_graph(t, static_cast<const CUpti_GraphData*>(resource.resourceDescriptor)->graph);
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      if (resource.resourceDescriptor != nullptr) {
        note_node(t,
                  *static_cast<const CUpti_GraphData*>(resource.resourceDescriptor),
                  id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
      }
      break;
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED: counters_meet_context(resource.context); break;
    case CUPTI_CBID_RESOURCE_MODULE_LOADED:
      if (resource.resourceDescriptor != nullptr)
        keep_module(*static_cast<const CUpti_ModuleResourceData*>(resource.resourceDescriptor));
      break;
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
      // cudaDeviceReset discards the context's unread records.
      flush_once(t, false);
      counters_lose_context(resource.context);
      break;
    default: break;
  }
}

bool opens_window(CUpti_CallbackId id) {
  return id == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart ||
         id == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop;
}

// Launches after cuProfilerStart are in the window: the call waits until the flusher's next turn
// has made CUPTI record kernels.
void on_profiler_call(Tracer& t, CUpti_CallbackId id, bool enters) {
  constexpr int kMostWait_ms = 100;
  if (!control::by_calls())
    return;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop) {
    if (enters)
      control::stops();
    return;
  }
  if (enters || !control::is_called())
    return;
  for (int i = 0; i < kMostWait_ms && !t.awake; ++i)
    usleep(1000);
  control::starts();
}

DetailedFunction function_of(const Tracer& t, CUpti_CallbackId id) {
  if (id >= kMostCbids)
    return {};
  return t.detailed[id];
}

// A call that has returned, on the thread that made it.
void note_returned(Tracer& t,
                   CUpti_CallbackId id,
                   const CUpti_CallbackData& call,
                   std::uint64_t start,
                   std::uint64_t now) {
  t.memory.saw_call();
  NotedLaunch launch{};
  launch.start_ns = start;
  launch.correlation = call.correlationId;
  launch.cbid = static_cast<std::uint16_t>(id);
  launch.tid = thread_id();
  launch.duration_ns =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(now - start, gpu::kUnknownDuration));
  CallDetails details{};
  details.stream = gpu::kNoStream;
  const DetailedFunction function = function_of(t, id);
  launch.has_details = function != 0 && details_of(t.api, function, call, details);
  if (t.in_modules && (function == 0 || is_in_modules(function))) {
    const python::Here in = t.modules.here(static_cast<std::int64_t>(now));
    launch.module = in.module;
    launch.same = in.same;
    launch.made_by = t.autograd.here(in.called);
  }
  t.launches.note(launch, &details);
}

void on_driver_call(Tracer& t, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (t.follows && opens_window(id))
    return on_profiler_call(t, id, call.callbackSite == CUPTI_API_ENTER);
  counters_saw_call(id, call);
  const bool has_details = function_of(t, id) != 0;
  if (has_details && CacheFlush::running())
    return;  // our own call
  if (!t.by_callback && !has_details)
    return;
  const bool asleep = t.follows && control::asleep();
  if (call.callbackSite == CUPTI_API_ENTER) {
    *call.correlationData = asleep ? 0 : timestamp();
    return;
  }
  if (asleep)
    return;
  const std::uint64_t now = timestamp();
  const std::uint64_t start = std::exchange(*call.correlationData, 0);
  if (start == 0)
    return;  // it began while calls were not noted
  note_returned(t, id, call, start, now);
}

void on_fatal_error(Tracer& t, const CUpti_StateData& state) {
  const char* message = state.notification.message;
  if (message == nullptr)
    message = t.api.text(state.notification.result);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.loss(gpu::LossKind::kFatal, 0, message);
  t.stream.flush();
}

void CUPTIAPI on_callback(void*,
                          CUpti_CallbackDomain domain,
                          CUpti_CallbackId id,
                          const void* data) {
  Tracer& t = tracer();
  if (!t.tracing.load(std::memory_order_relaxed) || !is_of_this_process(t))
    return;
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      on_driver_call(t, id, *static_cast<const CUpti_CallbackData*>(data));
      break;
    case CUPTI_CB_DOMAIN_RESOURCE: on_resource(t, id, data); break;
    case CUPTI_CB_DOMAIN_STATE:
      if (id == CUPTI_CBID_STATE_FATAL_ERROR && data != nullptr)
        on_fatal_error(t, *static_cast<const CUpti_StateData*>(data));
      break;
    default: break;
  }
}

void sink_launch(void* user, const NotedLaunch& launch, const CallDetails* details) {
  Tracer& t = *static_cast<Tracer*>(user);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  const std::uint64_t end =
      launch.duration_ns == gpu::kUnknownDuration ? 0 : launch.start_ns + launch.duration_ns;
  t.encoder.launch(t.api,
                   launch.cbid,
                   launch.correlation,
                   launch.tid,
                   launch.start_ns,
                   end,
                   launch.module,
                   launch.same,
                   launch.made_by);
  if (details != nullptr)
    t.encoder.details(launch.correlation, *details);
}

// Writes the narrowest of a few readings of both clocks. A reading during which the thread was
// descheduled is imprecise.
void sample_clock(Tracer& t) {
  if (t.own_clock)
    return;
  constexpr int kReads = 5;
  gpu::ClockSample best{};
  for (int i = 0; i < kReads; ++i) {
    std::uint64_t cupti = 0;
    const std::int64_t before = now_ns();
    if (t.subscription.now(t.api, &cupti) != CUPTI_SUCCESS)
      return;
    const std::int64_t after = now_ns();
    if (i == 0 || after - before < best.after_ns - best.before_ns) {
      best = {{}, before, static_cast<std::int64_t>(cupti), after};
    }
  }
  t.encoder.clock_sample(best.before_ns, best.cupti_ns, best.after_ns);
}

void write_out(Tracer& t) {
  t.launches.drain();
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  report_dropped(t);
  sample_clock(t);
  t.stream.flush();
}

void flush_once(Tracer& t, bool forced) {
  t.api.cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  t.buffers_seen = t.buffers_filled.load();
  write_out(t);
}

// CUPTI delivers the buffers that a busy program fills. A flush is needed only for a buffer that
// does not fill, and it delays launches (PyTorch 2.11 on an H200: 4 % of a decode step with one a
// second). Hardware times stay in a buffer of the GPU until a flush.
void flush_where_idle(Tracer& t) {
  const std::uint64_t filled = t.buffers_filled.load();
  if (t.buffers_seen.exchange(filled) == filled || t.hardware_times)
    flush_once(t, false);
  else
    write_out(t);
}

// Outside of windows nothing is recorded, so there is nothing to flush.
void follow_windows(Tracer& t) {
  const bool wanted = !control::asleep();
  if (wanted == t.awake)
    return;
  t.awake = wanted;
  if (wanted) {
    (void)resume_activity();
  } else {
    (void)pause_activity();
    flush_activity();
  }
}

void flush_turn() {
  Tracer& t = tracer();
  if (t.follows)
    follow_windows(t);
  if (!t.awake || ++t.turns % t.turns_a_flush != 0)
    return;
  t.memory.saw_call();  // if CUPTI notes the launches, no call is seen here
  flush_where_idle(t);
}

// True if CUPTI accepted a part of the trace; otherwise writes a loss.
bool accept(Tracer& t, CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS)
    return true;
  char detail[256];
  std::snprintf(detail, sizeof detail, "%s: CUPTI refused: %s", what, t.api.text(result));
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.loss(gpu::LossKind::kPartial, 1, detail);
  return false;
}

CUptiResult note_call(Tracer& t, CUpti_CallbackId cbid, bool on) {
  const std::uint8_t enable{on};
  const bool by_callback = t.by_callback || t.detailed[cbid] != 0;
  if (!by_callback)
    return t.api.cuptiActivityEnableDriverApi(cbid, enable);
  return t.api.cuptiEnableCallback(enable, t.subscription.handle, CUPTI_CB_DOMAIN_DRIVER_API, cbid);
}

// Launch calls: activity records of chosen driver functions if the library can make them (from 12.3
// on), else callbacks. Modules need callbacks, which run on the launching thread. So does attach,
// which turns recording off and on again: CUPTI 13.0 makes no such record once they were off (seen
// on an H100). Windows leave them on: from the sixth window on, a program that replays CUDA graphs
// got no callback any more, and one correlation for all its calls (13.0, H200).
bool needs_callbacks(const Tracer& t) {
  if (t.in_modules || t.settings.launch_callbacks || t.subscription.shared)
    return true;
  if (t.settings.attached || t.follows)
    return true;
  return t.api.cuptiActivityEnableDriverApi == nullptr;
}

void note_launch_calls(Tracer& t) {
  bool refused = false;
  find_modules(t);
  record_memory(t);
  t.by_callback = needs_callbacks(t);
  for (std::uint32_t cbid = 1; cbid < kMostCbids; ++cbid) {
    const char* name = nullptr;
    const CUptiResult found = t.api.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name);
    if (found != CUPTI_SUCCESS || name == nullptr)
      continue;
    if (t.settings.call_details)
      t.detailed[cbid] = detailed_function(cbid);
    if (t.detailed[cbid] == 0 && !is_noted(name, t.settings))
      continue;
    const CUptiResult result = note_call(t, cbid, true);
    if (t.call_count < std::size(t.calls))
      t.calls[t.call_count++] = cbid;
    refused = refused || (result != CUPTI_SUCCESS && std::strcmp(name, "cuLaunchKernel") == 0);
  }
  if (refused)
    accept(t, CUPTI_ERROR_NOT_SUPPORTED, "launch calls, so kernels cannot be attributed to ranges");
}

// Activities recorded in addition to kernels. The first kPausedKinds are paused while counters are
// collected. SYNCHRONIZATION is not used: with it CUPTI 12.8 and 13.0 stop recording cuLaunchKernel
// among the chosen driver functions (seen on an H200). Waits are known from their calls.
constexpr struct {
  CUpti_ActivityKind kind;
  const char* name;
} kKinds[] = {{CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
              {CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between devices"},
              {CUPTI_ACTIVITY_KIND_MEMSET, "memory sets"},
              {CUPTI_ACTIVITY_KIND_DEVICE, "devices"},
              {CUPTI_ACTIVITY_KIND_CONTEXT, "contexts"}};
constexpr std::size_t kPausedKinds = 3;

void set_attributes(Tracer& t) {
  const Api& api = t.api;
  const Subscription& subscription = t.subscription;
  // Some of these are missing in older releases.
  (void)subscription.set(api, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1);
  // One buffer for all threads: memory stays bounded with thousands of threads, and a launch costs
  // the same.
  (void)subscription.set(api, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 0);
  if (api.cuptiSetThreadIdType != nullptr && !subscription.shared)
    api.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  const bool can_set_clock =
      api.cuptiActivityRegisterTimestampCallback != nullptr && !subscription.shared;
  t.own_clock =
      can_set_clock && api.cuptiActivityRegisterTimestampCallback(timestamp) == CUPTI_SUCCESS;
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info("clock", t.own_clock ? "callback" : "offset");
  sample_clock(t);
}

// The minimum without which there is no timeline.
bool enable_kernels(Tracer& t) {
  const Subscription& subscription = t.subscription;
  CUptiResult result = subscription.buffers(t.api, buffer_requested, buffer_completed);
  if (result == CUPTI_SUCCESS)
    result = subscription.turn(t.api, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, true);
  if (result == CUPTI_SUCCESS)
    return true;
  char detail[256];
  std::snprintf(detail, sizeof detail, "CUPTI refused to trace kernels: %s", t.api.text(result));
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.loss(gpu::LossKind::kUnavailable, 0, detail);
  return false;
}

void write_device(void* user, const CUpti_ActivityDevice4& device) {
  auto& t = *static_cast<Tracer*>(user);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.activity(t.api, reinterpret_cast<const CUpti_Activity&>(device));
}

CUptiResult enable_callback(Tracer& t, CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return t.api.cuptiEnableCallback(1, t.subscription.handle, domain, id);
}

void enable_times(Tracer& t) {
  const char* no_times = "software: CUPTI is shared";
  if (!t.subscription.shared)
    no_times = no_hardware_times(t.api);
  note_times(t, text_or(no_times, "software: the driver was initialised before"));
  if (no_times == nullptr)
    enable_callback(t, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED);
}

bool enable(Tracer& t) {
  set_attributes(t);
  if (!enable_kernels(t))
    return false;
  for (const auto& [kind, name] : kKinds)
    accept(t, t.subscription.turn(t.api, kind, true), name);
  if (!t.settings.graph_nodes)
    accept(t,
           t.subscription.turn(t.api, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, true),
           "graph launches as a whole");
  if (t.settings.attached)
    each_device(write_device, &t);
  note_launch_calls(t);
  if (t.follows && control::by_calls()) {
    for (const auto id :
         {CUPTI_DRIVER_TRACE_CBID_cuProfilerStart, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop})
      accept(t, enable_callback(t, CUPTI_CB_DOMAIN_DRIVER_API, id), "cuProfilerStart");
  }
  enable_times(t);
  for (const CUpti_CallbackId id : {CUPTI_CBID_RESOURCE_GRAPH_CREATED,
                                    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                                    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING})
    accept(t, enable_callback(t, CUPTI_CB_DOMAIN_RESOURCE, id), "graph nodes");
  enable_callback(t, CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR);
  return true;
}

// Forgets the previous stream: its definitions and counts.
void forget(Tracer& t) {
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.~Encoder();
  new (&t.encoder) Encoder(t.stream);
  t.cupti_dropped = 0;
  t.reported_dropped = t.launches.dropped();
  t.in_modules = t.by_callback = false;
  t.call_count = 0;
  std::memset(t.detailed, 0, sizeof t.detailed);
}

void note_activity(Tracer& t, bool resumed) {
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.stream.put(wire::counters::Activity{
      gpu::head(wire::counters::Type::kActivity, 0, std::uint8_t{resumed}), now_ns()});
  t.stream.flush();
}

const char* profiler_in(const char* library) {
  if (std::strstr(library, "libtorch") != nullptr)
    return "PyTorch's profiler";
  return after_last(library, '/');
}

// Ends tracing because a profiler inside the program is about to subscribe.
void let_go(const char* library) {
  Tracer* t = running_tracer();
  if (t == nullptr)
    return;
  char detail[256];
  std::snprintf(
      detail,
      sizeof detail,
      "%s began %.3f s after the GPU was first used: GPU work is not recorded from then on",
      profiler_in(library),
      static_cast<double>(now_ns() - t->start_ns) / 1e9);
  {
    const std::lock_guard<std::mutex> guard(t->stream_lock);
    t->encoder.loss(gpu::LossKind::kLetGo, 1, detail);
  }
  note_activity(*t, false);
  end_trace();
}

Tracer& fresh_tracer() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  if (t == nullptr) {
    t = new (tracer_memory) Tracer;
    the_tracer.store(t, std::memory_order_release);
  } else {
    forget(*t);
  }
  return *t;
}

bool open_stream(Tracer& t) {
  gpu::FileHeader header{};
  std::memcpy(header.magic, gpu::kMagic, sizeof header.magic);
  header.version = gpu::kVersion;
  header.header_bytes = sizeof header;
  header.pid = static_cast<std::uint32_t>(getpid());
  header.cupti_version = t.api.version;
  clock_prepare();
  t.start_ns = now_ns();
  header.start_ns = t.start_ns;
  header.start_unix_ns = utc_ns();
  return t.stream.open(t.settings.path, header, t.settings.size_limit);
}

void write_settings(Tracer& t) {
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info("flush_interval_ms", t.settings.flush_interval_ms);
  t.encoder.info("graphs", t.settings.graph_nodes ? "node" : "graph");
  t.encoder.info("launch_records", t.by_callback ? "callback" : "activity");
  t.stream.flush();
}

void start_flusher(Tracer& t) {
  constexpr std::uint32_t kPoll_ms = 10;  // how soon a window that opens or closes is seen
  const std::uint32_t interval_ms = t.settings.flush_interval_ms;
  if (!t.follows)
    return t.flusher.start(interval_ms, flush_turn);
  follow_windows(t);
  t.turns_a_flush = interval_ms == 0 ? UINT32_MAX : interval_ms / kPoll_ms + 1;
  t.flusher.start(kPoll_ms, flush_turn);
}

}  // namespace

bool start_trace(const TraceSettings& settings) {
  if (begun.exchange(true))
    return false;
  Tracer& t = fresh_tracer();
  t.settings = settings;
  t.follows = control::controlled();
  t.generation = process_generation();
  char why[512] = {};
  const bool loaded = load(t.api, why, sizeof why);  // finds the same library if it is loaded
  if (!open_stream(t))
    return false;
  if (loaded) {
    char version[32];
    t.encoder.info("cupti", version_name(t.api.version, version, sizeof version));
    t.encoder.info("cupti_path", t.api.path);
  }
  if (!loaded || !subscribe(t.api, on_callback, nullptr, t.subscription, why, sizeof why)) {
    t.encoder.loss(gpu::LossKind::kUnavailable, 0, why);
    t.stream.close();
    return false;
  }
  t.launches.set_sink(sink_launch, &t);
  t.tracing.store(true);
  if (!enable(t)) {
    t.tracing.store(false);
    t.api.cuptiUnsubscribe(t.subscription.handle);
    t.subscription = {};
    t.stream.close();
    return false;
  }
  write_settings(t);
  t.state.store(State::kRunning);
  start_flusher(t);
  start_counters(t.api, t.subscription);
  if (!is_set(wire::kGiveWay, "off"))
    give_way(t.api, t.subscription.shared, let_go);
  return true;
}

namespace {

// With the stream's lock.
void write_losses(Tracer& t) {
  report_dropped(t);
  const auto write = [&](gpu::LossKind kind, std::uint64_t count, const char* detail) {
    if (count > 0)
      t.encoder.loss(kind, count, detail);
  };
  write(gpu::LossKind::kUnfinished,
        t.encoder.unfinished(),
        "GPU work had not ended when the program did, or its times could not be read");
  write(
      gpu::LossKind::kImpossible, t.encoder.impossible(), "GPU work that ended before it started");
  write(gpu::LossKind::kPartial,
        t.modules.untold(),
        "launches whose Python frames could not be read: their modules are not known");
  write(gpu::LossKind::kSizeLimit,
        t.stream.beyond_limit(),
        "GPU records beyond the largest capture size");
  write(gpu::LossKind::kWriteFailed,
        t.stream.failed_bytes(),
        "bytes of GPU records could not be written");
}

}  // namespace

void finish_trace() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  if (t == nullptr || !is_of_this_process(*t))
    return;
  State running = State::kRunning;
  if (!t->state.compare_exchange_strong(running, State::kFinished))
    return;
  finish_counters();
  t->flusher.stop();
  flush_once(*t, true);
  const std::lock_guard<std::mutex> guard(t->stream_lock);
  write_losses(*t);
  t->encoder.info("ended_ns", now_ns());
  t->encoder.info("end", "clean");
  t->stream.close();
  t->tracing.store(false);
}

void end_trace() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  if (t == nullptr || !is_of_this_process(*t))
    return;
  if (t->state.load() == State::kRunning) {
    keep_way();
    for (std::size_t i = 0; i < t->call_count; ++i)
      (void)note_call(*t, t->calls[i], false);  // calls that were refused are refused again
    (void)switch_kinds(*t, false);
    for (std::size_t i = kPausedKinds; i < std::size(kKinds); ++i)
      (void)t->subscription.turn(t->api, kKinds[i].kind, false);
    finish_trace();
    // Back to CUPTI's defaults.
    (void)t->subscription.set(t->api, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 0);
    (void)t->subscription.set(t->api, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1);
    t->api.cuptiUnsubscribe(t->subscription.handle);
    t->subscription = {};
  }
  t->state.store(State::kIdle);
  begun.store(false);
}

bool launches_by_callback() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  return t != nullptr && t->by_callback;
}

void with_stream(void (*use)(Encoder& encoder, GpuStream& stream, void* user), void* user) {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  if (t == nullptr || !is_of_this_process(*t))
    return;
  const std::lock_guard<std::mutex> guard(t->stream_lock);
  if (t->stream.is_open())
    use(t->encoder, t->stream, user);
}

namespace {

/// CUPTI_ERROR_UNKNOWN if any kind was refused.
CUptiResult switch_kinds(Tracer& t, bool on) {
  CUptiResult result = CUPTI_SUCCESS;
  const auto turn = [&](CUpti_ActivityKind kind) {
    if (t.subscription.turn(t.api, kind, on) != CUPTI_SUCCESS)
      result = CUPTI_ERROR_UNKNOWN;
  };
  turn(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  for (std::size_t i = 0; i < kPausedKinds; ++i)
    turn(kKinds[i].kind);
  if (!t.settings.graph_nodes)
    turn(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  return result;
}

}  // namespace

bool pause_activity() {
  Tracer* t = running_tracer();
  if (t == nullptr)
    return false;
  note_activity(*t, false);
  const CUptiResult result = switch_kinds(*t, false);
  return accept(*t, result, "the pause for counters");
}

void flush_activity() {
  if (Tracer* t = running_tracer(); t != nullptr)
    flush_once(*t, false);
}

bool resume_activity() {
  Tracer* t = running_tracer();
  if (t == nullptr)
    return false;
  const CUptiResult result = switch_kinds(*t, true);
  const bool is_resumed = accept(*t, result, "the timeline after counters");
  note_activity(*t, true);
  return is_resumed;
}

}  // namespace rangescope::inject::cupti
