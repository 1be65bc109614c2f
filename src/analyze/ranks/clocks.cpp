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

/// Medians of stretches: a line through all points would follow the few calls that one rank left
/// late.
std::vector<HostClock::Knot> knots_of(std::vector<Difference> list) {
  std::ranges::sort(list, {}, &Difference::at_ns);
  const std::size_t stretches = list.size() >= kStretch * kFewSpread ? list.size() / kStretch
                                : list.size() >= 4 * kFewestOfMedian ? kFewSpread
                                                                     : 1;
  std::vector<HostClock::Knot> knots;
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t first = list.size() * s / stretches, last = list.size() * (s + 1) / stretches;
    std::vector<double> at, ns;
    for (std::size_t i = first; i < last; ++i) {
      at.push_back(list[i].at_ns);
      ns.push_back(list[i].ns);
    }
    knots.push_back({upper_median(at), upper_median(ns)});
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
  const Knot &a = knots[i - 1], &b = knots[i];
  const double slope = b.at_ns > a.at_ns ? (b.add_ns - a.add_ns) / (b.at_ns - a.at_ns) : 0;
  return a.add_ns + slope * (at_ns - a.at_ns);
}

std::vector<HostClock> find_clocks(const Session& session, const CollectiveCalls& found) {
  std::map<model::StringId, std::uint32_t> hosts;
  std::vector<HostClock> clocks;
  std::vector<std::uint32_t> order(session.processes.size()),
      host_of(session.processes.size(), kNone);
  for (std::uint32_t p = 0; p < order.size(); ++p)
    order[p] = p;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return session.processes[a].rank < session.processes[b].rank;
  });
  for (const std::uint32_t p : order) {
    const model::Process& process = session.processes[p];
    if (process.host == 0 || process.rank == kNone)
      continue;
    const auto [at, added] =
        hosts.try_emplace(process.host, static_cast<std::uint32_t>(clocks.size()));
    if (added)
      clocks.push_back({.host = std::string(session.strings.view(process.host))});
    clocks[at->second].processes.push_back(p);
    host_of[p] = at->second;
  }
  if (clocks.size() < 2)
    return {};

  // Ends of each call by host: of several ranks the middle one.
  struct Ends {
    std::uint32_t host;
    double end_ns;
  };
  std::vector<std::vector<Ends>> ends;
  for (const JoinedCall& joined : found.joined) {
    if (found.calls[joined.calls.front()].later)
      continue;  // each rank leaves its wait when it likes
    std::map<std::uint32_t, std::vector<double>> of_host;
    for (const std::uint32_t c : joined.calls) {
      const CollectiveCall& call = found.calls[c];
      if (host_of[call.process] != kNone)
        of_host[host_of[call.process]].push_back(static_cast<double>(call.end_ns));
    }
    if (of_host.size() < 2)
      continue;
    ends.emplace_back();
    for (auto& [host, list] : of_host)
      ends.back().push_back({host, upper_median(std::move(list))});
  }
  std::vector<char> known(clocks.size(), 0);
  known[0] = 1;
  for (bool more = true; more;) {
    more = false;
    for (std::uint32_t host = 1; host < clocks.size(); ++host) {
      if (known[host] != 0)
        continue;
      std::vector<Difference> list;
      for (const auto& call : ends) {
        const auto mine =
            std::find_if(call.begin(), call.end(), [&](const Ends& e) { return e.host == host; });
        const auto theirs = std::find_if(
            call.begin(), call.end(), [&](const Ends& e) { return known[e.host] == 1; });
        if (mine == call.end() || theirs == call.end())
          continue;
        const double there = theirs->end_ns + clocks[theirs->host].add_at(theirs->end_ns);
        list.push_back({mine->end_ns, there - mine->end_ns});
      }
      if (list.size() < kFewestOfMedian)
        continue;
      HostClock& clock = clocks[host];
      clock.knots = knots_of(list);
      clock.calls = list.size();
      std::vector<double> left;
      for (const Difference& one : list)
        left.push_back(std::abs(one.ns - clock.add_at(one.at_ns)));
      const std::size_t p95 = (left.size() * 95 + 99) / 100 - 1;
      std::nth_element(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(p95), left.end());
      clock.residual_ns = left[p95];
      known[host] = 2;  // others may go through it in the next round
      more = true;
    }
    for (char& state : known)
      state = state != 0 ? 1 : 0;
  }
  return clocks;
}

namespace {

/// `move(process, time)` of all times that allocators have.
template <class Move>
void move_allocators(model::Allocators& recorded, const Move& move) {
  const auto process_of = [&](std::uint32_t allocator) {
    return allocator < recorded.allocators.size() ? recorded.allocators[allocator].process : kNone;
  };
  for (model::Allocator& allocator : recorded.allocators) {
    move(allocator.process, allocator.first_ns);
    move(allocator.process, allocator.last_ns);
  }
  for (model::Allocation& allocation : recorded.allocations) {
    move(process_of(allocation.allocator), allocation.start_ns);
    move(process_of(allocation.allocator), allocation.end_ns);
  }
  const auto move_event = [&](auto& event) { move(process_of(event.allocator), event.at_ns); };
  for (model::ReservedMemory& reserved : recorded.reserved)
    move_event(reserved);
  for (model::FailedAllocation& failure : recorded.failures)
    move_event(failure);
}

/// `move(process, time)` of all CPU samples, waits and counts. A thread without ranges has the
/// clock of the recording that it is in.
template <class Move>
void move_cpu(Session& session, const Move& move) {
  model::CpuProfile& cpu = session.cpu;
  std::vector<std::uint32_t> process_of;
  for (const model::CpuThread& thread : cpu.threads)
    process_of.push_back(thread.thread < session.threads.size()
                             ? session.threads[thread.thread].process
                             : thread.recorded_with);
  for (model::CpuSample& sample : cpu.samples)
    move(process_of[sample.thread], sample.at_ns);
  for (model::CpuCount& count : cpu.counts)
    move(process_of[count.thread], count.at_ns);
  for (model::CpuWait& wait : cpu.waits) {
    move(process_of[wait.thread], wait.start_ns);
    move(process_of[wait.thread], wait.end_ns);
  }
}

}  // namespace

std::vector<HostClock> align_hosts(Session& session, CollectiveCalls& found) {
  std::vector<HostClock> clocks = find_clocks(session, found);
  if (clocks.empty())
    return clocks;
  std::vector<const HostClock*> of_process(session.processes.size(), nullptr);
  for (const HostClock& clock : clocks)
    for (const std::uint32_t process : clock.processes)
      if (!clock.knots.empty())
        of_process[process] = &clock;
  const auto move = [&](std::uint32_t process, std::int64_t& at) {
    if (process >= of_process.size() || of_process[process] == nullptr || at == kOpen)
      return;
    at += static_cast<std::int64_t>(
        std::llround(of_process[process]->add_at(static_cast<double>(at))));
  };
  const auto both = [&](std::uint32_t process, auto& event) {
    move(process, event.start_ns);
    move(process, event.end_ns);
  };
  for (auto* list : {&found.calls, &found.standing, &found.messaging})
    for (CollectiveCall& call : *list)
      both(call.process, call);
  const auto of_thread = [&](std::uint32_t thread) {
    return thread < session.threads.size() ? session.threads[thread].process : kNone;
  };
  const auto of_stream = [&](std::uint32_t stream) {
    return stream < session.streams.size() ? session.streams[stream].process : kNone;
  };
  for (std::uint32_t p = 0; p < session.processes.size(); ++p)
    both(p, session.processes[p]);
  for (model::Range& range : session.ranges) {
    move(of_thread(range.thread), range.start_ns);
    move(of_thread(range.end_thread == kNone ? range.thread : range.end_thread), range.end_ns);
  }
  for (model::OpenSpan& span : session.open_spans)
    both(of_thread(span.thread), span);
  for (model::Mark& mark : session.marks)
    move(of_thread(mark.thread), mark.at_ns);
  for (model::Launch& launch : session.launches)
    both(of_thread(launch.thread), launch);
  for (model::MemoryEvent& event : session.memory_events)
    move(event.process, event.at_ns);
  move_allocators(session.allocators, move);
  model::for_each_gpu_work(session, [&](auto& events) {
    for (auto& event : events)
      both(of_stream(event.stream), event);
  });
  for (model::Synchronization& wait : session.synchronizations)
    both(wait.launch < session.launches.size() ? of_thread(session.launches[wait.launch].thread)
                                               : of_stream(wait.stream),
         wait);
  for (model::GpuPause& pause : session.gpu_pauses)
    both(pause.process, pause);
  for (model::SampleStream& samples : session.samples) {
    const std::uint32_t process =
        samples.device < session.devices.size() ? session.devices[samples.device].process : kNone;
    if (samples.other_clock)
      continue;  // joined to the GPU work of its device, which moved
    for (std::int64_t& at : samples.start_ns)
      move(process, at);
    for (std::int64_t& at : samples.end_ns)
      move(process, at);
  }
  move_cpu(session, move);
  session.begin_ns = kOpen;
  session.end_ns = 0;
  for (const model::Process& process : session.processes) {
    session.begin_ns = std::min(session.begin_ns, process.start_ns);
    session.end_ns = std::max(session.end_ns, process.end_ns);
  }
  return clocks;
}

void describe_clocks(const std::vector<HostClock>& clocks,
                     const Session& session,
                     model::Report& report) {
  double residual = 0;
  std::size_t aligned = 0;
  std::vector<std::string> others;
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    const HostClock& clock = clocks[i];
    if (clock.knots.empty()) {
      others.push_back(clock.host);
      continue;
    }
    ++aligned;
    residual = std::max(residual, clock.residual_ns);
    for (const std::uint32_t process : clock.processes)
      for (model::Rank& rank : report.ranks)
        if (rank.rank == session.processes[process].rank)
          rank.clock_offset_ns = clock.knots[clock.knots.size() / 2].add_ns;
  }
  if (aligned > 0)
    report.notes.push_back("clocks of " + base::counted(aligned + 1, "host") +
                           " aligned by the ends of collectives; 95 % of the ends agree within " +
                           base::format_ns(residual));
  if (!others.empty())
    report.losses.push_back(
        {"clocks_not_aligned",
         others.size(),
         "aligned by UTC only, without joined collectives: " + base::join(others, ", ")});
}

}  // namespace rangescope::analyze
