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
#include "wire/counters.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {
namespace gpu = wire::gpu;
namespace {

std::atomic<bool> begun{false};  // and not ended by end_trace()

std::int64_t utc_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// The clock of CUPTI's records. It stays registered where CUPTI goes on with another tool, which
// expects CUPTI's own.
std::uint64_t CUPTIAPI timestamp() {
  return static_cast<std::uint64_t>(begun.load(std::memory_order_relaxed) ? now_ns() : utc_ns());
}

// Made in place and never destroyed: CUPTI's threads may call back after static destructors ran.
alignas(Tracer) unsigned char tracer_memory[sizeof(Tracer)];
std::atomic<Tracer*> the_tracer{nullptr};

Tracer& tracer() {
  return *the_tracer.load(std::memory_order_acquire);
}

// False in the child of a fork: tracing is the parent's, and its threads may have held any of the
// locks.
bool ours(const Tracer& t) {
  return t.generation == process.generation.load(std::memory_order_relaxed);
}

// Null before and after, and in the child of a fork, which has none until it loads CUDA anew by
// exec.
Tracer* running_tracer() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  return t != nullptr && ours(*t) && t->state.load() == State::kRunning ? t : nullptr;
}

void tell_dropped(Tracer& t) {
  const std::uint64_t dropped = t.cupti_dropped + t.launches.dropped();
  if (dropped > t.told_dropped) {
    t.encoder.loss(
        gpu::LossKind::kDropped, dropped - t.told_dropped,
        "GPU records were dropped because no buffer was free: kernels or copies are missing");
    t.told_dropped = dropped;
  }
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* bytes,
                               std::size_t* most_records) {
  *buffer = ours(tracer()) ? tracer().buffers.take() : nullptr;
  *bytes = *buffer != nullptr ? BufferPool::kBytes : 0;
  *most_records = 0;
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                               std::size_t valid) {
  Tracer& t = tracer();
  if (!ours(t)) return;
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
  if (t.api.cuptiGetGraphNodeId(data.node, &node) != CUPTI_SUCCESS) return;
  if (clone && t.api.cuptiGetGraphNodeId(data.originalNode, &original) != CUPTI_SUCCESS) return;
  const std::uint64_t now = timestamp();
  const std::uint32_t tid = thread_id();
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.node(tid, static_cast<std::uint8_t>(data.nodeType), now, node, original);
}

// Since when a capture runs: ranges that were open before are not part of the path inside it.
void note_graph(Tracer& t, CUgraph graph) {
  static auto* const id_of =
      reinterpret_cast<CUptiResult (*)(CUgraph, std::uint32_t*)>(t.api.find("cuptiGetGraphId"));
  std::uint32_t id = 0;
  if (graph == nullptr || id_of == nullptr || id_of(graph, &id) != CUPTI_SUCCESS) return;
  const std::uint64_t now = timestamp();
  const std::uint32_t tid = thread_id();
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.node(tid, gpu::kGraphBegun, now, id, 0);
}

void flush_once(Tracer& t, bool forced);
bool switch_kinds(Tracer& t, bool on);

void note_times(Tracer& t, const char* how) {
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.info("kernel_times", how);
}

void on_resource(Tracer& t, CUpti_CallbackId id, const void* data) {
  if (id == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED) {  // asked for where there are hardware times
    char text[128];
    const char* how = begin_hardware_times(t.api, text, sizeof text);
    t.hardware_times = std::strcmp(how, "hardware") == 0;
    note_times(t, how);
  }
  if (data == nullptr) {
    return;  // the driver's initialisation comes without data (CUPTI 13.0)
  }
  const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPH_CREATED:
      if (resource.resourceDescriptor != nullptr)
        note_graph(t, static_cast<const CUpti_GraphData*>(resource.resourceDescriptor)->graph);
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      if (resource.resourceDescriptor != nullptr) {
        note_node(t, *static_cast<const CUpti_GraphData*>(resource.resourceDescriptor),
                  id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
      }
      break;
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED: counters_meet_context(resource.context); break;
    case CUPTI_CBID_RESOURCE_MODULE_LOADED:
      if (resource.resourceDescriptor != nullptr)
        keep_module(*static_cast<const CUpti_ModuleResourceData*>(resource.resourceDescriptor));
      break;
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
      // cudaDeviceReset takes the context's unread records with it.
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

// What is launched behind the call is in the window: the call waits until kernels are recorded, by
// the flusher's next turn.
void on_profiler_call(Tracer& t, CUpti_CallbackId id, bool enters) {
  constexpr int kMost_ms = 100;
  if (!control::by_calls()) return;
  if (enters && id == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop) return control::stops();
  if (enters || id != CUPTI_DRIVER_TRACE_CBID_cuProfilerStart || !control::is_called()) return;
  for (int i = 0; i < kMost_ms && !t.awake; ++i) usleep(1000);
  control::starts();
}

DetailedFunction function_of(const Tracer& t, CUpti_CallbackId id) {
  return id < kMostCbids ? t.detailed[id] : DetailedFunction{0};
}

// A call that has returned, on the thread that made it.
void note_returned(Tracer& t, CUpti_CallbackId id, const CUpti_CallbackData& call,
                   std::uint64_t start, std::uint64_t now) {
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
  if (has_details && CacheFlush::running()) return;  // our own call
  if (!t.by_callback && !has_details) return;
  const bool asleep = t.follows && control::asleep();
  if (call.callbackSite == CUPTI_API_ENTER) {
    *call.correlationData = asleep ? 0 : timestamp();
    return;
  }
  if (asleep) return;
  const std::uint64_t now = timestamp();
  const std::uint64_t start = std::exchange(*call.correlationData, 0);
  if (start == 0) return;  // it had begun when calls were not noted
  note_returned(t, id, call, start, now);
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* data) {
  Tracer& t = tracer();
  if (!t.tracing.load(std::memory_order_relaxed) || !ours(t)) return;
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      on_driver_call(t, id, *static_cast<const CUpti_CallbackData*>(data));
      break;
    case CUPTI_CB_DOMAIN_RESOURCE: on_resource(t, id, data); break;
    case CUPTI_CB_DOMAIN_STATE:
      if (id == CUPTI_CBID_STATE_FATAL_ERROR && data != nullptr) {
        const auto& state = *static_cast<const CUpti_StateData*>(data);
        const std::lock_guard<std::mutex> guard(t.stream_lock);
        t.encoder.loss(gpu::LossKind::kFatal, 0,
                       state.notification.message != nullptr
                           ? state.notification.message
                           : t.api.text(state.notification.result));
        t.stream.flush();
      }
      break;
    default: break;
  }
}

void sink_launch(void* user, const NotedLaunch& launch, const CallDetails* details) {
  Tracer& t = *static_cast<Tracer*>(user);
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  const std::uint64_t end =
      launch.duration_ns == gpu::kUnknownDuration ? 0 : launch.start_ns + launch.duration_ns;
  t.encoder.launch(t.api, launch.cbid, launch.correlation, launch.tid, launch.start_ns, end,
                   launch.module, launch.same, launch.made_by);
  if (details != nullptr) t.encoder.details(launch.correlation, *details);
}

// The narrowest of a few reads: a thread that is put aside between the reads says little about the
// clocks.
void sample_clock(Tracer& t) {
  if (t.own_clock) return;
  constexpr int kReads = 5;
  gpu::ClockSample best{};
  for (int i = 0; i < kReads; ++i) {
    std::uint64_t cupti = 0;
    const std::int64_t before = now_ns();
    if (t.subscription.now(t.api, &cupti) != CUPTI_SUCCESS) return;
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
  tell_dropped(t);
  sample_clock(t);
  t.stream.flush();
}

void flush_once(Tracer& t, bool forced) {
  t.api.cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  t.buffers_seen = t.buffers_filled.load();
  write_out(t);
}

// CUPTI hands over the buffers that a busy program fills. Only what lies in one that does not fill
// is asked for: a flush holds up launches (PyTorch 2.11 on an H200: 4 % of a decode step with one a
// second). What the hardware times lies in a buffer of the GPU until it is asked for.
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
  if (wanted == t.awake) return;
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
  if (t.follows) follow_windows(t);
  if (!t.awake || ++t.turns % t.turns_a_flush != 0) return;
  t.memory.saw_call();  // where CUPTI notes the launches, no call comes by
  flush_where_idle(t);
}

// Counts a part that CUPTI refuses; true when it was accepted.
bool accept(Tracer& t, CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  char detail[256];
  std::snprintf(detail, sizeof detail, "%s: CUPTI refused: %s", what, t.api.text(result));
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.loss(gpu::LossKind::kPartial, 1, detail);
  return false;
}

CUptiResult note_call(Tracer& t, CUpti_CallbackId cbid, bool on) {
  const std::uint8_t enable = on ? 1 : 0;
  const bool by_callback = t.by_callback || t.detailed[cbid] != 0;
  if (!by_callback) return t.api.cuptiActivityEnableDriverApi(cbid, enable);
  return t.api.cuptiEnableCallback(enable, t.subscription.handle, CUPTI_CB_DOMAIN_DRIVER_API, cbid);
}

// Launch calls: activity records of chosen driver functions where the library can (from 12.3 on),
// else callbacks, which come on the launching thread, as modules need it. Where they are turned off
// and on again (attach), callbacks: CUPTI 13.0 makes no such record once they were off (seen on an
// H100). Windows leave them on: a program that replays CUDA graphs got no callback any more, and
// one correlation for all its calls, from the sixth window on (13.0, H200).
void note_launch_calls(Tracer& t) {
  bool refused = false;
  find_modules(t);
  record_memory(t);
  t.by_callback = t.in_modules || t.settings.launch_callbacks || t.settings.attached || t.follows ||
                  t.subscription.shared || t.api.cuptiActivityEnableDriverApi == nullptr;
  for (std::uint32_t cbid = 1; cbid < kMostCbids; ++cbid) {
    const char* name = nullptr;
    if (t.api.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name) != CUPTI_SUCCESS ||
        name == nullptr)
      continue;
    if (t.settings.call_details) t.detailed[cbid] = detailed_function(cbid);
    if (t.detailed[cbid] == 0 && !is_noted(name, t.settings)) continue;
    const CUptiResult result = note_call(t, cbid, true);
    if (t.call_count < std::size(t.calls)) t.calls[t.call_count++] = cbid;
    refused = refused || (result != CUPTI_SUCCESS && std::strcmp(name, "cuLaunchKernel") == 0);
  }
  if (refused)
    accept(t, CUPTI_ERROR_NOT_SUPPORTED, "launch calls, so kernels cannot be attributed to ranges");
}

// What is recorded beside kernels; the first ones are paused while counters are collected. Not
// SYNCHRONIZATION: with it CUPTI 12.8 and 13.0 stop recording cuLaunchKernel among the chosen
// driver functions (seen on an H200), and a wait is known from its call all the same.
constexpr struct {
  CUpti_ActivityKind kind;
  const char* what;
} kKinds[] = {{CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
              {CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between devices"},
              {CUPTI_ACTIVITY_KIND_MEMSET, "memory sets"},
              {CUPTI_ACTIVITY_KIND_DEVICE, "devices"},
              {CUPTI_ACTIVITY_KIND_CONTEXT, "contexts"}};
constexpr std::size_t kPausedKinds = 3;

bool enable(Tracer& t) {
  const Api& api = t.api;
  const Subscription& ours = t.subscription;
  // Preferences: older releases lack some.
  (void)ours.set(api, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1);
  // One buffer for all threads: memory stays bounded with thousands of them, and costs no more a
  // launch.
  (void)ours.set(api, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 0);
  if (api.cuptiSetThreadIdType != nullptr && !ours.shared)
    api.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  t.own_clock = api.cuptiActivityRegisterTimestampCallback != nullptr && !ours.shared &&
                api.cuptiActivityRegisterTimestampCallback(timestamp) == CUPTI_SUCCESS;
  {
    const std::lock_guard<std::mutex> guard(t.stream_lock);
    t.encoder.info("clock", t.own_clock ? "callback" : "offset");
    sample_clock(t);
  }
  const CUptiResult registered = ours.buffers(api, buffer_requested, buffer_completed);
  const CUptiResult kernels = registered != CUPTI_SUCCESS
                                  ? registered
                                  : ours.turn(api, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, true);
  if (kernels != CUPTI_SUCCESS) {
    char detail[256];
    std::snprintf(detail, sizeof detail, "CUPTI refused to trace kernels: %s", api.text(kernels));
    const std::lock_guard<std::mutex> guard(t.stream_lock);
    t.encoder.loss(gpu::LossKind::kUnavailable, 0, detail);
    return false;
  }
  for (const auto& wanted : kKinds) accept(t, ours.turn(api, wanted.kind, true), wanted.what);
  if (!t.settings.graph_nodes)
    accept(t, ours.turn(api, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, true), "graph launches as a whole");
  if (t.settings.attached)
    each_device(
        [](void* user, const CUpti_ActivityDevice4& device) {
          auto& to = *static_cast<Tracer*>(user);
          const std::lock_guard<std::mutex> guard(to.stream_lock);
          to.encoder.activity(to.api, reinterpret_cast<const CUpti_Activity&>(device));
        },
        &t);
  note_launch_calls(t);
  if (t.follows && control::by_calls())
    for (const auto id :
         {CUPTI_DRIVER_TRACE_CBID_cuProfilerStart, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop})
      accept(t, api.cuptiEnableCallback(1, t.subscription.handle, CUPTI_CB_DOMAIN_DRIVER_API, id),
             "cuProfilerStart");
  const char* no_times = ours.shared ? "software: CUPTI is shared" : no_hardware_times(api);
  note_times(t, no_times != nullptr ? no_times : "software: the driver was initialised before");
  if (no_times == nullptr)
    api.cuptiEnableCallback(1, t.subscription.handle, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_CU_INIT_FINISHED);
  for (const CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
        CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING}) {
    accept(t, api.cuptiEnableCallback(1, t.subscription.handle, CUPTI_CB_DOMAIN_RESOURCE, id),
           "graph nodes");
  }
  api.cuptiEnableCallback(1, t.subscription.handle, CUPTI_CB_DOMAIN_STATE,
                          CUPTI_CBID_STATE_FATAL_ERROR);
  return true;
}

// What was written into the stream before the one that begins.
void forget(Tracer& t) {
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.encoder.~Encoder();
  new (&t.encoder) Encoder(t.stream);
  t.cupti_dropped = 0;
  t.told_dropped = t.launches.dropped();
  t.in_modules = t.by_callback = false;
  t.call_count = 0;
  std::memset(t.detailed, 0, sizeof t.detailed);
}

void note_activity(Tracer& t, bool resumed) {
  const std::lock_guard<std::mutex> guard(t.stream_lock);
  t.stream.put(wire::counters::Activity{
      gpu::head(wire::counters::Type::kActivity, 0, resumed ? 1 : 0), now_ns()});
  t.stream.flush();
}

// A profiler inside the program is about to subscribe.
void let_go(const char* library) {
  Tracer* t = running_tracer();
  if (t == nullptr) return;
  const char* name = std::strrchr(library, '/');
  const bool kineto = std::strstr(library, "libtorch") != nullptr;
  char detail[256];
  std::snprintf(
      detail, sizeof detail,
      "%s began %.3f s after the GPU was first used: GPU work is not recorded from then on",
      kineto            ? "PyTorch's profiler"
      : name != nullptr ? name + 1
                        : library,
      static_cast<double>(now_ns() - t->start_ns) / 1e9);
  {
    const std::lock_guard<std::mutex> guard(t->stream_lock);
    t->encoder.loss(gpu::LossKind::kLetGo, 1, detail);
  }
  note_activity(*t, false);
  end_trace();
}

}  // namespace

bool start_trace(const TraceSettings& settings) {
  if (begun.exchange(true)) return false;
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  if (t == nullptr) {
    t = new (tracer_memory) Tracer;
    the_tracer.store(t, std::memory_order_release);
  } else {
    forget(*t);
  }
  t->settings = settings;
  t->follows = control::controlled();
  t->generation = process_generation();
  char why[512] = {};
  const bool loaded = load(t->api, why, sizeof why);  // what is loaded already is found again
  gpu::FileHeader header{};
  std::memcpy(header.magic, gpu::kMagic, sizeof header.magic);
  header.version = gpu::kVersion;
  header.header_bytes = sizeof header;
  header.pid = static_cast<std::uint32_t>(getpid());
  header.cupti_version = t->api.version;
  clock_prepare();
  header.start_ns = t->start_ns = now_ns();
  header.start_unix_ns = utc_ns();
  if (!t->stream.open(settings.path, header, settings.size_limit)) return false;
  if (loaded) {
    char version[32];
    t->encoder.info("cupti", version_name(t->api.version, version, sizeof version));
    t->encoder.info("cupti_path", t->api.path);
  }
  if (!loaded || !subscribe(t->api, on_callback, nullptr, t->subscription, why, sizeof why)) {
    t->encoder.loss(gpu::LossKind::kUnavailable, 0, why);
    t->stream.close();
    return false;
  }
  t->launches.set_sink(sink_launch, t);
  t->tracing.store(true);
  if (!enable(*t)) {
    t->tracing.store(false);
    t->api.cuptiUnsubscribe(t->subscription.handle);
    t->subscription = {};
    t->stream.close();
    return false;
  }
  {
    const std::lock_guard<std::mutex> guard(t->stream_lock);
    t->encoder.info("flush_interval_ms", settings.flush_interval_ms);
    t->encoder.info("graphs", settings.graph_nodes ? "node" : "graph");
    t->encoder.info("launch_records", t->by_callback ? "callback" : "activity");
    t->stream.flush();
  }
  t->state.store(State::kRunning);
  constexpr std::uint32_t kLook_ms = 10;  // how soon a window that opens or closes is seen
  if (t->follows) {
    follow_windows(*t);
    t->turns_a_flush =
        settings.flush_interval_ms == 0 ? UINT32_MAX : settings.flush_interval_ms / kLook_ms + 1;
  }
  t->flusher.start(t->follows ? kLook_ms : settings.flush_interval_ms, flush_turn);
  start_counters(t->api, t->subscription);
  if (!is_set(wire::kGiveWay, "off")) give_way(t->api, t->subscription.shared, let_go);
  return true;
}

void finish_trace() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  State running = State::kRunning;
  if (t == nullptr || !ours(*t) || !t->state.compare_exchange_strong(running, State::kFinished))
    return;
  finish_counters();
  t->flusher.stop();
  flush_once(*t, true);
  const std::lock_guard<std::mutex> guard(t->stream_lock);
  tell_dropped(*t);
  if (t->encoder.unfinished() > 0) {
    t->encoder.loss(gpu::LossKind::kUnfinished, t->encoder.unfinished(),
                    "GPU work had not ended when the program did, or its times could not be read");
  }
  if (t->encoder.impossible() > 0)
    t->encoder.loss(gpu::LossKind::kImpossible, t->encoder.impossible(),
                    "GPU work that ended before it started");
  if (t->modules.untold() > 0) {
    t->encoder.loss(gpu::LossKind::kPartial, t->modules.untold(),
                    "launches whose Python frames could not be read: their modules are not known");
  }
  if (t->stream.beyond_limit() > 0)
    t->encoder.loss(gpu::LossKind::kSizeLimit, t->stream.beyond_limit(),
                    "GPU records beyond the largest capture size");
  if (t->stream.failed_bytes() > 0)
    t->encoder.loss(gpu::LossKind::kWriteFailed, t->stream.failed_bytes(),
                    "bytes of GPU records could not be written");
  t->encoder.info("ended_ns", now_ns());
  t->encoder.info("end", "clean");
  t->stream.close();
  t->tracing.store(false);
}

void end_trace() {
  Tracer* t = the_tracer.load(std::memory_order_acquire);
  if (t == nullptr || !ours(*t)) return;
  if (t->state.load() == State::kRunning) {
    keep_way();
    for (std::size_t i = 0; i < t->call_count; ++i)
      (void)note_call(*t, t->calls[i], false);  // those that were refused are again
    (void)switch_kinds(*t, false);
    for (std::size_t i = kPausedKinds; i < std::size(kKinds); ++i)
      (void)t->subscription.turn(t->api, kKinds[i].kind, false);
    finish_trace();
    // CUPTI's defaults.
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
  if (t == nullptr || !ours(*t)) return;
  const std::lock_guard<std::mutex> guard(t->stream_lock);
  if (t->stream.is_open()) use(t->encoder, t->stream, user);
}

namespace {

bool switch_kinds(Tracer& t, bool on) {
  const auto turn = [&](CUpti_ActivityKind kind) { return t.subscription.turn(t.api, kind, on); };
  bool good = turn(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
  for (std::size_t i = 0; i < kPausedKinds; ++i)
    good = turn(kKinds[i].kind) == CUPTI_SUCCESS && good;
  if (!t.settings.graph_nodes)
    good = turn(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) == CUPTI_SUCCESS && good;
  return good;
}

}  // namespace

bool pause_activity() {
  Tracer* t = running_tracer();
  if (t == nullptr) return false;
  note_activity(*t, false);
  return accept(*t, switch_kinds(*t, false) ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN,
                "the pause for counters");
}

void flush_activity() {
  if (Tracer* t = running_tracer(); t != nullptr) flush_once(*t, false);
}

bool resume_activity() {
  Tracer* t = running_tracer();
  if (t == nullptr) return false;
  const bool good = accept(*t, switch_kinds(*t, true) ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN,
                           "the timeline after counters");
  note_activity(*t, true);
  return good;
}

}  // namespace rangescope::inject::cupti
