// The thread that programs the hardware between occurrences: sets contexts up, arms, stops and
// evaluates sessions, pauses the timeline while there is something to measure, and detaches after
// the last round.
//
// The timeline is paused only while a session is armed or running, and resumed after kRestsAfter
// without work. A range that stops coming while it lacks passes is given up after ten seconds, or
// four times the longest time between two of its occurrences.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "inject/cupti/aside.hpp"
#include "inject/cupti/collector.hpp"
#include "inject/cupti/counters.hpp"
#include "inject/cupti/trace.hpp"

namespace rangescope::inject::cupti {
namespace {

using counters::kNoTarget;
using counters::Multiplexer;
using counters::Work;

constexpr std::int64_t kSecond = 1000000000;
constexpr std::int64_t kRestsAfter = kSecond;
constexpr std::int64_t kPollInterval = kSecond / 4;  // while the timeline is paused

counters::Limits limits_of(const Collector& c, std::size_t passes, bool kernels, bool waits) {
  counters::Limits limits;
  limits.passes = static_cast<std::uint32_t>(passes);
  limits.rounds = kernels && c.plan.per == counters::Per::kBoth ? 1 : c.plan.rounds;
  limits.skip_first = c.plan.skip_first;
  limits.most_ranges = kernels || c.plan.pc ? 1 : counters::kMaxRanges;
  limits.wait_for_trace = waits;
  return limits;
}

// CUPTI loads the profiler's libraries at their first use. At exit their objects are destroyed
// before handlers that were registered earlier run, so the end of counters is registered again.
// Seen on an H200: a program that ended 0.3 s after cuInit crashed in the worker. Ending twice is
// harmless.
void end_before_loaded_libraries() {
  std::atexit(finish_counters);
}

bool set_up(Collector& c, Context& context) {
  if (c.plan.pc)
    return true;
  char why[512] = {};
  claim_device();
  if (!context.profiler.enable(c.range,
                               context.context,
                               static_cast<std::uint32_t>(context.device),
                               c.plan,
                               tell_loss,
                               why,
                               sizeof why)) {
    char detail[600];
    std::snprintf(
        detail, sizeof detail, "no hardware counters on device %d: %s", context.device, why);
    tell_loss(detail);
    release_device();
    return false;
  }
  if (c.plan.flush_cache && !context.flush.ready() &&
      !context.flush.make(c.driver, context.device)) {
    char detail[160];
    std::snprintf(detail,
                  sizeof detail,
                  "caches of device %d are not flushed: no memory for a buffer of twice its L2, or "
                  "the driver refused "
                  "the kernel",
                  context.device);
    tell_loss(detail);
  }
  watch_launches(c, true);
  end_before_loaded_libraries();
  return true;
}

std::size_t room_for_kernels(const Collector& c, std::uint32_t target) {
  const std::uint32_t launches = c.targets[target].launches;
  if (launches == 0)
    return 2048;
  std::size_t room = launches + 16;
  if (c.plan.flush_cache)
    room *= 2;
  return std::min<std::size_t>(room, Recorder::kMostKernels);
}

bool arm(Collector& c, Context& context, const Work& work, std::size_t kernel_room) {
  if (c.plan.pc)
    return context.pc.enabled() || enable_samples(c, context);
  if (!context.profiler.enabled() && !set_up(c, context))
    return false;
  RangeProfiler& profiler = context.profiler;
  std::size_t pass = work.pass;
  const std::size_t configuration = profiler.configuration(pass);
  Image& image = context.images[work.target][configuration];
  if (!profiler.turn_to(configuration))
    return false;
  const std::size_t ranges = context.kernels ? kernel_room : work.ranges;
  if (pass == 0 && !profiler.make(configuration, image, ranges))
    return false;
  if (!profiler.configure(configuration, image, context.kernels))
    return false;
  return context.kernels || profiler.start();
}

// Runs an action in the context, without the lock. c.busy tells other threads not to destroy the
// context in the meantime.
template <class Action>
bool without_lock(Collector& c, Context& context, Action action) {
  c.busy = &context;
  pthread_mutex_unlock(&c.lock);
  c.driver.cuCtxSetCurrent(context.context);
  const bool result = action();
  pthread_mutex_lock(&c.lock);
  c.busy = nullptr;
  pthread_cond_broadcast(&c.idle);
  return result;
}

// Call it in the context whose work is to be counted.
void pause_timeline(Collector& c) {
  if (c.paused || c.plan.pc)
    return;
  c.paused = pause_activity();
  c.driver.cuCtxSynchronize();  // else running kernels would be recorded without an end
  flush_activity();
}

void make_ready(Collector& c, Context& context) {
  const bool is_set_up = without_lock(c, context, [&] {
    if (c.plan.trace_first == 0)
      pause_timeline(c);
    return set_up(c, context);
  });
  void* memory = std::calloc(1, sizeof(Multiplexer));
  if (!is_set_up || memory == nullptr) {
    std::free(memory);
    context.state = Context::State::kFailed;
    return;
  }
  const bool leaving = context.state == Context::State::kLeaving;
  context.kernels = c.plan.per == counters::Per::kKernel;
  const std::size_t passes = c.plan.pc ? 1 : context.profiler.passes();
  context.mux =
      new (memory) Multiplexer(limits_of(c, passes, context.kernels, c.plan.trace_first > 0));
  context.state = leaving ? Context::State::kLeaving : Context::State::kReady;
}

// Second phase of `both`: the same ranges, kernel by kernel. They have settled in the first phase.
void go_on_with_kernels(Collector& c, Context& context) {
  auto limits = limits_of(c, context.profiler.passes(), true, false);
  limits.skip_first = 0;
  write_tallies(c);
  context.kernels = true;
  context.mux = new (context.mux) Multiplexer(limits);
  for (std::uint32_t i = 0; i < c.target_count; ++i) {
    if (c.targets[i].has_graphs)
      context.mux->drop(i);
  }
}

// All ranges have all their rounds: disables the profilers and resumes the timeline. Only pushes
// are still observed, because a new range may come.
void detach(Collector& c, Context& last) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    const Context& context = c.contexts[i];
    if (context.state == Context::State::kNew)
      return;
    if (context.state == Context::State::kReady && !context.mux->done())
      return;
  }
  for (std::size_t i = 0; i < c.context_count; ++i) {
    Context& context = c.contexts[i];
    if (context.state != Context::State::kReady || !context.mux->resting())
      continue;
    without_lock(c, context, [&] {
      context.profiler.disable();
      context.pc.disable();
      return true;
    });
  }
  without_lock(c, last, [&] {
    if (!c.plan.pc)
      watch_launches(c, false);  // with samples they are needed to detect NCCL
    if (c.paused)
      c.paused = !resume_activity();
    return true;
  });
}

// The context is about to be destroyed, or the program ends.
void release(Collector& c, Context& context) {
  without_lock(c, context, [&] {
    context.profiler.close_down();
    context.pc.disable();
    return true;
  });
  context.state = Context::State::kGone;
  if (context.mux != nullptr)
    context.mux->failed();
  pthread_cond_broadcast(&c.idle);
}

void evaluate_finished_kernels(Collector& c, Context& context) {
  const std::uint32_t target = context.finished_target;
  without_lock(c, context, [&] {
    evaluate(c, context, context.finished, target, true);
    return true;
  });
  context.finished_target = kNoTarget;
}

void arm_session(Collector& c, Context& context, const Work& work) {
  const std::size_t room = room_for_kernels(c, work.target);
  context.in_session = 0;
  const bool is_armed = without_lock(c, context, [&] {
    pause_timeline(c);
    return arm(c, context, work, room);
  });
  context.armed_at = monotonic_ns();
  if (is_armed)
    context.mux->armed();
  else
    fail_to_begin(context, work.pass);
  pthread_cond_broadcast(&c.idle);
}

bool fetch_samples(Collector& c, Context& context, const Work& work) {
  return without_lock(c, context, [&] { return context.pc.fetch(work.target); });
}

bool stop_and_evaluate(Collector& c, Context& context, const Work& work) {
  std::size_t pass = work.pass;
  Image* const images = context.images[work.target];
  Image& image = images[context.profiler.configuration(pass)];
  return without_lock(c, context, [&] {
    if (!context.profiler.stop(image, work.discard))
      return false;
    if (!work.complete)
      return true;
    evaluate(c, context, images, work.target, context.kernels);
    if (!c.evaluated)
      end_before_loaded_libraries();
    c.evaluated = true;
    return true;
  });
}

void stop_session(Collector& c, Context& context, const Work& work) {
  const bool is_stopped =
      c.plan.pc ? fetch_samples(c, context, work) : stop_and_evaluate(c, context, work);
  if (is_stopped)
    context.mux->stopped();
  else
    fail(context);
}

// Does one piece of work for a context; true if there was any. Called with the lock, which it
// releases while it works.
bool work_on(Collector& c, Context& context) {
  if (c.captures.any())
    return false;
  if (context.state == Context::State::kNew) {
    make_ready(c, context);
    return true;
  }
  if (context.state == Context::State::kLeaving) {
    release(c, context);
    return true;
  }
  if (context.state != Context::State::kReady)
    return false;
  if (context.finished_target != kNoTarget) {
    evaluate_finished_kernels(c, context);
    return true;
  }
  const Work work = context.mux->next_work();
  switch (work.kind) {
    case Work::Kind::kNothing: return false;
    case Work::Kind::kArm: arm_session(c, context, work); break;
    case Work::Kind::kStop: stop_session(c, context, work); break;
    case Work::Kind::kDetach:
      if (c.plan.per == counters::Per::kBoth && !context.kernels)
        go_on_with_kernels(c, context);
      else
        detach(c, context);
      break;
  }
  return true;
}

// Gives up targets that have stopped coming; true if there was one.
bool lose_patience(Collector& c, std::int64_t now) {
  bool gave_up = false;
  for (std::size_t i = 0; i < c.context_count; ++i) {
    Context& context = c.contexts[i];
    if (context.state != Context::State::kReady)
      continue;
    const std::uint32_t awaited = context.mux->awaited();
    if (awaited == kNoTarget)
      continue;
    const Target& target = c.targets[awaited];
    const auto since = std::max<std::int64_t>(target.last_ns, context.armed_at);
    std::int64_t patience = 4 * target.longest_gap_ns;
    if (patience < c.plan.patience_ms * (kSecond / 1000))
      patience = c.plan.patience_ms * (kSecond / 1000);
    if (now - since < patience)
      continue;
    context.mux->give_up();
    gave_up = true;
  }
  return gave_up;
}

// Resumes the timeline after kRestsAfter without work.
void rest(Collector& c, std::int64_t now) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    const Context& context = c.contexts[i];
    if (context.state == Context::State::kReady && !context.mux->resting()) {
      c.rests_since = 0;
      return;
    }
  }
  if (c.rests_since == 0)
    c.rests_since = now;
  const bool may_resume = c.paused && c.plan.trace_first != 0 && !c.captures.any();
  if (!may_resume || now - c.rests_since < kRestsAfter)
    return;
  pthread_mutex_unlock(&c.lock);
  const bool resumed = resume_activity();
  pthread_mutex_lock(&c.lock);
  c.paused = !resumed;
}

void* work_loop(void* collector) {
  Collector& c = *static_cast<Collector*>(collector);
  pthread_mutex_lock(&c.lock);
  while (!c.stop) {
    bool has_worked = false;
    for (std::size_t i = 0; i < c.context_count && !c.stop; ++i)
      has_worked = work_on(c, c.contexts[i]) || has_worked;
    if (has_worked || c.stop)
      continue;
    const std::int64_t now = monotonic_ns();
    if (lose_patience(c, now))
      continue;
    rest(c, now);
    if (c.paused)
      wait_for(c.wake, c.lock, kPollInterval);
    else
      pthread_cond_wait(&c.wake, &c.lock);
  }
  // The last pass may just have been taken.
  const auto has_results = [](const Context& context) {
    if (context.state != Context::State::kReady)
      return false;
    return context.finished_target != kNoTarget || context.mux->stop_is_due();
  };
  for (std::size_t i = 0; i < c.context_count; ++i) {
    while (has_results(c.contexts[i]) && work_on(c, c.contexts[i])) {
    }
  }
  for (std::size_t i = 0; i < c.context_count; ++i) {
    if (c.contexts[i].state != Context::State::kGone)
      release(c, c.contexts[i]);
  }
  pthread_mutex_unlock(&c.lock);
  return nullptr;
}

}  // namespace

void fail(Context& context) {
  if (context.state == Context::State::kFailed || context.state == Context::State::kGone)
    return;
  context.state = Context::State::kFailed;
  if (context.mux != nullptr)
    context.mux->failed();
  const char* event = "hardware counters stopped";
  const char* error = context.profiler.error();
  if (context.pc.error()[0] != '\0') {
    event = "samples of the program counter ended";
    error = context.pc.error();
  }
  char detail[512];
  std::snprintf(detail, sizeof detail, "%s on device %d: %s", event, context.device, error);
  tell_loss(detail);
}

void fail_to_begin(Context& context, std::size_t pass) {
  if (context.state != Context::State::kReady || !context.profiler.enabled() ||
      !context.profiler.give_up(context.profiler.configuration(pass), tell_loss))
    return fail(context);
  context.mux->restart(static_cast<std::uint32_t>(context.profiler.passes()));
}

bool enable_samples(Collector& c, Context& context) {
  claim_device();  // until the end: enabled sampling may use the counters at any time
  if (!context.pc.enable(c.pc, c.pc_defined, context.context))
    return false;
  end_before_loaded_libraries();
  return true;
}

bool start_worker(Collector& c) {
  c.has_worker = start_thread(c.worker, work_loop, &c);
  return c.has_worker;
}

}  // namespace rangescope::inject::cupti
