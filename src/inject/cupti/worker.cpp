// The thread that programs the hardware between occurrences: sets contexts up, arms, stops and
// evaluates sessions, pauses the timeline while there is something to measure, and detaches after
// the last round.
//
// The timeline is paused only while a session is armed or under way. It goes on after kRestsAfter
// without work, and a range that stopped coming while it lacks passes is given up after its
// patience: ten seconds, or four times the longest time that lay between two of its occurrences.
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
constexpr std::int64_t kLook =
    kSecond / 4;  // how often the clock is looked at while the timeline is paused

counters::Limits limits_of(const Collector& c, std::size_t passes, bool kernels, bool waits) {
  counters::Limits limits;
  limits.passes = static_cast<std::uint32_t>(passes);
  limits.rounds = kernels && c.plan.per == counters::Per::kBoth ? 1 : c.plan.rounds;
  limits.skip_first = c.plan.skip_first;
  limits.most_ranges = kernels || c.plan.pc ? 1 : counters::kMaxRanges;
  limits.wait_for_trace = waits;
  return limits;
}

// CUPTI loads the profiler's libraries when they are first used, and their objects are destroyed at
// exit before whoever registered earlier: counters have to end before that. Seen on an H200: a
// program that ended 0.3 s after cuInit crashed in the worker. Ending twice does no harm.
void end_before_what_was_loaded() {
  std::atexit(finish_counters);
}

bool set_up(Collector& c, Context& context) {
  if (c.plan.pc) return true;
  char why[512] = {};
  claim_device();
  if (!context.profiler.enable(c.range, context.context, static_cast<std::uint32_t>(context.device),
                               c.plan, tell_loss, why, sizeof why)) {
    char detail[600];
    std::snprintf(detail, sizeof detail, "no hardware counters on device %d: %s", context.device,
                  why);
    tell_loss(detail);
    release_device();
    return false;
  }
  if (c.plan.flush_cache && !context.flush.ready() &&
      !context.flush.make(c.driver, context.device)) {
    char detail[160];
    std::snprintf(detail, sizeof detail,
                  "caches of device %d are not flushed: no memory for a buffer of twice its L2, or "
                  "the driver refused "
                  "the kernel",
                  context.device);
    tell_loss(detail);
  }
  watch_launches(c, true);
  end_before_what_was_loaded();
  return true;
}

std::size_t room_for_kernels(const Collector& c, std::uint32_t target) {
  const std::uint32_t seen = c.targets[target].launches;
  if (seen == 0) return 2048;
  const std::size_t room = (seen + 16) * (c.plan.flush_cache ? 2 : 1);
  return room < Recorder::kMostKernels ? room : Recorder::kMostKernels;
}

bool arm(Collector& c, Context& context, const Work& work, std::size_t kernel_room) {
  if (c.plan.pc) return context.pc.enabled() || enable_samples(c, context);
  if (!context.profiler.enabled() && !set_up(c, context)) return false;
  RangeProfiler& profiler = context.profiler;
  std::size_t pass = work.pass;
  const std::size_t configuration = profiler.configuration(pass);
  Image& image = context.images[work.target][configuration];
  if (!profiler.turn_to(configuration)) return false;
  if (pass == 0 &&
      !profiler.make(configuration, image, context.kernels ? kernel_room : work.ranges))
    return false;
  if (!profiler.configure(configuration, image, context.kernels)) return false;
  return context.kernels || profiler.start();
}

// Runs without the lock, in the context; others see in c.busy that it must not go away.
template <class Action>
bool without_lock(Collector& c, Context& context, Action action) {
  c.busy = &context;
  pthread_mutex_unlock(&c.lock);
  c.driver.cuCtxSetCurrent(context.context);
  const bool good = action();
  pthread_mutex_lock(&c.lock);
  c.busy = nullptr;
  pthread_cond_broadcast(&c.idle);
  return good;
}

// In the context whose work is to be counted.
void pause_timeline(Collector& c) {
  if (c.paused || c.plan.pc) return;
  c.paused = pause_activity();
  c.driver.cuCtxSynchronize();  // what is still running would be a kernel without an end
  flush_activity();
}

void make_ready(Collector& c, Context& context) {
  const bool good = without_lock(c, context, [&] {
    if (c.plan.trace_first == 0) pause_timeline(c);
    return set_up(c, context);
  });
  void* memory = std::calloc(1, sizeof(Multiplexer));
  if (!good || memory == nullptr) {
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

// Second phase of `both`: the same ranges, kernel by kernel. Everything has settled long ago.
void go_on_with_kernels(Collector& c, Context& context) {
  auto limits = limits_of(c, context.profiler.passes(), true, false);
  limits.skip_first = 0;
  write_tallies(c);
  context.kernels = true;
  context.mux = new (context.mux) Multiplexer(limits);
  for (std::uint32_t i = 0; i < c.target_count; ++i) {
    if (c.targets[i].has_graphs) context.mux->drop(i);
  }
}

// Every range has what it was to have: the program runs as if nothing were there, but for a look at
// each push, because a range that was not there before may come.
void detach(Collector& c, Context& last) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    const Context& each = c.contexts[i];
    if (each.state == Context::State::kNew) return;
    if (each.state == Context::State::kReady && !each.mux->done()) return;
  }
  for (std::size_t i = 0; i < c.context_count; ++i) {
    Context& each = c.contexts[i];
    if (each.state != Context::State::kReady || !each.mux->resting()) continue;
    without_lock(c, each, [&] {
      each.profiler.disable();
      each.pc.disable();
      return true;
    });
  }
  without_lock(c, last, [&] {
    if (!c.plan.pc) watch_launches(c, false);  // else NCCL is looked out for
    if (c.paused) c.paused = !resume_activity();
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
  if (context.mux != nullptr) context.mux->failed();
  pthread_cond_broadcast(&c.idle);
}

// Does one piece of work for one context; true when there was any. Called with the lock; works
// without it.
bool work_on(Collector& c, Context& context) {
  if (c.captures.any()) return false;
  if (context.state == Context::State::kNew) {
    make_ready(c, context);
    return true;
  }
  if (context.state == Context::State::kLeaving) {
    release(c, context);
    return true;
  }
  if (context.state != Context::State::kReady) return false;
  if (context.finished_target != kNoTarget) {
    const std::uint32_t target = context.finished_target;
    without_lock(c, context, [&] {
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
      const bool good = without_lock(c, context, [&] {
        pause_timeline(c);
        return arm(c, context, work, room);
      });
      context.armed_at = monotonic_ns();
      if (good)
        context.mux->armed();
      else
        fail_to_begin(context, work.pass);
      pthread_cond_broadcast(&c.idle);
      return true;
    }
    case Work::Kind::kStop: {
      if (c.plan.pc) {
        if (without_lock(c, context, [&] { return context.pc.fetch(work.target); }))
          context.mux->stopped();
        else
          fail(context);
        return true;
      }
      std::size_t pass = work.pass;
      Image* const images = context.images[work.target];
      Image& image = images[context.profiler.configuration(pass)];
      const bool good = without_lock(c, context, [&] {
        if (!context.profiler.stop(image, work.discard)) return false;
        if (work.complete) evaluate(c, context, images, work.target, context.kernels);
        if (work.complete && !c.evaluated) end_before_what_was_loaded();
        c.evaluated = c.evaluated || work.complete;
        return true;
      });
      if (good)
        context.mux->stopped();
      else
        fail(context);
      return true;
    }
    case Work::Kind::kDetach: break;
  }
  if (c.plan.per == counters::Per::kBoth && !context.kernels)
    go_on_with_kernels(c, context);
  else
    detach(c, context);
  return true;
}

// Gives up whoever does not come any more; true when there was one.
bool lose_patience(Collector& c, std::int64_t now) {
  bool any = false;
  for (std::size_t i = 0; i < c.context_count; ++i) {
    Context& context = c.contexts[i];
    if (context.state != Context::State::kReady) continue;
    const std::uint32_t awaited = context.mux->awaited();
    if (awaited == kNoTarget) continue;
    const Target& target = c.targets[awaited];
    const std::int64_t since =
        target.last_ns > context.armed_at ? target.last_ns : context.armed_at;
    std::int64_t patience = 4 * target.longest_gap_ns;
    if (patience < c.plan.patience_ms * (kSecond / 1000))
      patience = c.plan.patience_ms * (kSecond / 1000);
    if (now - since < patience) continue;
    context.mux->give_up();
    any = true;
  }
  return any;
}

void rest(Collector& c, std::int64_t now) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    const Context& context = c.contexts[i];
    if (context.state == Context::State::kReady && !context.mux->resting()) {
      c.rests_since = 0;
      return;
    }
  }
  if (c.rests_since == 0) c.rests_since = now;
  if (!c.paused || c.plan.trace_first == 0 || c.captures.any() || now - c.rests_since < kRestsAfter)
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
    bool any = false;
    for (std::size_t i = 0; i < c.context_count && !c.stop; ++i)
      any = work_on(c, c.contexts[i]) || any;
    if (any || c.stop) continue;
    const std::int64_t now = monotonic_ns();
    if (lose_patience(c, now)) continue;
    rest(c, now);
    if (c.paused)
      wait_for(c.wake, c.lock, kLook);
    else
      pthread_cond_wait(&c.wake, &c.lock);
  }
  // The last pass may have been taken a moment ago.
  for (std::size_t i = 0; i < c.context_count; ++i) {
    Context& context = c.contexts[i];
    while (context.state == Context::State::kReady &&
           (context.finished_target != kNoTarget || context.mux->stop_is_due()) &&
           work_on(c, context)) {
    }
  }
  for (std::size_t i = 0; i < c.context_count; ++i) {
    if (c.contexts[i].state != Context::State::kGone) release(c, c.contexts[i]);
  }
  pthread_mutex_unlock(&c.lock);
  return nullptr;
}

}  // namespace

void fail(Context& context) {
  if (context.state == Context::State::kFailed || context.state == Context::State::kGone) return;
  context.state = Context::State::kFailed;
  if (context.mux != nullptr) context.mux->failed();
  char detail[512];
  const bool pc = context.pc.error()[0] != '\0';
  std::snprintf(detail, sizeof detail, "%s on device %d: %s",
                pc ? "samples of the program counter ended" : "hardware counters stopped",
                context.device, pc ? context.pc.error() : context.profiler.error());
  tell_loss(detail);
}

void fail_to_begin(Context& context, std::size_t pass) {
  if (context.state != Context::State::kReady || !context.profiler.enabled() ||
      !context.profiler.give_up(context.profiler.configuration(pass), tell_loss))
    return fail(context);
  context.mux->restart(static_cast<std::uint32_t>(context.profiler.passes()));
}

bool enable_samples(Collector& c, Context& context) {
  claim_device();  // to the end: what is enabled may count at any time
  if (!context.pc.enable(c.pc, c.pc_defined, context.context)) return false;
  end_before_what_was_loaded();
  return true;
}

bool start_worker(Collector& c) {
  c.has_worker = start_thread(c.worker, work_loop, &c);
  return c.has_worker;
}

}  // namespace rangescope::inject::cupti
