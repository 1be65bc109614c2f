#include "inject/cupti/counters.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "inject/counters/multiplexer.hpp"
#include "inject/counters/plan.hpp"
#include "inject/cupti/driver.hpp"
#include "inject/cupti/measured.hpp"
#include "inject/cupti/range_path.hpp"
#include "inject/cupti/range_profiler.hpp"
#include "inject/cupti/recorder.hpp"
#include "inject/cupti/trace.hpp"
#include "inject/writer.hpp"
#include "wire/counters.hpp"

namespace rangescope::inject::cupti {
namespace {

using counters::kMaxTargets;
using counters::kNoTarget;
using counters::Multiplexer;
using counters::Signature;
using counters::Work;
namespace wired = wire::counters;

constexpr std::size_t kMostContexts = 16;
constexpr std::size_t kMostActive = 16;  // targets open on one thread
constexpr std::uint32_t kSettledTraces = 1;

// An occurrence of a target that is open on this thread.
struct Active {
  Context* context;
  std::uint32_t target;
  std::uint32_t domain;
  int level;
  std::uint64_t id;  // start/end
  std::int64_t start_ns;
  bool measured;
  bool recorded;
};

// Remembered answers of a thread, so that most pushes take no lock.
struct Remembered {
  std::uint64_t path;
  std::uint32_t target;
  bool known;
};

// What a thread needs, on the heap: room for thread-local variables of loaded libraries is scarce (glibc's static TLS).
struct Mine {
  Active active[kMostActive];
  std::size_t count;
  bool inside;  // a signal handler, or CUPTI itself, must not come in again
  Remembered remembered[64];
};
thread_local Mine* tl_mine = nullptr;
pthread_key_t g_key;  // frees it

Mine* mine() {
  if (tl_mine == nullptr) {
    tl_mine = static_cast<Mine*>(std::calloc(1, sizeof(Mine)));
    pthread_setspecific(g_key, tl_mine);
  }
  return tl_mine;
}

void free_mine(void* memory) {
  tl_mine = nullptr;
  std::free(memory);
}

struct Collector {
  const Api* api = nullptr;
  Subscription subscription;
  Driver driver;
  RangeApi range;
  counters::Plan plan;
  Recorder recorder;
  pid_t owner = 0;

  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // everything below
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;    // work for the worker
  pthread_cond_t idle = PTHREAD_COND_INITIALIZER;    // the worker let go of a context
  pthread_t worker{};
  bool has_worker = false;
  bool stop = false;
  Context* busy = nullptr;  // what the worker works on without the lock
  Context contexts[kMostContexts];
  std::size_t context_count = 0;
  Target targets[kMaxTargets];
  std::uint32_t target_count = 0;
  bool paused = false;       // the timeline is
  std::uint64_t beyond = 0;  // occurrences of targets or contexts beyond those that there is room for
};

std::atomic<Collector*> the_collector{nullptr};
std::atomic<bool> live{false};

class Locked {
 public:
  explicit Locked(Collector& c) : c_(c) { pthread_mutex_lock(&c_.lock); }
  ~Locked() { pthread_mutex_unlock(&c_.lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Collector& c_;
};

void tell_loss(const char* detail) {
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        encoder.loss(wire::gpu::LossKind::kPartial, 1, static_cast<const char*>(user));
        stream.flush();
      },
      const_cast<char*>(detail));
}

// -- what is a target ------------------------------------------------------------------------------------------------

void write_target(std::uint32_t index, const RangePath& path, bool start_end) {
  struct Names {
    const RangePath* path;
    std::uint32_t index;
    bool start_end;
  } names{&path, index, start_end};
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        const Names& n = *static_cast<Names*>(user);
        std::uint32_t ids[RangePath::kDeepest];
        for (std::size_t i = 0; i < n.path->depth; ++i)
          ids[i] = encoder.text_id(n.path->names[i].text, n.path->names[i].bytes);
        wired::Target record{};
        record.head.type = static_cast<wire::gpu::Type>(wired::Type::kTarget);
        record.head.small = n.start_end ? 1 : 0;
        record.head.id = n.index;
        record.domain = encoder.text_id(n.path->domain.text, n.path->domain.bytes);
        record.names = static_cast<std::uint32_t>(n.path->depth);
        stream.put_with(record, ids, n.path->depth * sizeof ids[0]);
      },
      &names);
}

// The target's number, or kNoTarget. Takes the lock only for a path that this thread has not seen.
std::uint32_t target_of(Collector& c, const RangePath& path, bool start_end) {
  Remembered& slot = mine()->remembered[path.hash % 64];
  if (slot.known && slot.path == path.hash) return slot.target;
  const bool wanted = start_end ? is_start_end_target(c.plan, path.domain, path.names[0])
                                : is_target(c.plan, path.domain, path.names, path.depth);
  std::uint32_t target = kNoTarget;
  if (wanted) {
    const Locked locked(c);
    for (std::uint32_t i = 0; i < c.target_count && target == kNoTarget; ++i) {
      if (c.targets[i].path == path.hash) target = i;
    }
    if (target == kNoTarget && c.target_count < kMaxTargets) {
      target = c.target_count++;
      c.targets[target].path = path.hash;
      c.targets[target].start_end = start_end;
      write_target(target, path, start_end);
    } else if (target == kNoTarget) {
      ++c.beyond;
    }
  }
  slot = {path.hash, target, true};
  return target;
}

// -- occurrences -----------------------------------------------------------------------------------------------------

counters::Limits limits_of(const Collector& c, std::size_t passes, bool kernels, bool waits) {
  counters::Limits limits;
  limits.passes = static_cast<std::uint32_t>(passes);
  limits.rounds = kernels && c.plan.per == counters::Per::kBoth ? 1 : c.plan.rounds;
  limits.skip_first = c.plan.skip_first;
  limits.most_ranges = kernels ? 1 : counters::kMaxRanges;
  limits.wait_for_trace = waits;
  return limits;
}

Context* context_of(Collector& c, CUcontext current) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    if (c.contexts[i].context == current && c.contexts[i].state != Context::State::kGone) return &c.contexts[i];
  }
  if (c.context_count == kMostContexts) {
    ++c.beyond;
    return nullptr;
  }
  Context& made = c.contexts[c.context_count];
  CUdevice device = 0;
  if (c.driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  ++c.context_count;
  made.context = current;
  made.device = device;
  pthread_cond_signal(&c.wake);  // the worker sets it up
  return &made;
}

void fail(Collector& c, Context& context) {
  if (context.state == Context::State::kFailed) return;
  context.state = Context::State::kFailed;
  if (context.mux != nullptr) context.mux->failed();
  char detail[512];
  std::snprintf(detail, sizeof detail, "hardware counters stopped on device %d: %s", context.device,
                context.profiler.error());
  tell_loss(detail);
  (void)c;
}

// Kernels one by one: the whole session belongs to one occurrence, on the program's thread.
void finish_kernel_session(Collector& c, Context& context) {
  const Work work = context.mux->next_work();
  if (work.kind != Work::Kind::kStop) return;
  Image& image = context.images[work.target];
  if (!context.profiler.stop(image, work.discard)) {
    fail(c, context);
    return;
  }
  if (work.complete && context.finished_target == kNoTarget) {
    context.finished = static_cast<Image&&>(image);
    context.finished_target = work.target;
    image = Image{};
  }
  context.mux->stopped();
}

void begin_occurrence(Collector& c, std::uint32_t target, std::uint32_t domain, int level, std::uint64_t id) {
  Mine& my = *mine();
  if (my.count == kMostActive) return;
  CUcontext current = nullptr;
  if (c.driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return;
  Active active{nullptr, target, domain, level, id, 0, false, false};
  bool keep = false, kernels = false;
  {
    const Locked locked(c);
    Context* context = context_of(c, current);
    if (context == nullptr || context->state != Context::State::kReady) return;
    active.context = context;
    kernels = context->kernels;
    if (kernels && c.targets[target].has_graphs) return;  // CUPTI fails on them after seconds; the tally says so
    if (context->mux->tally(target).passes == 0) context->first[target] = context->mux->tally(target).occurrences;
    active.measured = context->mux->begin(target);
    keep = active.measured && kernels;
    if (context->mux->next_work_is_due()) pthread_cond_signal(&c.wake);
  }
  active.recorded = c.recorder.begin(keep);
  if (active.measured) {
    // Work that is still running would be counted in.
    c.driver.cuCtxSynchronize();
    char name[24];
    std::snprintf(name, sizeof name, "o%u", active.context->in_session++);
    const bool good = kernels ? active.context->profiler.start() : active.context->profiler.push(name);
    if (!good) {
      const Locked locked(c);
      active.context->mux->abandon();
      fail(c, *active.context);
      active.measured = false;
    }
  }
  active.start_ns = now_ns();
  my.active[my.count++] = active;
}

void end_occurrence(Collector& c, std::size_t at) {
  Mine& my = *mine();
  const Active active = my.active[at];
  my.count = at;  // whatever was opened above it without being closed is gone too
  const std::int64_t end_ns = now_ns();
  bool good = true;
  Context& context = *active.context;
  if (active.measured) {
    c.driver.cuCtxSynchronize();
    if (!context.kernels) good = context.profiler.pop();
  }
  Signature signature;
  if (active.recorded) signature = c.recorder.end();
  const Locked locked(c);
  if (!good) {
    context.mux->abandon();
    fail(c, context);
    return;
  }
  if (active.recorded) {
    c.targets[active.target].launches = signature.launches;
    if (signature.graphs > 0) c.targets[active.target].has_graphs = true;
  }
  context.mux->end(active.target, active.measured, end_ns - active.start_ns, signature);
  if (active.measured && context.kernels) finish_kernel_session(c, context);
  // The timeline has seen this range often enough once it has settled and was traced a few times more.
  if (!c.paused && c.plan.trace_first > 0 &&
      context.mux->tally(active.target).occurrences >=
          c.plan.trace_first + (c.plan.skip_first < 0 ? kSettledTraces : 0)) {
    context.mux->trace_done();
  }
  pthread_cond_signal(&c.wake);
}

// Marks the thread as being inside; the collector is null where it must not come in.
class Visit {
 public:
  Visit() {
    if (!live.load(std::memory_order_acquire)) return;
    Mine* my = mine();
    if (my == nullptr || my->inside) return;
    my->inside = true;
    collector = the_collector.load(std::memory_order_acquire);
  }
  ~Visit() {
    if (collector != nullptr) tl_mine->inside = false;
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  Collector* collector = nullptr;
};

void on_push(const Event& event, int level) {
  const Visit visit;
  RangePath path;
  if (visit.collector == nullptr || !path_of_push(event, path)) return;
  const std::uint32_t target = target_of(*visit.collector, path, false);
  if (target != kNoTarget) begin_occurrence(*visit.collector, target, event.domain, level, 0);
}

void on_pop(std::uint32_t domain, int level) {
  if (tl_mine == nullptr || tl_mine->count == 0) return;
  const Visit visit;
  if (visit.collector == nullptr) return;
  for (std::size_t i = tl_mine->count; i-- > 0;) {
    const Active& active = tl_mine->active[i];
    if (active.id == 0 && active.domain == domain && active.level == level) return end_occurrence(*visit.collector, i);
  }
}

void on_start(const Event& event, std::uint64_t id) {
  const Visit visit;
  if (visit.collector == nullptr || id == 0) return;
  RangePath path;
  path_of_start(event, path);
  const std::uint32_t target = target_of(*visit.collector, path, true);
  if (target != kNoTarget) begin_occurrence(*visit.collector, target, event.domain, 0, id);
}

void on_end(std::uint64_t id) {
  if (tl_mine == nullptr || tl_mine->count == 0 || id == 0) return;
  const Visit visit;
  if (visit.collector == nullptr) return;
  for (std::size_t i = tl_mine->count; i-- > 0;) {
    if (tl_mine->active[i].id == id) return end_occurrence(*visit.collector, i);
  }
}

constexpr RangeObserver kObserver = {on_push, on_pop, on_start, on_end};

// -- results
// -----------------------------------------------------------------------------------------------------------

void write_round(Collector& c, const Context& context, std::uint32_t target, std::uint32_t kernel,
                 const RecordedKernel* what, const double* values) {
  struct Job {
    wired::Round record;
    const char* name;
    const double* values;
    std::size_t bytes;
  } job{};
  job.record.head.type = static_cast<wire::gpu::Type>(wired::Type::kRound);
  job.record.head.id = target;
  job.record.device = static_cast<std::uint32_t>(context.device);
  job.record.kernel = kernel;
  job.record.passes = static_cast<std::uint32_t>(context.profiler.passes());
  job.record.first = context.first[target];
  job.record.count = static_cast<std::uint32_t>(c.plan.metric_count);
  if (what != nullptr) {
    job.name = what->name;
    std::memcpy(job.record.grid, what->grid, sizeof job.record.grid);
    std::memcpy(job.record.block, what->block, sizeof job.record.block);
  }
  job.values = values;
  job.bytes = c.plan.metric_count * sizeof(double);
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        Job& j = *static_cast<Job*>(user);
        if (j.name != nullptr) j.record.name = encoder.text_id(j.name, std::strlen(j.name));
        stream.put_with(j.record, j.values, j.bytes);
      },
      &job);
}

// All ranges of a complete image. Runs on the worker, without the lock: evaluation takes 0.3 to 3 ms a range.
void evaluate(Collector& c, Context& context, const Image& image, std::uint32_t target, bool kernels) {
  double values[counters::kMaxMetrics];
  const std::size_t ranges = context.profiler.ranges(image);
  const RecordedKernel* recorded = c.recorder.kernels();
  for (std::size_t i = 0; i < ranges; ++i) {
    if (!context.profiler.evaluate(image, i, values)) continue;
    const bool named = kernels && recorded != nullptr && i < c.recorder.count();
    write_round(c, context, target, kernels ? static_cast<std::uint32_t>(i) : wired::kWholeRange,
                named ? &recorded[i] : nullptr, values);
  }
  with_stream([](Encoder&, GpuStream& stream, void*) { stream.flush(); }, nullptr);
}

void write_tallies(Collector& c) {
  for (std::size_t k = 0; k < c.context_count; ++k) {
    const Context& context = c.contexts[k];
    if (context.mux == nullptr) continue;
    for (std::uint32_t i = 0; i < c.target_count; ++i) {
      const counters::Tally& tally = context.mux->tally(i);
      if (tally.occurrences == 0) continue;
      wired::Tally record{};
      record.head.type = static_cast<wire::gpu::Type>(wired::Type::kTally);
      record.head.id = i;
      record.head.small = context.kernels && c.targets[i].has_graphs ? 1 : 0;
      record.occurrences = tally.occurrences;
      record.skipped_first = tally.skipped_first;
      record.skipped_arming = tally.skipped_arming;
      record.measured = tally.measured;
      record.discarded = tally.discarded;
      record.varied = tally.varied;
      record.rounds = tally.rounds;
      record.passes = tally.passes;
      record.needed = static_cast<std::uint32_t>(context.profiler.passes());
      record.device = static_cast<std::uint32_t>(context.device);
      with_stream([](Encoder&, GpuStream& stream, void* user) { stream.put(*static_cast<wired::Tally*>(user)); },
                  &record);
    }
  }
}

// -- the worker
// ----------------------------------------------------------------------------------------------------------

bool set_up(Collector& c, Context& context) {
  char why[512] = {};
  if (!context.profiler.enable(c.range, context.context, static_cast<std::uint32_t>(context.device), c.plan.metrics,
                               c.plan.metric_count, why, sizeof why)) {
    char detail[600];
    std::snprintf(detail, sizeof detail, "no hardware counters on device %d: %s", context.device, why);
    tell_loss(detail);
    return false;
  }
  return true;
}

std::size_t room_for_kernels(const Collector& c, std::uint32_t target) {
  const std::uint32_t seen = c.targets[target].launches;
  if (seen == 0) return 2048;
  const std::size_t room = seen + 16;
  return room < Recorder::kMostKernels ? room : Recorder::kMostKernels;
}

bool arm(Collector& c, Context& context, const Work& work, std::size_t kernel_room) {
  Image& image = context.images[work.target];
  if (work.fresh && !context.profiler.make(image, context.kernels ? kernel_room : work.ranges)) return false;
  if (!context.profiler.configure(image, context.kernels)) return false;
  (void)c;
  return context.kernels || context.profiler.start();
}

// Does one piece of work for one context; true when there was any. Called with the lock; works without it.
bool work_on(Collector& c, Context& context) {
  const auto without_lock = [&](auto action) {
    c.busy = &context;
    pthread_mutex_unlock(&c.lock);
    c.driver.cuCtxSetCurrent(context.context);
    const bool good = action();
    pthread_mutex_lock(&c.lock);
    c.busy = nullptr;
    pthread_cond_broadcast(&c.idle);
    return good;
  };
  if (context.state == Context::State::kNew) {
    const bool good = without_lock([&] {
      if (c.plan.trace_first == 0 && !c.paused) c.paused = pause_activity();
      return set_up(c, context);
    });
    void* memory = std::calloc(1, sizeof(Multiplexer));
    if (!good || memory == nullptr) {
      context.state = Context::State::kFailed;
      return true;
    }
    context.kernels = c.plan.per == counters::Per::kKernel;
    context.mux =
        new (memory) Multiplexer(limits_of(c, context.profiler.passes(), context.kernels, c.plan.trace_first > 0));
    context.state = Context::State::kReady;
    return true;
  }
  if (context.state != Context::State::kReady) return false;
  if (context.finished_target != kNoTarget) {
    const std::uint32_t target = context.finished_target;
    without_lock([&] {
      evaluate(c, context, context.finished, target, true);
      return true;
    });
    context.finished_target = kNoTarget;
    return true;
  }
  const Work work = context.mux->next_work();
  switch (work.kind) {
    case Work::Kind::kNothing: return false;
    case Work::Kind::kArm: {
      const std::size_t room = room_for_kernels(c, work.target);
      context.in_session = 0;
      const bool good = without_lock([&] {
        if (!c.paused) {
          c.driver.cuCtxSynchronize();  // what is still running would be a kernel without an end
          c.paused = pause_activity();
        }
        return arm(c, context, work, room);
      });
      if (good)
        context.mux->armed();
      else
        fail(c, context);
      return true;
    }
    case Work::Kind::kStop: {
      Image& image = context.images[work.target];
      const bool good = without_lock([&] {
        if (!context.profiler.stop(image, work.discard)) return false;
        if (work.complete) evaluate(c, context, image, work.target, false);
        return true;
      });
      if (good)
        context.mux->stopped();
      else
        fail(c, context);
      return true;
    }
    case Work::Kind::kDetach: break;
  }
  if (c.plan.per == counters::Per::kBoth && !context.kernels) {
    // Second phase: the same ranges, kernel by kernel. Everything has settled long ago.
    auto limits = limits_of(c, context.profiler.passes(), true, false);
    limits.skip_first = 0;
    write_tallies(c);
    context.kernels = true;
    context.mux = new (context.mux) Multiplexer(limits);
    return true;
  }
  bool all = true;
  for (std::size_t i = 0; i < c.context_count; ++i) {
    all = all && (c.contexts[i].state != Context::State::kReady || c.contexts[i].mux->done());
  }
  if (all) {
    set_range_observer(nullptr);
    without_lock([&] {
      context.profiler.disable();
      if (c.paused) c.paused = !resume_activity();
      return true;
    });
  }
  return true;
}

void* work_loop(void*) {
  Collector& c = *the_collector.load(std::memory_order_acquire);
  pthread_mutex_lock(&c.lock);
  while (!c.stop) {
    bool any = false;
    for (std::size_t i = 0; i < c.context_count && !c.stop; ++i) any = work_on(c, c.contexts[i]) || any;
    if (!any && !c.stop) pthread_cond_wait(&c.wake, &c.lock);
  }
  pthread_mutex_unlock(&c.lock);
  return nullptr;
}

bool start_worker(Collector& c) {
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  c.has_worker = pthread_create(&c.worker, nullptr, work_loop, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return c.has_worker;
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

void write_metrics(const Collector& c) {
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        const auto& plan = *static_cast<const counters::Plan*>(user);
        for (std::size_t i = 0; i < plan.metric_count; ++i) {
          wired::Metric record{};
          record.head.type = static_cast<wire::gpu::Type>(wired::Type::kMetric);
          record.head.id = static_cast<std::uint32_t>(i);
          record.bytes = static_cast<std::uint32_t>(std::strlen(plan.metrics[i]));
          stream.put_with(record, plan.metrics[i], record.bytes);
        }
        encoder.info("counters", plan.per == counters::Per::kRange    ? "range"
                                 : plan.per == counters::Per::kKernel ? "kernel"
                                                                      : "both");
        stream.flush();
      },
      const_cast<counters::Plan*>(&c.plan));
}

}  // namespace

bool start_counters(const Api& api, const Subscription& subscription) {
  const char* path = std::getenv("RANGESCOPE_COUNTERS");
  if (path == nullptr || path[0] == '\0') return false;
  void* memory = std::calloc(1, sizeof(Collector));
  if (memory == nullptr) return false;
  auto* c = new (memory) Collector;  // never freed: hooks may come at any time
  c->api = &api;
  c->subscription = subscription;
  c->owner = getpid();
  char why[512] = {};
  if (!read_plan(*c, path, why, sizeof why) || !c->range.load(api, why, sizeof why)) {
    tell_loss(why);
    return false;
  }
  if (!c->driver.load()) {
    tell_loss("no hardware counters: libcuda.so.1 lacks functions that are needed");
    return false;
  }
  if (pthread_key_create(&g_key, free_mine) != 0) {
    tell_loss("no hardware counters: no key for thread memory is left");
    return false;
  }
  the_collector.store(c, std::memory_order_release);
  write_metrics(*c);
  for (std::uint32_t id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; ++id) {
    if (Recorder::wants(id)) api.cuptiEnableCallback(1, subscription.handle, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
  if (!start_worker(*c)) {
    tell_loss("no hardware counters: no thread could be made for them");
    return false;
  }
  live.store(true, std::memory_order_release);
  set_range_observer(&kObserver);
  return true;
}

void counters_saw_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (!live.load(std::memory_order_relaxed)) return;
  if (Collector* c = the_collector.load(std::memory_order_acquire); c != nullptr) c->recorder.observe(id, call);
}

void counters_lose_context(CUcontext context) {
  Collector* c = the_collector.load(std::memory_order_acquire);
  if (c == nullptr || !live.load()) return;
  const Locked locked(*c);
  for (std::size_t i = 0; i < c->context_count; ++i) {
    Context& lost = c->contexts[i];
    if (lost.context != context) continue;
    while (c->busy == &lost) pthread_cond_wait(&c->idle, &c->lock);
    lost.state = Context::State::kGone;
    if (lost.mux != nullptr) lost.mux->failed();
  }
}

void finish_counters() {
  Collector* c = the_collector.load(std::memory_order_acquire);
  if (c == nullptr || c->owner != getpid() || !live.exchange(false)) return;
  set_range_observer(nullptr);
  pthread_mutex_lock(&c->lock);
  c->stop = true;
  pthread_cond_broadcast(&c->wake);
  pthread_mutex_unlock(&c->lock);
  if (c->has_worker) pthread_join(c->worker, nullptr);
  for (std::size_t i = 0; i < c->context_count; ++i) {
    Context& context = c->contexts[i];
    if (context.finished_target != kNoTarget) evaluate(*c, context, context.finished, context.finished_target, true);
  }
  write_tallies(*c);
  if (c->beyond > 0) tell_loss("ranges or contexts beyond the 256 and 16 that counters keep apart were not measured");
}

void abandon_counters() {
  live.store(false);
  set_range_observer(nullptr);
}

}  // namespace rangescope::inject::cupti
