#include "sample/cpu/recorder.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "sample/blocks.hpp"
#include "sample/cpu/names.hpp"
#include "sample/cpu/perf.hpp"
#include "sample/cpu/polls.hpp"
#include "sample/cpu/real_time.hpp"
#include "sample/cpu/sampler.hpp"
#include "sample/cpu/switch_watch.hpp"
#include "sample/cpu/target.hpp"
#include "sample/cpu/unrecorded.hpp"

namespace rangescope::sample::cpu {
namespace {

std::int64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

base::Result<BlockFile> new_file(const std::filesystem::path& folder) {
  const std::string name = std::string("program") + wire::cpu::kSuffix;
  return BlockFile::create(folder / name, wire::cpu::kMagic, wire::cpu::kVersion);
}

/// What it is and what to do about it, on one line.
std::string on_one_line(const base::Error& error) {
  if (error.hint.empty())
    return error.what;
  return error.what + ". " + error.hint;
}

/// The lines of the stream's description that say what is sampled; `attached`: of a program that
/// runs already.
std::string description_of(const base::Result<Events>& events,
                           std::int64_t interval_ns,
                           bool attached) {
  std::string description = "interval_ns " + std::to_string(interval_ns) + "\nunwinding ";
  if (!events)
    description += "none\npolled " + on_one_line(events.error());
  else if (events->stack_bytes() > 0)
    description +=
        "tables of the stack's copy of " + std::to_string(events->stack_bytes()) + " bytes";
  else
    description += "frame pointers";
  description += "\n";
  if (events && !events->kernel())
    description += "refused kernel\n";
  if (events && !events->switches() && !attached)
    description += "refused context switches\n";
  return description;
}

/// Only samples wake us, so the threads that ran last are looked at a little later: what do they
/// wait for? Then rarely.
constexpr std::int64_t kSoon_ns = 4'000'000, kRarely_ns = 20'000'000;
/// Where only /proc says what a thread waits for, waits of a millisecond are looked at while they
/// last: while a thread runs, one may begin unseen.
constexpr std::int64_t kGlance_ns = 400'000;

}  // namespace

struct Recorder::State {
  State(std::optional<Events> opened,
        BlockFile file,
        std::string description,
        const Options& wanted)
      : events(std::move(opened)),
        sampler(std::move(file), std::move(description), wanted.most_bytes),
        options(wanted) {}
  void run();
  void record();
  void poll();
  void turn(SwitchWatch& watch);
  [[nodiscard]] base::Result<void> find_all(const Running& to);
  [[nodiscard]] bool has_short_threads();

  std::optional<Events> events;  ///< none: the kernel refused them, and /proc is read instead
  Running polled{static_cast<std::uint32_t>(::getpid())};
  Sampler sampler;
  std::optional<Unrecorded> unrecorded;
  Options options;
  std::atomic<bool> ended{false};
  std::int64_t cpu_ns = 0, from_ns = 0, ended_ns = 0;
  std::vector<CounterTotal> totals;
  bool out_of_memory = false;
  std::thread thread;
};

void Recorder::State::run() {
  // Signals are for the thread that runs the program.
  sigset_t every_signal;
  sigfillset(&every_signal);
  ::pthread_sigmask(SIG_SETMASK, &every_signal, nullptr);
  try {
    if (events)
      record();
    else
      poll();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
  }
}

void Recorder::State::record() {
  RealTime real_time;  // a sample's Python frames must be read at once
  const std::int64_t begun = now_ns(), cpu_begun = thread_cpu_ns();
  std::int64_t flushed = begun, looked = begun;
  SwitchWatch watch(begun);
  bool awake = true;
  const bool may_glance = !events->kernel() && events->switches();
  const std::int64_t least_ns = may_glance ? kGlance_ns : kSoon_ns;
  for (std::int64_t patience_ns = least_ns; !ended;) {
    real_time.ends();
    const bool woken = events->wait(watch.patience_ns(patience_ns));
    // At most a tenth of a core: programs with many threads are taken in larger portions.
    cpu_ns = thread_cpu_ns() - cpu_begun;
    if (cpu_ns * 12 > now_ns() - begun + 1'000'000'000)
      ::poll(nullptr, 0, 10);
    real_time.begins();
    const auto [samples, switches] = events->drain(sampler);
    const bool glances = least_ns < kSoon_ns && (switches > 0 || awake);
    const bool is_active = woken || samples > 0 || glances;
    patience_ns = is_active ? least_ns : std::min(2 * patience_ns, kRarely_ns);
    events->be_quiet(sampler.patient(now_ns()));
    real_time.rests(events->quiet());
    sampler.ask_for_calls();
    if (unrecorded)
      unrecorded->look(now_ns());
    if (watch.turns(now_ns(), switches))
      turn(watch);
    const std::int64_t now = now_ns();
    if (now - looked > least_ns * 9 / 10) {
      awake = sampler.look_at_waits(now);
      looked = now;
    }
    if (now - flushed > 1'000'000'000) {
      sampler.flush();
      flushed = now;
    }
  }
  real_time.begins();
  events->drain(sampler);
  cpu_ns = thread_cpu_ns() - cpu_begun;
}

// At most a twentieth of a core.
void Recorder::State::poll() {
  const std::int64_t begun = thread_cpu_ns();
  Polls polls(polled.pid, polled.of_ours, now_ns());
  for (std::int64_t flushed = now_ns(); !ended;) {
    const std::int64_t before = thread_cpu_ns();
    polls.turn(sampler, now_ns());
    sampler.look_at_waits(now_ns());
    if (unrecorded)
      unrecorded->look(now_ns());
    if (now_ns() - flushed > 1'000'000'000) {
      sampler.flush();
      flushed = now_ns();
    }
    cpu_ns = thread_cpu_ns() - begun;
    const std::int64_t rest = std::max(Polls::kInterval_ns, 20 * (thread_cpu_ns() - before));
    for (const std::int64_t until = now_ns() + rest; !ended && now_ns() < until;)
      ::poll(nullptr,
             0,
             static_cast<int>(std::clamp<std::int64_t>((until - now_ns()) / 1'000'000, 1, 20)));
  }
  polls.turn(sampler, now_ns());
}

void Recorder::State::turn(SwitchWatch& watch) {
  if (watch.on()) {
    events->watch_switches(true);
    sampler.watching_begins(now_ns());
  } else {
    events->watch_switches(false);
    const std::int64_t ended_at_ns = now_ns();
    (void)events->drain(sampler);  // all that was recorded before
    sampler.watching_ends(ended_at_ns);
  }
  watch.turned(now_ns());
}

base::Result<Allowed> allowed() {
  const auto events = Events::open({});
  if (!events)
    return tl::make_unexpected(events.error());
  return Allowed{events->kernel(), events->switches()};
}

base::Result<void> leave_refusal(const std::filesystem::path& folder, const base::Error& why) {
  auto file = new_file(folder);
  if (!file)
    return base::fail(std::move(file));
  file->event(wire::cpu::kUnavailable, on_one_line(why), 1);
  return {};
}

base::Result<std::unique_ptr<Recorder::State>> Recorder::make(const Options& options,
                                                              const Running* to) {
  auto file = new_file(options.folder);
  if (!file)
    return base::fail(std::move(file));
  const bool kernel_names = kernel_has_names();
  auto events = Events::open({options.interval_ns,
                              has_tables(),
                              kernel_names,
                              options.counters,
                              to != nullptr,
                              to != nullptr && to->tree});
  if (!events && !options.may_poll)
    return base::fail(std::move(events));
  const std::int64_t interval_ns = events ? options.interval_ns : Polls::kInterval_ns;
  std::string description = description_of(events, interval_ns, to != nullptr) + options.regions;
  auto state = std::make_unique<State>(events ? std::optional(std::move(*events)) : std::nullopt,
                                       std::move(*file),
                                       std::move(description),
                                       options);
  return state;
}

base::Result<void> Recorder::begin() {
  try {
    state_->thread = std::thread([state = state_.get()] { state->run(); });
  } catch (const std::system_error& error) {
    return base::fail(base::Code::kPermission,
                      std::string("no thread can be started: ") + error.what(),
                      {},
                      "Raise ulimit -u");
  }
  return {};
}

base::Result<Recorder> Recorder::start(const Options& options) {
  auto state = make(options, nullptr);
  if (!state)
    return base::fail(std::move(state));
  if ((*state)->events)
    (*state)->sampler.describe(options.counters, (*state)->events->refused());
  if (!options.library.empty()) {
    Unrecorded& unrecorded =
        (*state)->unrecorded.emplace(options.library, options.folder.parent_path());
    (*state)->sampler.on_exec(
        [&unrecorded](std::uint32_t pid) { unrecorded.executed(pid, now_ns()); });
  }
  Recorder recorder(std::move(*state));
  // This thread has the events, disabled: a thread made now inherits them and stays without samples
  // too.
  if (auto begun = recorder.begin(); !begun)
    return base::fail(std::move(begun));
  return recorder;
}

// A thread that came while others were looked at has the events of the thread that started it, if
// that one had them by then: the kernel's records say so. Else it gets its own. A program that
// starts threads without end is looked at a bounded number of times.
base::Result<void> Recorder::State::find_all(const Running& to) {
  constexpr int kMostLooks = 16;
  std::set<std::uint32_t> known_pids;
  for (int look = 0; look < kMostLooks; ++look) {
    bool found_new = false;
    for (const Member& member : members_of(to.pid, to.tree)) {
      const std::vector<std::uint32_t> tids = threads_of(member.pid);
      (void)events->drain(sampler);
      for (const std::uint32_t tid : tids) {
        if (sampler.knows(tid))
          continue;
        if (auto followed = events->follow(tid); !followed)
          return followed;
        sampler.found_thread({member.pid, tid}, name_of_thread(member.pid, tid));
        found_new = true;
      }
      if (!known_pids.insert(member.pid).second)
        continue;
      sampler.found(member.pid, member.parent_pid, name_of_thread(member.pid, member.pid));
      maps_of(member.pid, [&](const Mapped& mapped) { sampler.mapped(mapped); });
    }
    if (!found_new)
      break;
  }
  if (known_pids.empty())
    return base::fail(base::Code::kNoInput,
                      "process " + std::to_string(to.pid) + " has ended meanwhile");
  return {};
}

// A server that starts a thread for each request has none that lives until a sample is due.
bool Recorder::State::has_short_threads() {
  constexpr std::int64_t kLook_ns = 100'000'000;
  constexpr std::uint64_t kFew = 1;
  for (const std::int64_t until = now_ns() + kLook_ns;
       now_ns() < until && sampler.short_lives() <= kFew;) {
    ::poll(nullptr, 0, 5);
    (void)events->drain(sampler);
  }
  return sampler.short_lives() > kFew;
}

base::Result<Recorder> Recorder::attach(const Options& options, const Running& to) {
  auto new_state = make(options, &to);
  if (!new_state)
    return base::fail(std::move(new_state));
  State& state = **new_state;
  state.sampler.waits_for_window();
  if (!state.events)
    state.polled = {to.pid, to.tree, true};
  else if (auto found = state.find_all(to); !found)
    return base::fail(std::move(found));
  if (options.short_interval_ns > 0 && state.events && state.has_short_threads()) {
    Options often = options;
    often.interval_ns = options.short_interval_ns;
    often.short_interval_ns = 0;
    new_state->reset();
    return attach(often, to);
  }
  state.from_ns = now_ns();
  state.sampler.window_begins(state.from_ns,
                              [](const Task& task) { return sleeps(task.pid, task.tid); });
  Recorder recorder(std::move(*new_state));
  if (auto begun = recorder.begin(); !begun)
    return base::fail(std::move(begun));
  return recorder;
}

std::int64_t Recorder::from_ns() const {
  return state_->from_ns;
}

std::int64_t Recorder::until_ns() const {
  return state_->ended_ns;
}

Recorder::Recorder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Recorder::Recorder(Recorder&&) noexcept = default;
Recorder::~Recorder() {
  stop();
}

void Recorder::stop() {
  if (!state_ || !state_->thread.joinable())
    return;
  state_->ended = true;
  state_->thread.join();
  if (state_->events)
    state_->totals = state_->events->totals();
  state_->ended_ns = now_ns();
  state_->events.reset();
}

void Recorder::finish() {
  if (state_->out_of_memory)
    state_->sampler.cut("no memory was left to record them");
  if (state_->unrecorded)
    for (const UnrecordedProgram& program : state_->unrecorded->reasons())
      state_->sampler.not_recorded(program.kind + " " + std::to_string(program.pid) + " " +
                                   program.sentence);
  state_->sampler.finish(state_->ended_ns, state_->options.cache, state_->cpu_ns, state_->totals);
  state_.reset();
}

}  // namespace rangescope::sample::cpu
