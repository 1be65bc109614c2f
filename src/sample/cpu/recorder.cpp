#include "sample/cpu/recorder.hpp"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>
#include <utility>

#include "sample/blocks.hpp"
#include "sample/cpu/perf.hpp"
#include "sample/cpu/sampler.hpp"

namespace rangescope::sample::cpu {
namespace {

std::int64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Only samples wake us, so the threads that ran last are looked at a little later: what do they wait for? Then rarely.
constexpr int kSoon_ms = 4, kRarely_ms = 20;

/// A sample's Python frames must be read at once. With the right to it (root) this thread runs before all others, for
/// its microseconds; else it asks the scheduler for short turns, which come sooner (Linux 6.12).
void run_soon() {
  sched_param parameters{};
  parameters.sched_priority = 1;
  if (::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &parameters) == 0) return;
  struct {
    std::uint32_t size = 48, policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 100'000, deadline = 0, period = 0;
  } attributes;
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

struct Recorder::State {
  State(Events opened, BlockFile file, std::string description, const Options& wanted)
      : events(std::move(opened)),
        sampler(std::move(file), std::move(description), wanted.most_bytes),
        options(wanted) {}
  void run();

  Events events;
  Sampler sampler;
  Options options;
  std::atomic<bool> ended{false};
  std::int64_t cpu_ns = 0;
  std::thread thread;
};

void Recorder::State::run() {
  // Signals are for the thread that runs the program.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  run_soon();
  const std::int64_t begun = now_ns(), cpu_begun = thread_cpu_ns();
  std::int64_t flushed = begun, looked = begun;
  for (int patience_ms = kSoon_ms; !ended;) {
    patience_ms = events.wait(patience_ms) ? kSoon_ms : std::min(2 * patience_ms, kRarely_ms);
    // At most a tenth of a core: programs with many threads are taken in larger portions.
    cpu_ns = thread_cpu_ns() - cpu_begun;
    if (cpu_ns * 12 > now_ns() - begun + 1'000'000'000) ::poll(nullptr, 0, 10);
    events.drain(sampler);
    const std::int64_t now = now_ns();
    if (now - looked > kSoon_ms * 900'000) {
      sampler.look_at_waits(now);
      looked = now;
    }
    if (now - flushed > 1'000'000'000) {
      sampler.flush();
      flushed = now;
    }
  }
  events.drain(sampler);
  cpu_ns = thread_cpu_ns() - cpu_begun;
}

base::Result<Allowed> allowed() {
  const auto events = Events::open({});
  if (!events) return tl::make_unexpected(events.error());
  return Allowed{events->kernel(), events->switches()};
}

base::Result<void> leave_refusal(const std::filesystem::path& folder, const base::Error& why) {
  auto file =
      BlockFile::create(folder / (std::string("program") + wire::cpu::kSuffix), wire::cpu::kMagic, wire::cpu::kVersion);
  if (!file) return base::fail(std::move(file));
  put_event(*file, wire::cpu::kUnavailable, why.hint.empty() ? why.what : why.what + ". " + why.hint, 1);
  return {};
}

base::Result<Recorder> Recorder::start(const Options& options) {
  auto file = BlockFile::create(options.folder / (std::string("program") + wire::cpu::kSuffix), wire::cpu::kMagic,
                                wire::cpu::kVersion);
  if (!file) return base::fail(std::move(file));
  auto events = Events::open({options.interval_ns, has_tables(), options.counters});
  if (!events) return base::fail(std::move(events));
  std::string description =
      "interval_ns " + std::to_string(options.interval_ns) + "\nunwinding " +
      (events->stack_bytes() > 0 ? "tables of the stack's copy of " + std::to_string(events->stack_bytes()) + " bytes"
                                 : "frame pointers") +
      "\n";
  if (!events->kernel()) description += "refused kernel\n";
  if (!events->switches()) description += "refused context switches\n";
  auto state = std::make_unique<State>(std::move(*events), std::move(*file), std::move(description), options);
  state->sampler.describe(options.counters, state->events.refused());
  // This thread has the events, disabled: a thread made now inherits them and stays without samples too.
  state->thread = std::thread([own = state.get()] { own->run(); });
  return Recorder(std::move(state));
}

Recorder::Recorder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Recorder::Recorder(Recorder&&) noexcept = default;
Recorder::~Recorder() {
  stop();
}

void Recorder::stop() {
  if (!state_) return;
  state_->ended = true;
  state_->thread.join();
  const std::vector<CounterTotal> totals = state_->events.totals();
  state_->events.close();
  state_->sampler.finish(now_ns(), state_->options.cache, state_->cpu_ns, totals);
  state_.reset();
}

}  // namespace rangescope::sample::cpu
