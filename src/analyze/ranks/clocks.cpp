#include "analyze/ranks/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/statistics/spread.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr std::size_t kFewestOfMedian = 3;  // calls that a median rests on
constexpr std::size_t kStretch =
    64;  // calls of a stretch: jitter falls to an eighth, drift of 50 ppm stays straight
constexpr std::size_t kFewSpread = 2;  // stretches, where there are fewer calls: a line needs two

struct Difference {
  double at_ns, ns;  ///< reference's end less this host's, at this host's time
};

std::size_t count_of_stretches(std::size_t calls) {
  if (calls >= kStretch * kFewSpread)
    return calls / kStretch;
  return calls >= 4 * kFewestOfMedian ? kFewSpread : 1;
}

/// Medians of stretches: a line through all points would follow the few calls that one rank left
/// late.
std::vector<HostClock::Knot> knots_of(std::vector<Difference> differences) {
  std::ranges::sort(differences, {}, &Difference::at_ns);
  const std::size_t stretches = count_of_stretches(differences.size());
  std::vector<HostClock::Knot> knots;
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t first = differences.size() * stretch / stretches;
    const std::size_t last = differences.size() * (stretch + 1) / stretches;
    std::vector<double> times_ns, offsets_ns;
    for (std::size_t i = first; i < last; ++i) {
      times_ns.push_back(differences[i].at_ns);
      offsets_ns.push_back(differences[i].ns);
    }
    knots.push_back({upper_median(times_ns), upper_median(offsets_ns)});
  }
  return knots;
}

}  // namespace

double HostClock::add_at(double at_ns) const {
  if (knots.empty())
    return 0;
  if (knots.size() == 1)
    return knots.front().add_ns;
  std::size_t i = 1;
  while (i + 1 < knots.size() && knots[i].at_ns < at_ns)
    ++i;
  const Knot& a = knots[i - 1];
  const Knot& b = knots[i];
  const double slope = b.at_ns > a.at_ns ? (b.add_ns - a.add_ns) / (b.at_ns - a.at_ns) : 0;
  return a.add_ns + slope * (at_ns - a.at_ns);
}

namespace {

/// The hosts of processes with a rank, in the order of their lowest one.
struct RankHosts {
  std::vector<HostClock> clocks;
  std::vector<std::uint32_t> clock_of_process;  ///< index into `clocks`, kNone without a rank
};

RankHosts hosts_of_ranks(const Session& session) {
  std::vector<std::uint32_t> processes(session.processes.size());
  for (std::uint32_t process = 0; process < processes.size(); ++process)
    processes[process] = process;
  std::ranges::stable_sort(
      processes, {}, [&](std::uint32_t process) { return session.processes[process].rank; });
  RankHosts hosts;
  hosts.clock_of_process.assign(processes.size(), kNone);
  std::map<model::StringId, std::uint32_t> clock_of_host;
  for (const std::uint32_t index : processes) {
    const model::Process& process = session.processes[index];
    if (process.host == 0 || process.rank == kNone)
      continue;
    const auto next = static_cast<std::uint32_t>(hosts.clocks.size());
    const auto [entry, is_new] = clock_of_host.try_emplace(process.host, next);
    if (is_new)
      hosts.clocks.push_back({.host = std::string(session.strings.view(process.host))});
    hosts.clocks[entry->second].processes.push_back(index);
    hosts.clock_of_process[index] = entry->second;
  }
  return hosts;
}

/// When a host left a call: of several ranks the middle one.
struct HostEnd {
  std::uint32_t host;  ///< index into RankHosts::clocks
  double end_ns;
};

/// Of each joined call that several hosts made.
std::vector<std::vector<HostEnd>> ends_of_calls(const CollectiveCalls& found,
                                                const RankHosts& hosts) {
  std::vector<std::vector<HostEnd>> calls;
  for (const JoinedCall& joined : found.joined) {
    if (found.calls[joined.calls.front()].later)
      continue;  // each rank leaves its wait when it likes
    std::map<std::uint32_t, std::vector<double>> ends_of_host;
    for (const std::uint32_t index : joined.calls) {
      const CollectiveCall& call = found.calls[index];
      const std::uint32_t host = hosts.clock_of_process[call.process];
      if (host != kNone)
        ends_of_host[host].push_back(static_cast<double>(call.end_ns));
    }
    if (ends_of_host.size() < 2)
      continue;
    calls.emplace_back();
    for (auto& [host, ends_ns] : ends_of_host)
      calls.back().push_back({host, upper_median(std::move(ends_ns))});
  }
  return calls;
}

/// Of a host to those that are aligned, in the calls that it shares with them.
std::vector<Difference> differences_of(std::uint32_t host,
                                       const std::vector<std::vector<HostEnd>>& calls,
                                       const std::vector<bool>& is_aligned,
                                       const std::vector<HostClock>& clocks) {
  std::vector<Difference> differences;
  for (const std::vector<HostEnd>& ends : calls) {
    const auto end = std::ranges::find(ends, host, &HostEnd::host);
    const auto reference =
        std::ranges::find_if(ends, [&](const HostEnd& other) { return is_aligned[other.host]; });
    if (end == ends.end() || reference == ends.end())
      continue;
    const double reference_ns =
        reference->end_ns + clocks[reference->host].add_at(reference->end_ns);
    differences.push_back({end->end_ns, reference_ns - end->end_ns});
  }
  return differences;
}

void align_clock(const std::vector<Difference>& differences, HostClock& clock) {
  clock.knots = knots_of(differences);
  clock.calls = differences.size();
  std::vector<double> residuals_ns;
  for (const Difference& difference : differences)
    residuals_ns.push_back(std::abs(difference.ns - clock.add_at(difference.at_ns)));
  const std::size_t p95 = (residuals_ns.size() * 95 + 99) / 100 - 1;
  std::nth_element(residuals_ns.begin(),
                   residuals_ns.begin() + static_cast<std::ptrdiff_t>(p95),
                   residuals_ns.end());
  clock.residual_ns = residuals_ns[p95];
}

}  // namespace

std::vector<HostClock> find_clocks(const Session& session, const CollectiveCalls& found) {
  RankHosts hosts = hosts_of_ranks(session);
  std::vector<HostClock>& clocks = hosts.clocks;
  if (clocks.size() < 2)
    return {};
  const std::vector<std::vector<HostEnd>> calls = ends_of_calls(found, hosts);
  std::vector<bool> is_aligned(clocks.size(), false);
  is_aligned[0] = true;
  // In each round those that share calls with hosts of earlier rounds.
  for (bool is_any_new = true; is_any_new;) {
    is_any_new = false;
    std::vector<bool> is_aligned_now = is_aligned;
    for (std::uint32_t host = 1; host < clocks.size(); ++host) {
      if (is_aligned[host])
        continue;
      const std::vector<Difference> differences = differences_of(host, calls, is_aligned, clocks);
      if (differences.size() < kFewestOfMedian)
        continue;
      align_clock(differences, clocks[host]);
      is_aligned_now[host] = true;
      is_any_new = true;
    }
    is_aligned = is_aligned_now;
  }
  return clocks;
}

namespace {

/// Moves what was recorded from the clock of each host onto that of the reference.
class ClockMover {
 public:
  ClockMover(Session& session, const std::vector<HostClock>& clocks)
      : session_(session), clock_of_process_(session.processes.size(), nullptr) {
    for (const HostClock& clock : clocks)
      for (const std::uint32_t process : clock.processes)
        if (!clock.knots.empty())
          clock_of_process_[process] = &clock;
  }

  void move_calls(CollectiveCalls& found) const {
    for (auto* calls : {&found.calls, &found.standing, &found.messaging})
      for (CollectiveCall& call : *calls)
        move_both(call.process, call);
  }

  void move_session() const {
    move_program();
    move_gpu_work();
    move_allocators();
    for (model::SampleStream& samples : session_.samples)
      move_samples(samples);
    move_cpu();
    session_.begin_ns = kOpen;
    session_.end_ns = 0;
    for (const model::Process& process : session_.processes) {
      session_.begin_ns = std::min(session_.begin_ns, process.start_ns);
      session_.end_ns = std::max(session_.end_ns, process.end_ns);
    }
  }

 private:
  void move(std::uint32_t process, std::int64_t& time_ns) const {
    if (process >= clock_of_process_.size() || time_ns == kOpen)
      return;
    const HostClock* clock = clock_of_process_[process];
    if (clock == nullptr)
      return;
    time_ns += static_cast<std::int64_t>(std::llround(clock->add_at(static_cast<double>(time_ns))));
  }

  void move_both(std::uint32_t process, auto& event) const {
    move(process, event.start_ns);
    move(process, event.end_ns);
  }

  [[nodiscard]] std::uint32_t process_of_thread(std::uint32_t thread) const {
    return thread < session_.threads.size() ? session_.threads[thread].process : kNone;
  }

  [[nodiscard]] std::uint32_t process_of_stream(std::uint32_t stream) const {
    return stream < session_.streams.size() ? session_.streams[stream].process : kNone;
  }

  /// Processes, and what their threads did.
  void move_program() const {
    for (std::uint32_t process = 0; process < session_.processes.size(); ++process)
      move_both(process, session_.processes[process]);
    for (model::Range& range : session_.ranges) {
      const std::uint32_t end_thread = range.end_thread == kNone ? range.thread : range.end_thread;
      move(process_of_thread(range.thread), range.start_ns);
      move(process_of_thread(end_thread), range.end_ns);
    }
    for (model::OpenSpan& span : session_.open_spans)
      move_both(process_of_thread(span.thread), span);
    for (model::Mark& mark : session_.marks)
      move(process_of_thread(mark.thread), mark.at_ns);
    for (model::Launch& launch : session_.launches)
      move_both(process_of_thread(launch.thread), launch);
    for (model::MemoryEvent& event : session_.memory_events)
      move(event.process, event.at_ns);
  }

  void move_gpu_work() const {
    model::for_each_gpu_work(session_, [&](auto& events) {
      for (auto& event : events)
        move_both(process_of_stream(event.stream), event);
    });
    for (model::Synchronization& wait : session_.synchronizations) {
      const bool has_call = wait.launch < session_.launches.size();
      const std::uint32_t process = has_call
                                        ? process_of_thread(session_.launches[wait.launch].thread)
                                        : process_of_stream(wait.stream);
      move_both(process, wait);
    }
    for (model::GpuPause& pause : session_.gpu_pauses)
      move_both(pause.process, pause);
  }

  void move_allocators() const {
    model::Allocators& recorded = session_.allocators;
    const auto process_of = [&](std::uint32_t allocator) {
      return allocator < recorded.allocators.size() ? recorded.allocators[allocator].process
                                                    : kNone;
    };
    for (model::Allocator& allocator : recorded.allocators) {
      move(allocator.process, allocator.first_ns);
      move(allocator.process, allocator.last_ns);
    }
    for (model::Allocation& allocation : recorded.allocations)
      move_both(process_of(allocation.allocator), allocation);
    for (model::ReservedMemory& reserved : recorded.reserved)
      move(process_of(reserved.allocator), reserved.at_ns);
    for (model::FailedAllocation& failure : recorded.failures)
      move(process_of(failure.allocator), failure.at_ns);
  }

  void move_samples(model::SampleStream& samples) const {
    if (samples.other_clock)
      return;  // joined to the GPU work of its device, which moved
    const std::uint32_t process =
        samples.device < session_.devices.size() ? session_.devices[samples.device].process : kNone;
    for (std::int64_t& start_ns : samples.start_ns)
      move(process, start_ns);
    for (std::int64_t& end_ns : samples.end_ns)
      move(process, end_ns);
  }

  /// A thread without ranges has the clock of the recording that it is in.
  void move_cpu() const {
    model::CpuProfile& cpu = session_.cpu;
    std::vector<std::uint32_t> processes;
    for (const model::CpuThread& thread : cpu.threads) {
      const bool has_ranges = thread.thread < session_.threads.size();
      processes.push_back(has_ranges ? session_.threads[thread.thread].process
                                     : thread.recorded_with);
    }
    for (model::CpuSample& sample : cpu.samples)
      move(processes[sample.thread], sample.at_ns);
    for (model::CpuCount& count : cpu.counts)
      move(processes[count.thread], count.at_ns);
    for (model::CpuWait& wait : cpu.waits)
      move_both(processes[wait.thread], wait);
  }

  Session& session_;
  std::vector<const HostClock*> clock_of_process_;  ///< null where it stays
};

}  // namespace

std::vector<HostClock> align_hosts(Session& session, CollectiveCalls& found) {
  std::vector<HostClock> clocks = find_clocks(session, found);
  if (clocks.empty())
    return clocks;
  const ClockMover mover(session, clocks);
  mover.move_calls(found);
  mover.move_session();
  return clocks;
}

void describe_clocks(const std::vector<HostClock>& clocks,
                     const Session& session,
                     model::Report& report) {
  double residual_ns = 0;
  std::size_t aligned = 0;
  std::vector<std::string> not_aligned;
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    const HostClock& clock = clocks[i];
    if (clock.knots.empty()) {
      not_aligned.push_back(clock.host);
      continue;
    }
    ++aligned;
    residual_ns = std::max(residual_ns, clock.residual_ns);
    for (const std::uint32_t process : clock.processes)
      for (model::Rank& rank : report.ranks)
        if (rank.rank == session.processes[process].rank)
          rank.clock_offset_ns = clock.knots[clock.knots.size() / 2].add_ns;
  }
  if (aligned > 0)
    report.notes.push_back("clocks of " + base::counted(aligned + 1, "host") +
                           " aligned by the ends of collectives; 95 % of the ends agree within " +
                           base::format_ns(residual_ns));
  if (!not_aligned.empty())
    report.losses.push_back(
        {"clocks_not_aligned",
         not_aligned.size(),
         "aligned by UTC only, without joined collectives: " + base::join(not_aligned, ", ")});
}

}  // namespace rangescope::analyze
