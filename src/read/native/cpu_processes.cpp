#include "read/native/cpu_processes.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <unordered_map>

namespace rangescope::read::native {
namespace {

using model::kNone;

void merge(model::Process& process, const model::Process& life) {
  process.start_ns = std::min(process.start_ns, life.start_ns);
  process.end_ns = std::max(process.end_ns, life.end_ns);
  if (process.parent_pid == 0)
    process.parent_pid = life.parent_pid;
  if (process.start_ns == life.start_ns)
    process.name = life.name;
}

struct Lifetime {
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();

  void extend(std::int64_t from_ns, std::int64_t to_ns) {
    start_ns = std::min(start_ns, from_ns);
    end_ns = std::max(end_ns, to_ns);
  }
};

/// From the first to the last record of each thread.
std::vector<Lifetime> lifetimes(const model::CpuProfile& cpu) {
  std::vector<Lifetime> of_thread(cpu.threads.size());
  for (const model::CpuSample& sample : cpu.samples)
    of_thread[sample.thread].extend(sample.at_ns, sample.at_ns);
  for (const model::CpuCount& count : cpu.counts)
    of_thread[count.thread].extend(count.at_ns, count.at_ns);
  for (const model::CpuWait& wait : cpu.waits)
    of_thread[wait.thread].extend(wait.start_ns, wait.end_ns);
  return of_thread;
}

std::uint64_t thread_key(std::uint32_t pid, std::uint32_t tid) {
  return std::uint64_t{pid} << 32 | tid;
}

/// A process that was killed went on after its last record.
void extend_processes(model::Session& session) {
  for (const model::CpuSample& sample : session.cpu.samples) {
    const std::uint32_t thread = session.cpu.threads[sample.thread].thread;
    if (thread == kNone)
      continue;
    model::Process& process = session.processes[session.threads[thread].process];
    process.end_ns = std::max(process.end_ns, sample.at_ns);
    session.end_ns = std::max(session.end_ns, sample.at_ns);
  }
}

/// Those that are in `processes` already are extended.
void add_lives(std::vector<model::Process>& lives,
               std::int64_t session_end_ns,
               std::vector<model::Process>& processes) {
  std::ranges::stable_sort(lives, [](const model::Process& a, const model::Process& b) {
    return std::tie(a.start_ns, a.pid) < std::tie(b.start_ns, b.pid);
  });
  std::unordered_map<std::uint32_t, std::size_t> index_of;  // by pid: the latest process
  for (std::size_t p = 0; p < processes.size(); ++p)
    index_of.try_emplace(processes[p].pid, p);
  for (model::Process& life : lives) {
    // A process is seen to end a little after it did.
    life.end_ns = std::max(life.start_ns, std::min(life.end_ns, session_end_ns));
    const auto [entry, is_new] = index_of.try_emplace(life.pid, processes.size());
    const bool is_same_process = !is_new && life.start_ns <= processes[entry->second].end_ns;
    if (is_same_process) {
      merge(processes[entry->second], life);
      continue;
    }
    entry->second = processes.size();  // a pid may have been used again
    processes.push_back(life);
  }
}

}  // namespace

void add_processes(std::vector<model::Process>& lives, model::Session& session) {
  add_lives(lives, session.end_ns, session.processes);
}

std::vector<model::Process> other_processes(std::vector<model::Process>& lives,
                                            const model::Session& session) {
  std::vector<model::Process> processes = session.processes;
  add_lives(lives, session.end_ns, processes);
  processes.erase(processes.begin(), processes.begin() + std::ssize(session.processes));
  return processes;
}

void name_processes(const std::vector<model::Process>& lives, model::Session& session) {
  std::unordered_map<std::uint32_t, model::Process*> unnamed;
  for (model::Process& process : session.processes)
    if (process.name == 0)
      unnamed.emplace(process.pid, &process);
  for (const model::Process& life : lives) {
    const auto entry = unnamed.find(life.pid);
    if (entry == unnamed.end() || entry->second->name != 0)
      continue;
    entry->second->name = life.name;
    entry->second->parent_pid = life.parent_pid;
  }
}

void link_cpu_threads(model::Session& session) {
  const std::vector<Lifetime> lives = lifetimes(session.cpu);
  std::unordered_multimap<std::uint64_t, std::uint32_t> session_threads;
  for (std::uint32_t t = 0; t < session.threads.size(); ++t) {
    const model::Thread& thread = session.threads[t];
    if (thread.process >= session.processes.size())
      continue;
    const std::uint32_t pid = session.processes[thread.process].pid;
    session_threads.emplace(thread_key(pid, thread.tid), t);
  }
  for (std::uint32_t t = 0; t < session.cpu.threads.size(); ++t) {
    model::CpuThread& thread = session.cpu.threads[t];
    std::int64_t longest_common = -1;
    const auto [first, last] = session_threads.equal_range(thread_key(thread.pid, thread.tid));
    for (auto candidate = first; candidate != last; ++candidate) {
      const std::uint32_t process_index = session.threads[candidate->second].process;
      const model::Process& process = session.processes[process_index];
      // Halves, because times of nothing may be the ends of the number's range.
      const std::int64_t common = std::min(lives[t].end_ns, process.end_ns) / 2 -
                                  std::max(lives[t].start_ns, process.start_ns) / 2;
      if (common < 0 || common <= longest_common)
        continue;
      longest_common = common;
      thread.thread = candidate->second;
    }
  }
  extend_processes(session);
}

}  // namespace rangescope::read::native
