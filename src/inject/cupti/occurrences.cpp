// What happens on the program's threads: which ranges are targets, and what their begin and end do.
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

// Remembered answers of a thread, so that most pushes take no lock.
struct Remembered {
  std::uint64_t path;
  std::uint32_t target;
  bool known;
};

// What a thread needs, in pages of its own: room for thread-local variables of loaded libraries is
// scarce (glibc's static TLS), and a signal handler that interrupted malloc may be the first to
// come here.
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
    tl_mine = static_cast<Mine*>(pages_allocate(sizeof(Mine)));
    pthread_setspecific(g_key, tl_mine);
  }
  return tl_mine;
}

void free_mine(void* memory) {
  tl_mine = nullptr;
  pages_free(memory, sizeof(Mine));
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
      write_target(target, path, start_end);
    } else if (target == kNoTarget) {
      ++c.beyond;
    }
  }
  slot = {path.hash, target, true};
  return target;
}

// Kernels one by one: the whole session belongs to one occurrence, on the program's thread.
void finish_kernel_session(Context& context) {
  const Work work = context.mux->next_work();
  if (work.kind != Work::Kind::kStop) return;
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

// The program is run again for ranges that come too seldom: each occurrence counts, so it waits for
// the hardware.
void wait_until_armed(Collector& c, Context& context, std::uint32_t target) {
  constexpr std::int64_t kMost = 60000000000, kSlice = 100000000;
  const std::int64_t until = monotonic_ns() + kMost;
  while (monotonic_ns() < until && !c.stop && !c.captures.any()) {
    if (context.state != Context::State::kNew && context.state != Context::State::kReady) return;
    if (context.state == Context::State::kReady) {
      adopt(c, context, target);
      if (!context.mux->should_wait(target)) return;
    }
    pthread_cond_signal(&c.wake);
    wait_for(c.idle, c.lock, kSlice);
  }
}

// Waits, for as long as the plan allows, where that lets the occurrence be measured: programming
// the hardware for a pass takes some 20 ms, and a short program would be over by then. The profiler
// of a new context, some 0.3 s, is waited for in any case: a program that ended meanwhile would
// take CUPTI away under it (seen on an H200).
void wait_for_hardware(Collector& c, Context& context, std::uint32_t target) {
  constexpr std::int64_t kMostForContext = 5000000000, kSlice = 20000000;
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
  if (waited() < 1000000) return;
  ++context.before[target].waits;
  context.before[target].waited_ns += waited();
}

void begin_occurrence(Collector& c, std::uint32_t target, std::uint32_t domain, int level,
                      std::uint64_t id) {
  Mine& my = *mine();
  if (my.count == kMostActive) return;
  CUcontext current = nullptr;
  if (c.declined.load() || c.driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr)
    return;
  Active active{nullptr, target, domain, level, id, 0, false, 0};
  bool kernels = false, looked_at = false;
  {
    const Locked locked(c);
    Context* context = context_of(c, current);
    const bool due = c.targets[target].begun++ % c.plan.every == 0;
    if (context == nullptr) return;
    note_time(c.targets[target]);
    if (c.plan.wait && due)
      wait_until_armed(c, *context, target);
    else if (due && !c.captures.any())
      wait_for_hardware(c, *context, target);
    if (context->state != Context::State::kReady || c.captures.any()) {
      ++context->before[target].early;
      return;
    }
    active.context = context;
    kernels = context->kernels;
    looked_at = due && context->mux->wants(target);
    active.measured = context->mux->begin(target, due);
    const counters::Tally& tally = context->mux->tally(target);
    if (active.measured && tally.passes == 0) context->first[target] = tally.occurrences - 1;
    if (context->mux->next_work_is_due()) pthread_cond_signal(&c.wake);
  }
  if (active.measured && !kernels) active.context->flush.run(c.driver, nullptr);
  if (looked_at)
    active.recording = active.context->recorder.begin(active.measured && kernels, active.measured);
  if (active.measured) {
    // Work that is still running would be counted in.
    c.driver.cuCtxSynchronize();
    char name[24];
    std::snprintf(name, sizeof name, "o%u", active.context->in_session++);
    Context& in = *active.context;
    const bool good = c.plan.pc ? in.pc.start()
                      : kernels ? in.profiler.start()
                                : in.profiler.push(name);
    if (c.plan.pc && (c.declined.load() || c.captures.any())) (void)in.pc.stop();  // meanwhile
    if (!good) {
      const Locked locked(c);
      active.context->mux->abandon();
      if (kernels)
        fail_to_begin(*active.context, active.context->mux->pass());
      else
        fail(*active.context);
      active.measured = false;
    }
  }
  active.start_ns = monotonic_ns();
  my.active[my.count++] = active;
}

void end_occurrence(Collector& c, std::size_t at) {
  Mine& my = *mine();
  const Active active = my.active[at];
  my.count = at;  // whatever was opened above it without being closed is gone too
  const std::int64_t end_ns = monotonic_ns();
  bool good = true;
  Context& context = *active.context;
  const bool captures =
      c.captures
          .any();  // began inside and goes on: nobody may wait for the work that is to be counted
  if (active.measured && !captures) {
    c.driver.cuCtxSynchronize();
    if (!context.kernels) good = c.plan.pc ? context.pc.stop() : context.profiler.pop();
  }
  Signature signature;
  const bool recorded = active.recording != 0 && context.recorder.end(active.recording, signature);
  const Locked locked(c);
  if (!good) {
    context.mux->abandon();
    fail(context);
    return;
  }
  if (recorded) {
    c.targets[active.target].launches = signature.launches;
    if (signature.graphs > 0) c.targets[active.target].has_graphs = true;
  }
  if (active.measured && captures) context.mux->abandon();
  context.mux->end(active.target, active.measured, end_ns - active.start_ns, signature);
  // CUPTI fails on graphs after seconds; the tally says so.
  if (context.kernels && c.targets[active.target].has_graphs) context.mux->drop(active.target);
  if (active.measured && context.kernels && !captures) finish_kernel_session(context);
  // The timeline has seen this range often enough once it has settled and was traced a few times
  // more; while another context's counters keep it paused, it sees nothing.
  if (c.plan.trace_first > 0 &&
      (c.paused || context.mux->tally(active.target).occurrences >=
                       c.plan.trace_first + (c.plan.skip_first < 0 ? kSettledTraces : 0))) {
    context.mux->trace_done();
  }
  pthread_cond_signal(&c.wake);
}

// Marks the thread as being inside; the collector is null where it must not come in.
class Visit {
 public:
  Visit() {
    Collector* running = running_collector();
    if (running == nullptr) return;
    Mine* my = mine();
    if (my == nullptr || my->inside) return;
    my->inside = true;
    collector = running;
  }
  ~Visit() {
    if (collector != nullptr) tl_mine->inside = false;
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
  if (target != kNoTarget) begin_occurrence(*visit.collector, target, event.domain, level, 0);
}

void on_pop(std::uint32_t domain, int level) {
  if (tl_mine == nullptr || tl_mine->count == 0) return;
  const Visit visit;
  if (visit.collector == nullptr) return;
  for (std::size_t i = tl_mine->count; i-- > 0;) {
    const Active& active = tl_mine->active[i];
    if (active.id == 0 && active.domain == domain && active.level == level)
      return end_occurrence(*visit.collector, i);
  }
}

void on_start(const Event& event, std::uint64_t id) {
  const Visit visit;
  if (visit.collector == nullptr || id == 0) return;
  RangePath path;
  path_of_start(event, visit.collector->plan.by_payload, path);
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
  Context& made = c.contexts[c.context_count];
  CUdevice device = 0;
  std::uint32_t number = 0;  // a context that is being made is not the current one
  const bool known = c.plan.pc ? c.pc.cuptiGetDeviceId(current, &number) == CUPTI_SUCCESS
                               : c.driver.cuCtxGetDevice(&device) == CUDA_SUCCESS;
  if (!known) return nullptr;
  ++c.context_count;
  made.context = current;
  made.device = c.plan.pc ? static_cast<CUdevice>(number) : device;
  pthread_cond_signal(&c.wake);  // the worker sets it up
  return &made;
}

bool make_observer() {
  return pthread_key_create(&g_key, free_mine) == 0;
}

const RangeObserver& range_observer() {
  return kObserver;
}

}  // namespace rangescope::inject::cupti
