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

}  // namespace

PoolStacks pool_stacks(const model::Session& session) {
  const model::CpuProfile& cpu = session.cpu;
  const std::size_t count = cpu.stacks.size();
  PoolStacks out{std::vector<model::StringId>(count),
                 std::vector<model::StringId>(count),
                 std::vector<model::StringId>(count)};
  std::vector<model::StringId> pool(
      count);  // it is a thread of a pool, in the pool's own code so far
  for (std::size_t s = 0; s < count; ++s) {
    const model::CpuStack& stack = cpu.stacks[s];
    const model::CpuFrame& frame = cpu.frames[stack.frame];
    const std::string_view file = base::file_name(session.strings.view(frame.module));
    const std::string_view name = session.strings.view(frame.name);
    const bool first = stack.parent == kNone, openmp = is_openmp(file),
               server = name.starts_with("blas_thread_server");
    const bool system = file.starts_with("libc.so") || file == "[kernel]" || file == "[vdso]";
    const model::StringId above = first ? 0 : pool[stack.parent];
    pool[s] = above != 0 ? above : openmp || server ? frame.module : 0;
    out.inside[s] = openmp || is_blas(file) ? frame.module : first ? 0 : out.inside[stack.parent];
    out.waits[s] = openmp ? frame.module : system && !first ? out.waits[stack.parent] : 0;
    const model::StringId works = first ? 0 : out.work[stack.parent];
    out.work[s] = works != 0 ? works : above != 0 && !openmp && !server && !system ? above : 0;
  }
  return out;
}

namespace {

using Library = std::pair<std::uint32_t, model::StringId>;  // of a process

std::uint32_t session_thread(const model::CpuProfile& cpu, std::uint32_t thread) {
  return thread < cpu.threads.size() ? cpu.threads[thread].thread : kNone;
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
  for (const model::CpuSample& each : cpu.samples)
    add(each.thread, each.stack, {each.at_ns - around, each.at_ns + around});
  for (const model::CpuWait& each : cpu.waits)
    add(each.thread, each.stack, {each.start_ns, each.end_ns});
  for (auto& [library, threads] : out)
    for (auto& [thread, spells] : threads)
      unite(spells);
  return out;
}

}  // namespace

std::vector<std::uint32_t> pool_users(const model::Session& session, const PoolStacks& pools) {
  const model::CpuProfile& cpu = session.cpu;
  const auto spells = spells_of(cpu, pools.inside, cpu.interval_ns);
  std::vector<std::uint32_t> out(cpu.samples.size(), kNone);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const model::CpuSample& sample = cpu.samples[i];
    const model::CpuThread& worker = cpu.threads[sample.thread];
    if (worker.thread != kNone || sample.stack >= pools.work.size() ||
        pools.work[sample.stack] == 0)
      continue;
    std::uint32_t users = 0, user = kNone;
    const auto known = spells.find({worker.pid, pools.work[sample.stack]});
    if (known != spells.end()) {
      for (const auto& [thread, times] : known->second) {
        const auto next = std::upper_bound(
            times.begin(), times.end(), Spans::value_type{sample.at_ns, INT64_MAX});
        if (next == times.begin() || std::prev(next)->second < sample.at_ns)
          continue;
        users += thread == worker.creator ? 2 : 1;
        user = thread;
      }
    }
    out[i] = session_thread(cpu, users == 1 ? user : worker.creator);
  }
  return out;
}

std::vector<model::CpuWait> pool_waits(const model::Session& session, const PoolStacks& pools) {
  constexpr std::int64_t kLeast_ns = 2'000'000;
  const model::CpuProfile& cpu = session.cpu;
  std::map<Library, std::vector<std::pair<std::int64_t, std::uint32_t>>> work;  // when, by whom
  for (const model::CpuSample& each : cpu.samples)
    if (each.stack < pools.work.size() && pools.work[each.stack] != 0 &&
        cpu.threads[each.thread].thread == kNone)
      work[{cpu.threads[each.thread].pid, pools.work[each.stack]}].emplace_back(each.at_ns,
                                                                                each.thread);
  for (auto& [library, samples] : work)
    std::sort(samples.begin(), samples.end());
  std::vector<model::CpuWait> out;
  for (const auto& [library, threads] : spells_of(cpu, pools.waits, cpu.interval_ns / 2)) {
    const auto& samples = work[library];
    for (const auto& [thread, spells] : threads) {
      for (const auto& [start, end] : spells) {
        const auto after = std::upper_bound(samples.begin(), samples.end(), std::pair(end, kNone));
        if (end - start < kLeast_ns || after == samples.begin())
          continue;
        const auto& [at, worker] = *std::prev(after);
        if (at < end - std::max(2 * cpu.interval_ns, (end - start) / 4))
          continue;  // a worker may have been preempted
        model::CpuWait wait{start, end, thread};
        wait.holder = worker;
        out.push_back(wait);
      }
    }
  }
  return out;
}

std::vector<model::CpuWait> waits_of_children(const model::Session& session, std::uint32_t pid) {
  using model::WaitKind;
  // What happens: to first threads of children, and to the one that waits for them.
  struct Change {
    std::int64_t at_ns;
    int asked, working;  // of the waiter, and of children
    WaitKind kind;       // what one more child waits for, or one less
    int waiting;
  };
  const model::CpuProfile& cpu = session.cpu;
  std::vector<Change> changes;
  for (const model::Process& each : session.processes) {
    if (each.pid == pid)
      continue;
    changes.push_back({each.start_ns, 0, 1, WaitKind::kOther, 0});
    changes.push_back({each.end_ns, 0, -1, WaitKind::kOther, 0});
  }
  std::uint32_t waiter = kNone;
  for (const model::CpuWait& wait : cpu.waits) {
    const model::CpuThread& thread = cpu.threads[wait.thread];
    if (thread.tid != thread.pid)
      continue;
    const bool child = wait.kind == WaitKind::kChild;
    if (thread.pid == pid) {
      if (!child)
        continue;
      waiter = wait.thread;
      changes.push_back({wait.start_ns, 1, 0, wait.kind, 0});
      changes.push_back({wait.end_ns, -1, 0, wait.kind, 0});
    } else if (wait.kind != WaitKind::kPreempted && wait.kind != WaitKind::kGil) {
      changes.push_back({wait.start_ns, 0, -1, wait.kind, child ? 0 : 1});
      changes.push_back({wait.end_ns, 0, 1, wait.kind, child ? 0 : -1});
    }
  }
  std::vector<model::CpuWait> out;
  if (waiter == kNone)
    return out;
  std::ranges::stable_sort(changes, {}, &Change::at_ns);
  std::array<int, std::size(model::kWaitNames)> waiting{};
  int asked = 0, working = 0;
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    const Change& now = changes[i];
    asked += now.asked;
    working += now.working;
    waiting[static_cast<std::size_t>(now.kind)] += now.waiting;
    const std::int64_t until = changes[i + 1].at_ns;
    if (asked <= 0 || working > 0 || until <= now.at_ns)
      continue;
    WaitKind kind = WaitKind::kChild;  // where no child is known to wait
    for (const WaitKind one : {WaitKind::kSleep, WaitKind::kLock, WaitKind::kOther, WaitKind::kIo})
      if (kind == WaitKind::kChild && waiting[static_cast<std::size_t>(one)] > 0)
        kind = one;
    if (!out.empty() && out.back().end_ns == now.at_ns && out.back().kind == kind)
      out.back().end_ns = until;
    else
      out.push_back({.start_ns = now.at_ns, .end_ns = until, .thread = waiter, .kind = kind});
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
