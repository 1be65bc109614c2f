#include "analyze/cpu/other_threads.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "analyze/statistics/stretches.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::kNone;

bool is_openmp(std::string_view file) {
  return file.starts_with("libgomp") || file.starts_with("libomp") || file.starts_with("libiomp") ||
         file.starts_with("libtbb");
}
bool is_blas(std::string_view file) {
  return file.starts_with("libopenblas") || file.starts_with("libscipy_openblas");
}

bool is_of_system(std::string_view file) {
  return file.starts_with("libc.so") || file == "[kernel]" || file == "[vdso]";
}

/// What one stack has of PoolStacks.
struct PoolStack {
  model::StringId work = 0, inside = 0, waits = 0;
  model::StringId pool = 0;  ///< of a thread of a pool, in the pool's own code so far
};

/// `caller`: of the stack that `frame` was called from.
PoolStack pool_stack(const model::Session& session,
                     const model::CpuFrame& frame,
                     const PoolStack& caller) {
  const std::string_view file = base::file_name(session.strings.view(frame.module));
  const bool openmp = is_openmp(file);
  const bool server = session.strings.view(frame.name).starts_with("blas_thread_server");
  const bool system = is_of_system(file);
  PoolStack stack = caller;
  if (caller.pool == 0 && (openmp || server))
    stack.pool = frame.module;
  if (openmp || is_blas(file))
    stack.inside = frame.module;
  if (openmp)
    stack.waits = frame.module;
  else if (!system)
    stack.waits = 0;
  const bool is_library_code = openmp || server || system;
  if (caller.work == 0 && !is_library_code)
    stack.work = caller.pool;
  return stack;
}

}  // namespace

PoolStacks pool_stacks(const model::Session& session) {
  const model::CpuProfile& cpu = session.cpu;
  PoolStacks out;
  std::vector<model::StringId> pool;
  for (const model::CpuStack& stack : cpu.stacks) {  // callers come before what they call
    PoolStack caller;
    const std::uint32_t p = stack.parent;
    if (p != kNone)
      caller = {out.work[p], out.inside[p], out.waits[p], pool[p]};
    const PoolStack of_stack = pool_stack(session, cpu.frames[stack.frame], caller);
    out.work.push_back(of_stack.work);
    out.inside.push_back(of_stack.inside);
    out.waits.push_back(of_stack.waits);
    pool.push_back(of_stack.pool);
  }
  return out;
}

namespace {

using Library = std::pair<std::uint32_t, model::StringId>;  // of a process

std::uint32_t session_thread(const model::CpuProfile& cpu, std::uint32_t thread) {
  if (thread >= cpu.threads.size())
    return kNone;
  return cpu.threads[thread].thread;
}

/// Times in which each thread of the session was seen in a library, `around` each sample.
std::map<Library, std::map<std::uint32_t, Spans>> spells_of(
    const model::CpuProfile& cpu, const std::vector<model::StringId>& inside, std::int64_t around) {
  std::map<Library, std::map<std::uint32_t, Spans>> out;
  const auto add = [&](std::uint32_t thread, std::uint32_t stack, Spans::value_type spell) {
    if (stack >= inside.size() || inside[stack] == 0 || session_thread(cpu, thread) == kNone)
      return;
    out[{cpu.threads[thread].pid, inside[stack]}][thread].push_back(spell);
  };
  for (const model::CpuSample& sample : cpu.samples)
    add(sample.thread, sample.stack, {sample.at_ns - around, sample.at_ns + around});
  for (const model::CpuWait& wait : cpu.waits)
    add(wait.thread, wait.stack, {wait.start_ns, wait.end_ns});
  for (auto& [library, threads] : out)
    for (auto& [thread, spells] : threads)
      unite(spells);
  return out;
}

bool is_pool_work(const PoolStacks& pools, const model::CpuSample& sample) {
  return sample.stack < pools.work.size() && pools.work[sample.stack] != 0;
}

/// A sample of a worker: when, and which thread.
using WorkSample = std::pair<std::int64_t, std::uint32_t>;

/// In time order, by the library whose work it is.
std::map<Library, std::vector<WorkSample>> pool_work(const model::CpuProfile& cpu,
                                                     const PoolStacks& pools) {
  std::map<Library, std::vector<WorkSample>> work;
  for (const model::CpuSample& sample : cpu.samples) {
    const model::CpuThread& worker = cpu.threads[sample.thread];
    if (worker.thread == kNone && is_pool_work(pools, sample))
      work[{worker.pid, pools.work[sample.stack]}].emplace_back(sample.at_ns, sample.thread);
  }
  for (auto& [library, samples] : work)
    std::sort(samples.begin(), samples.end());
  return work;
}

/// Is `at_ns` in one of the spans, which are in order?
bool holds(const Spans& spans, std::int64_t at_ns) {
  const auto next =
      std::upper_bound(spans.begin(), spans.end(), Spans::value_type{at_ns, INT64_MAX});
  return next != spans.begin() && std::prev(next)->second >= at_ns;
}

}  // namespace

std::vector<std::uint32_t> pool_users(const model::Session& session, const PoolStacks& pools) {
  const model::CpuProfile& cpu = session.cpu;
  const auto spells = spells_of(cpu, pools.inside, cpu.interval_ns);
  std::vector<std::uint32_t> out(cpu.samples.size(), kNone);
  std::vector<std::uint32_t> users;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const model::CpuSample& sample = cpu.samples[i];
    const model::CpuThread& worker = cpu.threads[sample.thread];
    if (worker.thread != kNone || !is_pool_work(pools, sample))
      continue;
    users.clear();
    const auto library = spells.find({worker.pid, pools.work[sample.stack]});
    if (library != spells.end())
      for (const auto& [thread, times] : library->second)
        if (holds(times, sample.at_ns))
          users.push_back(thread);
    std::uint32_t user = worker.creator;
    if (users.size() == 1)
      user = users.front();
    out[i] = session_thread(cpu, user);
  }
  return out;
}

std::vector<model::CpuWait> pool_waits(const model::Session& session, const PoolStacks& pools) {
  constexpr std::int64_t kLeast_ns = 2'000'000;
  const model::CpuProfile& cpu = session.cpu;
  std::map<Library, std::vector<WorkSample>> work = pool_work(cpu, pools);
  std::vector<model::CpuWait> out;
  for (const auto& [library, threads] : spells_of(cpu, pools.waits, cpu.interval_ns / 2)) {
    const auto& samples = work[library];
    for (const auto& [thread, spells] : threads) {
      for (const auto& [start, end] : spells) {
        const auto after = std::upper_bound(samples.begin(), samples.end(), std::pair(end, kNone));
        if (end - start < kLeast_ns || after == samples.begin())
          continue;
        const auto& [worked_at, worker] = *std::prev(after);
        const std::int64_t longest_gap = std::max(2 * cpu.interval_ns, (end - start) / 4);
        if (worked_at < end - longest_gap)
          continue;  // a worker may have been preempted
        model::CpuWait wait{start, end, thread};
        wait.holder = worker;
        out.push_back(wait);
      }
    }
  }
  return out;
}

namespace {

/// What happens at a time: to first threads of children, and to the one that waits for them.
struct ChildChange {
  std::int64_t at_ns;
  int waiters, working;                            ///< more or less of them
  model::WaitKind kind = model::WaitKind::kOther;  ///< what more or less children wait for
  int waiting = 0;
};

struct ChildChanges {
  std::vector<ChildChange> list;  ///< by time
  std::uint32_t waiter = kNone;   ///< the thread that waits for children
};

ChildChanges changes_of_children(const model::Session& session, std::uint32_t pid) {
  using model::WaitKind;
  const model::CpuProfile& cpu = session.cpu;
  ChildChanges changes;
  for (const model::Process& process : session.processes) {
    if (process.pid == pid)
      continue;
    changes.list.push_back({process.start_ns, 0, 1});
    changes.list.push_back({process.end_ns, 0, -1});
  }
  for (const model::CpuWait& wait : cpu.waits) {
    const model::CpuThread& thread = cpu.threads[wait.thread];
    if (thread.tid != thread.pid)
      continue;
    const bool is_for_child = wait.kind == WaitKind::kChild;
    if (thread.pid == pid) {
      if (!is_for_child)
        continue;
      changes.waiter = wait.thread;
      changes.list.push_back({wait.start_ns, 1, 0});
      changes.list.push_back({wait.end_ns, -1, 0});
    } else if (wait.kind != WaitKind::kPreempted && wait.kind != WaitKind::kGil) {
      const int waiting = static_cast<int>(!is_for_child);
      changes.list.push_back({wait.start_ns, 0, -1, wait.kind, waiting});
      changes.list.push_back({wait.end_ns, 0, 1, wait.kind, -waiting});
    }
  }
  std::ranges::stable_sort(changes.list, {}, &ChildChange::at_ns);
  return changes;
}

/// How many children wait, by kind of wait.
using WaitingChildren = std::array<int, std::size(model::kWaitNames)>;

/// What a child waits for; kChild where none is known to wait.
model::WaitKind kind_of_wait(const WaitingChildren& waiting) {
  using model::WaitKind;
  for (const WaitKind kind : {WaitKind::kSleep, WaitKind::kLock, WaitKind::kOther, WaitKind::kIo})
    if (waiting[static_cast<std::size_t>(kind)] > 0)
      return kind;
  return WaitKind::kChild;
}

}  // namespace

std::vector<model::CpuWait> waits_of_children(const model::Session& session, std::uint32_t pid) {
  const ChildChanges changes = changes_of_children(session, pid);
  std::vector<model::CpuWait> out;
  if (changes.waiter == kNone)
    return out;
  WaitingChildren waiting{};
  int waiters = 0, working = 0;
  for (std::size_t i = 0; i + 1 < changes.list.size(); ++i) {
    const ChildChange& change = changes.list[i];
    waiters += change.waiters;
    working += change.working;
    waiting[static_cast<std::size_t>(change.kind)] += change.waiting;
    const std::int64_t start = change.at_ns;
    const std::int64_t end = changes.list[i + 1].at_ns;
    if (waiters <= 0 || working > 0 || end <= start)
      continue;
    const model::WaitKind kind = kind_of_wait(waiting);
    if (!out.empty() && out.back().end_ns == start && out.back().kind == kind)
      out.back().end_ns = end;
    else
      out.push_back({.start_ns = start, .end_ns = end, .thread = changes.waiter, .kind = kind});
  }
  return out;
}

std::uint32_t telling_frame(const model::CpuProfile& cpu, std::uint32_t stack) {
  std::uint32_t named = kNone;
  for (; stack < cpu.stacks.size(); stack = cpu.stacks[stack].parent) {
    const std::uint32_t frame = cpu.stacks[stack].frame;
    if (cpu.frames[frame].kind == model::FrameKind::kPython)
      return frame;
    if (named == kNone && cpu.frames[frame].name != 0)
      named = frame;
  }
  return named;
}

void longest_holders(std::vector<model::CpuHolder>& holders) {
  constexpr std::size_t kMost = 8;
  std::ranges::stable_sort(holders, std::greater<>(), &model::CpuHolder::ns);
  if (holders.size() > kMost)
    holders.resize(kMost);
}

}  // namespace rangescope::analyze
