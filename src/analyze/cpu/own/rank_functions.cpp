#include "analyze/cpu/own/rank_functions.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/cpu/own/user_code.hpp"

namespace rangescope::analyze {
namespace {

using model::kNone;

bool is_call_of_communication(std::string_view function) {
  constexpr std::string_view kPrefixes[] = {"MPI_", "PMPI_", "nccl"};
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return function.starts_with(prefix); });
}

class SampledFunctions {
 public:
  explicit SampledFunctions(const model::Session& session)
      : session_(session), code_(user_code(session)) {}

  /// The program's own function that a sample's time belongs to; kNone where there is none, and in
  /// calls in which ranks wait for each other.
  [[nodiscard]] std::uint32_t function_of(std::uint32_t stack) {
    if (stack >= session_.cpu.stacks.size())
      return kNone;
    const auto [entry, is_new] = by_stack_.try_emplace(stack, kNone);
    if (is_new && !is_in_communication(stack))
      entry->second = code_.innermost[stack];
    return entry->second;
  }
  [[nodiscard]] model::CodePlace place_of(std::uint32_t frame) const {
    return code_place(session_, code_, frame);
  }

 private:
  [[nodiscard]] bool is_in_communication(std::uint32_t stack) const {
    const model::CpuProfile& cpu = session_.cpu;
    for (std::uint32_t call = stack; call < cpu.stacks.size(); call = cpu.stacks[call].parent) {
      const model::CpuFrame& frame = cpu.frames[cpu.stacks[call].frame];
      if (is_call_of_communication(session_.strings.view(frame.name)))
        return true;
    }
    return false;
  }

  const model::Session& session_;
  const UserCode code_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_stack_;
};

/// By thread of the CPU's profile: index into Report::ranks, or kNone.
std::vector<std::uint32_t> ranks_of_threads(const model::Session& session,
                                            const model::Report& report) {
  std::map<std::uint32_t, std::uint32_t> index_of_rank;
  for (const model::Rank& rank : report.ranks)
    index_of_rank.emplace(rank.rank, static_cast<std::uint32_t>(&rank - report.ranks.data()));
  const auto rank_of_process = [&](std::uint32_t process) {
    if (process >= session.processes.size())
      return kNone;
    const auto index = index_of_rank.find(session.processes[process].rank);
    return index == index_of_rank.end() ? kNone : index->second;
  };
  // Ids of processes repeat on other hosts: one that two processes have says nothing.
  std::map<std::uint32_t, std::uint32_t> process_of_id;
  for (std::uint32_t process = 0; process < session.processes.size(); ++process) {
    const auto [entry, is_new] = process_of_id.emplace(session.processes[process].pid, process);
    if (!is_new)
      entry->second = kNone;
  }
  std::vector<std::uint32_t> ranks;
  for (const model::CpuThread& thread : session.cpu.threads) {
    std::uint32_t process = kNone;
    if (thread.thread < session.threads.size())
      process = session.threads[thread.thread].process;
    else if (const auto entry = process_of_id.find(thread.pid); entry != process_of_id.end())
      process = entry->second;
    ranks.push_back(rank_of_process(process));
  }
  return ranks;
}

struct FunctionTime {
  double cpu_ns = 0, waits_for_cpu_ns = 0;
};
using TimeByFunction = std::map<std::uint32_t, FunctionTime>;

/// A wait for a core has no call chain: it is the function's that the thread ran in before it.
void add_waits_for_cpu(const model::CpuProfile& cpu,
                       const std::vector<std::uint32_t>& rank_of_thread,
                       SampledFunctions& functions,
                       std::vector<TimeByFunction>& times) {
  auto next_sample = cpu.samples.begin();
  for (const model::CpuWait& wait : cpu.waits) {
    const std::uint32_t rank = rank_of_thread[wait.thread];
    if (rank == kNone || wait.kind != model::WaitKind::kPreempted)
      continue;
    const auto begins_later = [&](const model::CpuSample& sample) {
      return std::pair(sample.thread, sample.at_ns) > std::pair(wait.thread, wait.start_ns);
    };
    next_sample = std::find_if(next_sample, cpu.samples.end(), begins_later);
    if (next_sample == cpu.samples.begin())
      continue;
    const model::CpuSample& before = *std::prev(next_sample);
    const std::uint32_t function =
        before.thread == wait.thread ? functions.function_of(before.stack) : kNone;
    const double waited_ns = wait.weight * static_cast<double>(wait.end_ns - wait.start_ns);
    if (function != kNone)
      times[rank][function].waits_for_cpu_ns += waited_ns;
  }
}

}  // namespace

void add_rank_functions(const model::Session& session, model::Report& report) {
  const model::CpuProfile& cpu = session.cpu;
  if (cpu.interval_ns <= 0 || cpu.samples.empty() || report.ranks.size() < 2)
    return;
  SampledFunctions functions(session);
  const std::vector<std::uint32_t> rank_of_thread = ranks_of_threads(session, report);
  std::vector<TimeByFunction> times(report.ranks.size());
  for (const model::CpuSample& sample : cpu.samples) {
    const std::uint32_t rank = rank_of_thread[sample.thread];
    const std::uint32_t function = rank == kNone ? kNone : functions.function_of(sample.stack);
    if (function != kNone)
      times[rank][function].cpu_ns += static_cast<double>(cpu.interval_ns);
  }
  add_waits_for_cpu(cpu, rank_of_thread, functions, times);
  for (std::size_t rank = 0; rank < times.size(); ++rank)
    for (const auto& [frame, time] : times[rank])
      report.ranks[rank].functions.push_back(
          {functions.place_of(frame), time.cpu_ns, time.waits_for_cpu_ns});
}

}  // namespace rangescope::analyze
