// The part of counters that runs on the program's threads: decides which ranges are targets, and
// begins and ends their occurrences.
#include <cstdio>

#include "inject/cupti/collector.hpp"
#include "inject/nvtx/arena.hpp"

namespace rangescope::inject::cupti {
namespace {

using counters::kMaxTargets;
using counters::kNoTarget;
using counters::Signature;
using counters::Work;

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
  std::uint32_t recording;  // of the context's recorder, 0: none
};

// The target of a path, cached by a thread so that most pushes take no lock.
struct CachedTarget {
  std::uint64_t path;
  std::uint32_t target;
  bool is_used;
};

// State of a thread, in its own pages: space for thread-local variables of loaded libraries is
// scarce (glibc's static TLS), and the first caller may be a signal handler that interrupted
// malloc.
struct ThreadState {
  Active active[kMostActive];
  std::size_t count;
  bool inside;  // no second entry, by a signal handler or by CUPTI itself
  CachedTarget cache[64];
};
thread_local ThreadState* tl_state = nullptr;
pthread_key_t g_key;  // its destructor frees tl_state

ThreadState* thread_state() {
  if (tl_state == nullptr) {
    tl_state = static_cast<ThreadState*>(pages_allocate(sizeof(ThreadState)));
    pthread_setspecific(g_key, tl_state);
  }
  return tl_state;
}

void free_thread_state(void* memory) {
  tl_state = nullptr;
  pages_free(memory, sizeof(ThreadState));
}

// The number of a path that the plan selects, added if it is new; kNoTarget, and counted, if there
// is no room.
std::uint32_t find_or_add_target(Collector& c, const RangePath& path, bool start_end) {
  const Locked locked(c);
  for (std::uint32_t i = 0; i < c.target_count; ++i)
    if (c.targets[i].path == path.hash)
      return i;
  if (c.target_count == kMaxTargets) {
    ++c.beyond;
    return kNoTarget;
  }
  const std::uint32_t target = c.target_count++;
  c.targets[target].path = path.hash;
  write_target(target, path, start_end);
  return target;
}

// The target's number, or kNoTarget. Takes the lock only for a path that this thread has not seen.
std::uint32_t target_of(Collector& c, const RangePath& path, bool start_end) {
  CachedTarget& slot = thread_state()->cache[path.hash % 64];
  if (slot.is_used && slot.path == path.hash)
    return slot.target;
  bool is_selected = false;
  if (start_end)
    is_selected = is_start_end_target(c.plan, path.domain, path.names[0]);
  else
    is_selected = is_target(c.plan, path.domain, path.names, path.depth);
  std::uint32_t target = kNoTarget;
  if (is_selected)
    target = find_or_add_target(c, path, start_end);
  slot = {path.hash, target, true};
  return target;
}

// Ends the session of an occurrence whose kernels were measured one by one. Such a session belongs
// to one occurrence, and runs on the program's thread.
void finish_kernel_session(Context& context) {
  const Work work = context.mux->next_work();
  if (work.kind != Work::Kind::kStop)
    return;
  std::size_t pass = work.pass;
  Image* const images = context.images[work.target];
  if (!context.profiler.stop(images[context.profiler.configuration(pass)], work.discard)) {
    fail(context);
    return;
  }
  if (work.complete && context.finished_target == kNoTarget) {
    for (std::size_t i = 0; i < context.profiler.configurations(); ++i) {
      context.finished[i] = static_cast<Image&&>(images[i]);
      images[i] = Image{};
    }
    context.finished_target = work.target;
  }
  context.mux->stopped();
}

void note_time(Target& target) {
  const std::int64_t now = monotonic_ns();
  if (target.last_ns != 0 && now - target.last_ns > target.longest_gap_ns)
    target.longest_gap_ns = now - target.last_ns;
  target.last_ns = now;
}

// For a program that is run again for infrequent ranges: every occurrence is needed, so it waits
// for the hardware.
void wait_until_armed(Collector& c, Context& context, std::uint32_t target) {
  constexpr std::int64_t kLimit = 60000000000;
  constexpr std::int64_t kSlice = 100000000;
  const std::int64_t until = monotonic_ns() + kLimit;
  while (monotonic_ns() < until && !c.stop && !c.captures.any()) {
    if (context.state != Context::State::kNew && context.state != Context::State::kReady)
      return;
    if (context.state == Context::State::kReady) {
      adopt(c, context, target);
      if (!context.mux->should_wait(target))
        return;
    }
    pthread_cond_signal(&c.wake);
    wait_for(c.idle, c.lock, kSlice);
  }
}

// Waits, as long as the plan allows, if the occurrence can then be measured: programming the
// hardware for a pass takes some 20 ms, in which a short program may end. It always waits for the
// profiler of a new context, some 0.3 s: if the program ended in that time, CUPTI would be unloaded
// while the profiler uses it (seen on an H200).
void wait_for_hardware(Collector& c, Context& context, std::uint32_t target) {
  constexpr std::int64_t kMostForContext = 5000000000;
  constexpr std::int64_t kSlice = 20000000;
  const std::int64_t begin = monotonic_ns();
  const auto waited = [&] { return monotonic_ns() - begin; };
  while (context.state == Context::State::kNew && waited() < kMostForContext && !c.stop) {
    pthread_cond_signal(&c.wake);
    wait_for(c.idle, c.lock, kSlice);
  }
  const std::int64_t until = monotonic_ns() + c.plan.arm_wait_ms * 1000000;
  while (context.state == Context::State::kReady && context.mux->worth_waiting(target) &&
         monotonic_ns() < until && !c.stop) {
    pthread_cond_signal(&c.wake);
    wait_for(c.idle, c.lock, kSlice);
  }
  if (waited() < 1000000)
    return;
  ++context.before[target].waits;
  context.before[target].waited_ns += waited();
}

// What begin_occurrence() found out with the lock.
struct Admission {
  Context* context = nullptr;  // null: the occurrence is not followed
  bool is_recorded = false;    // the recorder notes its launches
  bool is_measured = false;
  bool kernels = false;  // one by one
};

// Waits for the hardware if that helps, and asks the multiplexer whether the occurrence is
// measured.
Admission admit(Collector& c, CUcontext current, std::uint32_t target) {
  const Locked locked(c);
  Context* context = context_of(c, current);
  const bool due = c.targets[target].begun++ % c.plan.every == 0;
  if (context == nullptr)
    return {};
  note_time(c.targets[target]);
  if (c.plan.wait && due)
    wait_until_armed(c, *context, target);
  else if (due && !c.captures.any())
    wait_for_hardware(c, *context, target);
  if (context->state != Context::State::kReady || c.captures.any()) {
    ++context->before[target].early;
    return {};
  }
  Admission admission;
  admission.context = context;
  admission.kernels = context->kernels;
  admission.is_recorded = due && context->mux->wants(target);
  admission.is_measured = context->mux->begin(target, due);
  const counters::Tally& tally = context->mux->tally(target);
  const bool begins_round = admission.is_measured && tally.passes == 0;
  if (begins_round)
    context->first[target] = tally.occurrences - 1;
  if (context->mux->next_work_is_due())
    pthread_cond_signal(&c.wake);
  return admission;
}

bool start_profiler(Collector& c, Context& context, bool kernels) {
  if (c.plan.pc) {
    const bool is_started = context.pc.start();
    const bool must_stop = c.declined.load() || c.captures.any();  // by another thread, just now
    if (must_stop)
      (void)context.pc.stop();
    return is_started;
  }
  char name[24];
  std::snprintf(name, sizeof name, "o%u", context.in_session++);
  if (kernels)
    return context.profiler.start();
  return context.profiler.push(name);
}

// False if the profiler refuses, which ends measuring in this context or of this configuration.
bool begin_measuring(Collector& c, Context& context, bool kernels) {
  c.driver.cuCtxSynchronize();  // work that is still running would be counted
  if (start_profiler(c, context, kernels))
    return true;
  const Locked locked(c);
  context.mux->abandon();
  if (kernels)
    fail_to_begin(context, context.mux->pass());
  else
    fail(context);
  return false;
}

void begin_occurrence(
    Collector& c, std::uint32_t target, std::uint32_t domain, int level, std::uint64_t id) {
  ThreadState& thread = *thread_state();
  if (thread.count == kMostActive || c.declined.load())
    return;
  CUcontext current = nullptr;
  if (c.driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr)
    return;
  const Admission admission = admit(c, current, target);
  if (admission.context == nullptr)
    return;
  Context& context = *admission.context;
  Active active{&context, target, domain, level, id, 0, admission.is_measured, 0};
  const bool kernels = admission.kernels;
  if (active.measured && !kernels)
    context.flush.run(c.driver, nullptr);
  if (admission.is_recorded)
    active.recording = context.recorder.begin(active.measured && kernels, active.measured);
  if (active.measured)
    active.measured = begin_measuring(c, context, kernels);
  active.start_ns = monotonic_ns();
  thread.active[thread.count++] = active;
}

// The range has settled and was traced a few times more. While another context's counters keep the
// timeline paused, nothing is traced: then it counts as traced.
bool is_traced_enough(const Collector& c, const Context& context, std::uint32_t target) {
  if (c.plan.trace_first == 0)
    return false;
  if (c.paused)
    return true;
  const std::uint32_t settling = c.plan.skip_first < 0 ? kSettledTraces : 0;
  return context.mux->tally(target).occurrences >= c.plan.trace_first + settling;
}

void end_occurrence(Collector& c, std::size_t index) {
  ThreadState& thread = *thread_state();
  const Active active = thread.active[index];
  thread.count = index;  // ranges opened above it, and not closed, are forgotten too
  const std::int64_t end_ns = monotonic_ns();
  bool is_ended = true;
  Context& context = *active.context;
  // A capture that began inside and continues: waiting for the work would invalidate it.
  const bool is_capturing = c.captures.any();
  if (active.measured && !is_capturing) {
    c.driver.cuCtxSynchronize();
    if (!context.kernels)
      is_ended = c.plan.pc ? context.pc.stop() : context.profiler.pop();
  }
  Signature signature;
  const bool recorded = active.recording != 0 && context.recorder.end(active.recording, signature);
  const Locked locked(c);
  if (!is_ended) {
    context.mux->abandon();
    fail(context);
    return;
  }
  Target& target = c.targets[active.target];
  if (recorded) {
    target.launches = signature.launches;
    if (signature.graphs > 0)
      target.has_graphs = true;
  }
  if (active.measured && is_capturing)
    context.mux->abandon();
  context.mux->end(active.target, active.measured, end_ns - active.start_ns, signature);
  // On graphs CUPTI would fail after seconds. The tally says why there are no values.
  if (context.kernels && target.has_graphs)
    context.mux->drop(active.target);
  if (active.measured && context.kernels && !is_capturing)
    finish_kernel_session(context);
  if (is_traced_enough(c, context, active.target))
    context.mux->trace_done();
  pthread_cond_signal(&c.wake);
}

// Marks the thread as being inside. The collector is null if it is inside already, or none runs.
class Visit {
 public:
  Visit() {
    Collector* running = running_collector();
    if (running == nullptr)
      return;
    ThreadState* thread = thread_state();
    if (thread == nullptr || thread->inside)
      return;
    thread->inside = true;
    collector = running;
  }
  ~Visit() {
    if (collector != nullptr)
      tl_state->inside = false;
  }
  Visit& operator=(Visit&&) = delete;

  Collector* collector = nullptr;
};

void on_push(const Event& event, int level) {
  const Visit visit;
  RangePath path;
  if (visit.collector == nullptr || !path_of_push(event, visit.collector->plan.by_payload, path))
    return;
  const std::uint32_t target = target_of(*visit.collector, path, false);
  if (target != kNoTarget)
    begin_occurrence(*visit.collector, target, event.domain, level, 0);
}

void on_pop(std::uint32_t domain, int level) {
  if (tl_state == nullptr || tl_state->count == 0)
    return;
  const Visit visit;
  if (visit.collector == nullptr)
    return;
  for (std::size_t i = tl_state->count; i-- > 0;) {
    const Active& active = tl_state->active[i];
    if (active.id == 0 && active.domain == domain && active.level == level)
      return end_occurrence(*visit.collector, i);
  }
}

void on_start(const Event& event, std::uint64_t id) {
  const Visit visit;
  if (visit.collector == nullptr || id == 0)
    return;
  RangePath path;
  path_of_start(event, visit.collector->plan.by_payload, path);
  const std::uint32_t target = target_of(*visit.collector, path, true);
  if (target != kNoTarget)
    begin_occurrence(*visit.collector, target, event.domain, 0, id);
}

void on_end(std::uint64_t id) {
  if (tl_state == nullptr || tl_state->count == 0 || id == 0)
    return;
  const Visit visit;
  if (visit.collector == nullptr)
    return;
  for (std::size_t i = tl_state->count; i-- > 0;) {
    if (tl_state->active[i].id == id)
      return end_occurrence(*visit.collector, i);
  }
}

constexpr RangeObserver kObserver = {on_push, on_pop, on_start, on_end};

// Sampling calls this while the context is being created, before it is the current one.
bool device_of(Collector& c, CUcontext context, CUdevice& device) {
  if (!c.plan.pc)
    return c.driver.cuCtxGetDevice(&device) == CUDA_SUCCESS;
  std::uint32_t number = 0;
  if (c.pc.cuptiGetDeviceId(context, &number) != CUPTI_SUCCESS)
    return false;
  device = static_cast<CUdevice>(number);
  return true;
}

}  // namespace

Context* context_of(Collector& c, CUcontext current) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    if (c.contexts[i].context == current && c.contexts[i].state != Context::State::kGone)
      return &c.contexts[i];
  }
  if (c.context_count == kMostContexts) {
    ++c.beyond;
    return nullptr;
  }
  Context& added = c.contexts[c.context_count];
  if (!device_of(c, current, added.device))
    return nullptr;
  ++c.context_count;
  added.context = current;
  pthread_cond_signal(&c.wake);  // the worker sets it up
  return &added;
}

bool make_observer() {
  return pthread_key_create(&g_key, free_thread_state) == 0;
}

const RangeObserver& range_observer() {
  return kObserver;
}

}  // namespace rangescope::inject::cupti
