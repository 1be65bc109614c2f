#include "sample/cpu/polls.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "sample/blocks.hpp"
#include "sample/cpu/target.hpp"

namespace rangescope::sample::cpu {
namespace {

constexpr std::int64_t kLook_ns = 40'000'000;  // for new processes and threads
/// Mappings are read again and again, ever less often: some programs load Python late.
constexpr std::int64_t kFirstMapsPause_ns = 100'000'000, kMostMapsPause_ns = 30'000'000'000;
/// The time of a thread that runs is counted up at the kernel's ticks only.
constexpr std::int64_t kTick_ns = 10'000'000;
/// A thread that ran for so many intervals, and slept at each turn, is sampled without its Python
/// functions: those that ran are not on its stack any more.
constexpr std::int64_t kMostOwed = 4;

struct Times {
  std::int64_t ran_ns = 0, ready_ns = 0;
};

bool read_times(std::uint32_t pid, std::uint32_t tid, Times& out) {
  char path[64], text[96];
  std::snprintf(path, sizeof path, "/proc/%u/task/%u/schedstat", pid, tid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (got <= 0)
    return false;
  text[got] = '\0';
  return std::sscanf(text, "%" SCNd64 " %" SCNd64, &out.ran_ns, &out.ready_ns) == 2;
}

void sample_of(Sink& sink, const Task& task, std::int64_t at_ns) {
  Sample sample;
  sample.pid = task.pid;
  sample.tid = task.tid;
  sample.at_ns = at_ns;
  sink.sample(sample);
}

}  // namespace

Polls::Polls(std::uint32_t root, bool with_root, std::int64_t now_ns)
    : root_(root), with_root_(with_root), previous_turn_ns_(now_ns) {}

void Polls::look(Sink& sink, std::int64_t now_ns) {
  looked_ns_ = now_ns;
  for (const Member& member : members_of(root_, true)) {
    if (member.pid == root_ && !with_root_)
      continue;
    const Task task{member.pid, member.pid, member.parent_pid, member.parent_pid};
    const std::string name = name_of_thread(member.pid, member.pid);
    if (name.empty())
      continue;
    const bool first = processes_.empty();
    const auto [entry, added] = processes_.try_emplace(member.pid);
    Process& process = entry->second;
    if (added && !first)
      sink.forked(task, now_ns);
    if (added || name != process.name) {
      process = {name};
      sink.named(task, name, true);
    }
    if (now_ns >= process.maps_at_ns) {
      maps_of(member.pid, [&](const Mapped& mapped) { sink.mapped(mapped); });
      process.maps_pause_ns =
          std::clamp(2 * process.maps_pause_ns, kFirstMapsPause_ns, kMostMapsPause_ns);
      process.maps_at_ns = now_ns + process.maps_pause_ns;
    }
    for (const std::uint32_t tid : threads_of(member.pid)) {
      const auto [thread, came] = threads_.try_emplace(tid);
      if (!came)
        continue;
      thread->second.pid = member.pid;
      if (tid != member.pid) {
        sink.forked({member.pid, tid, member.pid, member.pid}, now_ns);
        sink.named({member.pid, tid}, name_of_thread(member.pid, tid), false);
      }
      Times times;
      if (!read_times(member.pid, tid, times))
        continue;
      // A thread found now may have started right after the previous turn: count its time from
      // there.
      const std::int64_t passed = now_ns - previous_turn_ns_;
      thread->second.reported_until_ns = previous_turn_ns_;
      thread->second.ran_ns = std::max<std::int64_t>(0, times.ran_ns - passed);
      thread->second.ready_ns = std::max<std::int64_t>(0, times.ready_ns - passed);
    }
  }
}

// Between two counts the order of what a thread did is not known: one that sleeps now ran first,
// one that runs slept first. A thread that is ready is counted when it gets a core: nothing is
// reported of it until then, for it may run too.
bool Polls::follow(Sink& sink, std::uint32_t tid, Thread& thread, std::int64_t now_ns) {
  const Task task{thread.pid, tid};
  Times times;
  if (!read_times(thread.pid, tid, times))
    return false;
  const std::int64_t ran = times.ran_ns - thread.ran_ns;
  const std::int64_t ready = times.ready_ns - thread.ready_ns;
  const bool counted = ran != 0 || ready != 0;
  if (thread.out && !counted) {
    thread.reported_until_ns = now_ns;
    return true;
  }
  const bool asleep = sleeps(thread.pid, tid);
  if (!asleep && !counted)
    return true;
  thread.ran_ns = times.ran_ns;
  thread.ready_ns = times.ready_ns;
  const std::int64_t since = thread.reported_until_ns;
  const std::int64_t passed = now_ns - since;
  thread.reported_until_ns = now_ns;
  thread.unreported_idle_ns += passed - ran - ready;
  thread.unreported_ready_ns += ready;
  thread.owed_ns += ran;
  // The kernel counts the time of a thread that runs at its ticks: less than one is no idleness.
  const std::int64_t uncertain = asleep ? 0 : kTick_ns;
  const std::int64_t idle =
      std::clamp<std::int64_t>(thread.unreported_idle_ns - uncertain, 0, passed);
  const std::int64_t waits = std::min(thread.unreported_ready_ns, passed - idle);
  thread.unreported_idle_ns -= idle;
  thread.unreported_ready_ns -= waits;
  const std::int64_t wakes = asleep ? since : since + idle;
  if (thread.out) {
    sink.switched(task, wakes, false, false);
  } else if (!asleep && idle > 0) {
    sink.switched(task, since, true, false);
    sink.switched(task, wakes, false, false);
  }
  if (waits > 0) {
    sink.switched(task, wakes, true, true);
    sink.switched(task, wakes + waits, false, false);
  }
  if (!asleep || thread.owed_ns >= kMostOwed * kInterval_ns) {
    for (; thread.owed_ns >= kInterval_ns; thread.owed_ns -= kInterval_ns)
      sample_of(sink, task, asleep ? since : sample::now_ns());
  }
  thread.out = asleep;
  if (asleep)
    sink.switched(task, now_ns - idle, true, false);
  return true;
}

/// Of a thread that has ended since the turn before, and did not sleep then. It may have run on for
/// a tick, where it had run; on a busy machine the time until we look is longer, and that is
/// waiting for a core.
void Polls::stops(Sink& sink, std::uint32_t tid, const Thread& thread, std::int64_t now_ns) const {
  const bool was_ready =
      thread.reported_until_ns < previous_turn_ns_;  // and not counted: it waited all the time
  std::int64_t ran_until_ns = thread.reported_until_ns;
  if (!was_ready)
    ran_until_ns += kTick_ns;
  if (ran_until_ns < now_ns)
    sink.switched({thread.pid, tid}, ran_until_ns, true, true);
}

void Polls::turn(Sink& sink, std::int64_t now_ns) {
  if (now_ns - looked_ns_ >= kLook_ns || threads_.empty())
    look(sink, now_ns);
  for (auto entry = threads_.begin(); entry != threads_.end();) {
    const auto next = std::next(entry);
    const std::uint32_t tid = entry->first;
    Thread& thread = entry->second;
    if (!follow(sink, tid, thread, now_ns)) {
      if (2 * thread.owed_ns >= kInterval_ns)
        sample_of(sink, {thread.pid, tid}, previous_turn_ns_);
      if (!thread.out)
        stops(sink, tid, thread, now_ns);
      sink.ended({thread.pid, tid}, now_ns);
      if (tid == thread.pid)
        processes_.erase(tid);
      threads_.erase(entry);
    }
    entry = next;
  }
  previous_turn_ns_ = now_ns;
}

}  // namespace rangescope::sample::cpu
