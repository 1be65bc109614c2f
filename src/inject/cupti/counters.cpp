#include "inject/cupti/counters.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "inject/cupti/aside.hpp"
#include "inject/cupti/collector.hpp"
#include "inject/cupti/trace.hpp"
#include "inject/nvtx/process.hpp"
#include "inject/nvtx/setting.hpp"
#include "wire/names.hpp"

namespace rangescope::inject::cupti {
namespace {

std::atomic<Collector*> the_collector{nullptr};
std::atomic<bool> live{false};

// Loads the libraries that CUPTI's profiler would load from its own folder at its first use. Loaded
// before the end of the trace is registered with atexit, their own exit handlers run after counters
// have ended.
void load_profiler(const Api& api) {
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
    char path[640];
    const char* slash = std::strrchr(api.path, '/');
    std::snprintf(path,
                  sizeof path,
                  "%.*s%s",
                  slash == nullptr ? 0 : static_cast<int>(slash - api.path + 1),
                  api.path,
                  name);
    (void)dlopen(path, RTLD_NOW);
  }
}

// Waits for the worker, but not forever: the driver may hold a lock that the worker needs. With the
// lock.
template <class Condition>
void wait_while(Collector& c, Condition condition) {
  constexpr std::int64_t kLimit_ns = 2000000000;
  const std::int64_t until = monotonic_ns() + kLimit_ns;
  while (condition() && monotonic_ns() < until)
    wait_for(c.idle, c.lock, kLimit_ns);
}

bool read_plan(Collector& c, const char* path, char* why, std::size_t why_bytes) {
  std::FILE* file = std::fopen(path, "rbe");
  if (file == nullptr) {
    std::snprintf(why, why_bytes, "cannot open the counters plan %s", path);
    return false;
  }
  static char text[256 * 1024];
  const std::size_t bytes = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  return counters::parse_plan(text, bytes, c.plan, why, why_bytes);
}

}  // namespace

Collector* running_collector() {
  if (!live.load(std::memory_order_acquire))
    return nullptr;
  Collector* c = the_collector.load(std::memory_order_acquire);
  if (c->generation != process.generation.load(std::memory_order_relaxed))
    return nullptr;
  return c;
}

void watch_launches(Collector& c, bool on) {
  if (launches_by_callback())
    return;  // the timeline's own
  for (std::uint32_t id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; ++id) {
    if (Recorder::wants(id))
      c.api->cuptiEnableCallback(
          std::uint32_t{on}, c.subscription.handle, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
}

namespace {

// Null, or why there are no counters. Once the collector is published to the hooks it stays.
const char* start(Collector& c, const char* path, char* why, std::size_t why_bytes) {
  if (!read_plan(c, path, why, why_bytes))
    return why;
  const bool is_loaded =
      c.plan.pc ? c.pc.load(*c.api, why, why_bytes) : c.range.load(*c.api, why, why_bytes);
  if (!is_loaded)
    return why;
  if (!c.driver.load())
    return "no hardware counters: libcuda.so.1 lacks functions that are needed";
  make_condition(c.wake);
  make_condition(c.idle);
  if (c.plan.resume != nullptr && !load_progress(c, why, why_bytes))
    return why;
  if (!make_observer())
    return "no hardware counters: no key for thread memory is left";
  find_sampler();
  load_profiler(*c.api);
  the_collector.store(&c, std::memory_order_release);
  write_metrics(c);
  for (const std::uint32_t id : GraphCaptures::kCalls)
    c.api->cuptiEnableCallback(1, c.subscription.handle, CUPTI_CB_DOMAIN_DRIVER_API, id);
  watch_launches(c, true);
  if (c.plan.pc) {
    for (const CUpti_CallbackId id :
         {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_MODULE_LOADED})
      c.api->cuptiEnableCallback(1, c.subscription.handle, CUPTI_CB_DOMAIN_RESOURCE, id);
  }
  if (!start_worker(c))
    return "no hardware counters: no thread could be made for them";
  return nullptr;
}

}  // namespace

bool start_counters(const Api& api, const Subscription& subscription) {
  const char* path = setting(wire::kCounters);
  if (path == nullptr || path[0] == '\0')
    return false;
  void* memory = std::calloc(1, sizeof(Collector));
  if (memory == nullptr)
    return false;
  auto* c = new (memory) Collector;  // not freed once hooks may come
  c->api = &api;
  c->subscription = subscription;
  c->generation = process_generation();
  char text[512] = {};
  if (const char* why = start(*c, path, text, sizeof text); why != nullptr) {
    tell_loss(why);
    if (the_collector.load(std::memory_order_relaxed) == nullptr) {
      counters::release_plan(c->plan);
      c->~Collector();
      std::free(memory);
    }
    return false;
  }
  live.store(true, std::memory_order_release);
  set_range_observer(&range_observer());
  return true;
}

namespace {

// Afterwards kernels may run concurrently again. The samples stay.
void stop_samples(Collector& c) {
  const std::size_t count = c.context_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i)
    (void)c.contexts[i].pc.stop();
}

bool is_in_use(const Context& context) {
  return context.state == Context::State::kReady || context.state == Context::State::kNew;
}

// A kernel of NCCL waits for kernels of other GPUs, which this thread may launch later. Sampling
// serializes kernels, so they would wait forever: before the first of them is launched, sampling
// ends in the whole process.
void decline_samples(Collector& c) {
  if (c.declined.exchange(true))
    return;
  stop_samples(c);
  tell_loss(
      "samples of the program counter ended where the first kernel of NCCL was launched: they make "
      "kernels run one "
      "after the other, and those of NCCL wait for each other. Sample a process that runs alone");
  const Locked locked(c);
  for (std::size_t i = 0; i < c.context_count; ++i) {
    Context& context = c.contexts[i];
    if (is_in_use(context))
      context.state = Context::State::kLeaving;
  }
  pthread_cond_signal(&c.wake);
}

}  // namespace

void counters_saw_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  Collector* c = running_collector();
  if (c == nullptr || CacheFlush::running())
    return;
  if (c->captures.observe(id, call)) {
    if (c->plan.pc)
      stop_samples(*c);
    // The worker begins nothing new during a capture. Wait until its current work has ended.
    const Locked locked(*c);
    wait_while(*c, [&] { return c->busy != nullptr; });
  }
  if (c->plan.pc && call.callbackSite == CUPTI_API_ENTER && Recorder::launches_nccl(id, call))
    decline_samples(*c);
  const std::size_t count = c->context_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    Context& context = c->contexts[i];
    if (context.context != call.context)
      continue;
    CUstream stream = nullptr;
    if (context.recorder.observe(id, call, stream))
      context.flush.run(c->driver, stream);
  }
}

void counters_meet_context(CUcontext context) {
  Collector* c = running_collector();
  if (c == nullptr || !c->plan.pc)
    return;
  const Locked locked(*c);
  Context* entry = context_of(*c, context);
  if (entry != nullptr && !enable_samples(*c, *entry))
    fail(*entry);
}

void counters_lose_context(CUcontext context) {
  Collector* c = running_collector();
  if (c == nullptr)
    return;
  const Locked locked(*c);
  for (std::size_t i = 0; i < c->context_count; ++i) {
    Context& lost = c->contexts[i];
    if (lost.context != context)
      continue;
    // The worker releases the context before it is destroyed.
    if (is_in_use(lost))
      lost.state = Context::State::kLeaving;
    pthread_cond_signal(&c->wake);
    wait_while(*c, [&] { return lost.state == Context::State::kLeaving || c->busy == &lost; });
    lost.state = Context::State::kGone;
    if (lost.mux != nullptr)
      lost.mux->failed();
  }
}

void finish_counters() {
  Collector* c = running_collector();
  if (c == nullptr || !live.exchange(false))
    return;
  set_range_observer(nullptr);
  pthread_mutex_lock(&c->lock);
  c->stop = true;
  pthread_cond_broadcast(&c->wake);
  pthread_mutex_unlock(&c->lock);
  if (c->has_worker)
    pthread_join(c->worker, nullptr);
  write_tallies(*c);
  write_cost(*c);
  if (c->plan.resume != nullptr)
    save_progress(*c);
  if (c->beyond > 0)
    tell_loss(
        "ranges or contexts beyond the 256 and 16 that counters keep apart were not measured");
}

}  // namespace rangescope::inject::cupti
