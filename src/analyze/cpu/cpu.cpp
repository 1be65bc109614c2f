#include "analyze/cpu/cpu.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "analyze/cpu/hot_functions.hpp"
#include "analyze/cpu/other_threads.hpp"
#include "analyze/cpu/own/call_tree.hpp"
#include "analyze/cpu/part_names.hpp"
#include "analyze/cpu/region_work.hpp"
#include "analyze/names/kernel_labels.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/sets.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::CpuProfile;
using model::CpuWait;
using model::CpuWork;
using model::Session;

/// Timestamps and intervals of threads, and what each was made of.
struct CpuPoints {
  enum Kind : std::uint8_t { kSample, kWait, kCount, kPoolSample, kPoolWait, kHolder };

  std::vector<model::Launch> calls;
  std::vector<Kind> kinds;
  std::vector<std::uint32_t> sources;  ///< index of a sample or a wait; counter of a count

  void add(Kind kind,
           std::uint32_t source,
           std::uint32_t thread,
           std::int64_t start_ns,
           std::int64_t end_ns) {
    calls.push_back({start_ns, end_ns, thread});
    kinds.push_back(kind);
    sources.push_back(source);
  }
};

/// When the GPUs of each process worked.
class GpuBusyTimes {
 public:
  explicit GpuBusyTimes(const Session& session) : session_(session) {
    by_process_.resize(session.processes.size());
    model::for_each_gpu_work(session, [&](const auto& works) {
      for (const auto& work : works) {
        const std::uint32_t stream = work.stream;
        if (stream >= session.streams.size())
          continue;
        const std::uint32_t process = session.streams[stream].process;
        if (process < by_process_.size())
          by_process_[process].add(work.start_ns, work.end_ns);
      }
    });
    for (Stretches& busy : by_process_)
      busy.finish();
    for (std::uint32_t p = 0; p < session.processes.size(); ++p)
      first_of_pid_.try_emplace(session.processes[p].pid, p);
  }

  [[nodiscard]] const Stretches& of_pid(std::uint32_t pid) const {
    const auto process = first_of_pid_.find(pid);
    if (process == first_of_pid_.end())
      return none_;
    return by_process_[process->second];
  }
  [[nodiscard]] const Stretches& of_thread(std::uint32_t thread) const {
    const std::uint32_t process = session_.threads[thread].process;
    if (process >= by_process_.size())
      return none_;
    return by_process_[process];
  }

 private:
  const Session& session_;
  std::vector<Stretches> by_process_;
  std::map<std::uint32_t, std::uint32_t> first_of_pid_;
  const Stretches none_;
};

class CpuSums {
 public:
  CpuSums(const Session& session,
          const Options& options,
          const Tree& tree,
          const Contexts& contexts,
          const std::vector<RegionKey>& keys,
          const std::vector<model::Region>& regions)
      : session_(session),
        cpu_(session.cpu),
        keys_(keys),
        own_code_(session),
        hot_functions_(session),
        gpu_busy_(session),
        names_(session),
        region_work_(session, regions, names_, own_code_, hot_functions_) {
    aggregate_ = std::any_of(keys.begin(), keys.end(), [](const RegionKey& key) {
      return key.process == kNone && key.thread == kNone;
    });
    sort_calls_by_thread();
    attribute_points(options, tree);
    attribute_calls(contexts, tree);
  }

  /// By region: the sets that count in it.
  [[nodiscard]] std::vector<std::vector<CpuSetUse>> uses() const {
    std::vector<std::vector<CpuSetUse>> uses(keys_.size());
    const auto add = [&](const Sets& sets, const std::vector<CpuSetSums>& sums) {
      for (std::size_t s = 0; s < sums.size(); ++s) {
        bool is_first = true;  // a chain that is in ranges of two domains is drawn in one
        for (const SetEntry& entry : sets.of(static_cast<std::uint32_t>(s))) {
          if (entry.inherited || entry.region >= keys_.size())
            continue;
          const bool primary = is_first && is_primary(entry);
          if (primary)
            is_first = false;
          uses[entry.region].push_back({&sums[s], primary});
        }
      }
    };
    add(point_sets_, point_sums_);
    add(call_sets_, call_sums_);
    return uses;
  }

  [[nodiscard]] const OwnCode& own_code() const { return own_code_; }
  [[nodiscard]] const RegionWork& region_work() const { return region_work_; }

  /// What no region draws. Of threads that neither opened a range nor called CUDA their samples,
  /// and no waits.
  [[nodiscard]] base::Held<CpuWork> outside() const {
    std::vector<CpuSetUse> uses;
    const auto add = [&](const Sets& sets, const std::vector<CpuSetSums>& sums) {
      for (std::size_t s = 0; s < sums.size(); ++s)
        if (primary_region(sets, static_cast<std::uint32_t>(s)) == kNone)
          uses.push_back({&sums[s], true});
    };
    add(point_sets_, point_sums_);
    add(call_sets_, call_sums_);
    CpuSetSums others;
    for (std::size_t i = 0; i < cpu_.samples.size(); ++i) {
      const model::CpuSample& sample = cpu_.samples[i];
      const model::CpuThread& thread = cpu_.threads[sample.thread];
      if (thread.thread != kNone || in_range_[i])
        continue;
      const bool is_idle = !gpu_busy_.of_pid(thread.pid).holds(sample.at_ns);
      ++others.stacks[stack_key(sample.stack, false, is_idle)];
    }
    uses.push_back({&others, true});
    return region_work_.of(uses, {});
  }

  /// The program with all its threads: what they ran, their CUDA calls, and what its first thread
  /// waited for; while that waits for children, what they ran and waited for. Of other threads
  /// those waits which are never for work: for the GIL and for a core.
  [[nodiscard]] base::Held<CpuWork> of_program() const {
    const std::uint32_t started = first_process(session_);
    std::uint32_t pid = 0;
    if (started != kNone)
      pid = session_.processes[started].pid;
    CpuSetSums sums;
    const std::set<ThreadId> threads = add_program_samples(sums);
    add_program_waits(pid, sums);
    for (const CpuSetSums& calls : call_sums_)
      for (const auto& [part, time] : calls.parts)
        sums.parts[part].add(time.ns, time.idle_ns);
    sums.counts.resize(cpu_.counters.size());
    for (const model::CpuCount& count : cpu_.counts)
      ++sums.counts[count.counter];
    KnownWall wall;
    // One thread fills the wall time, where it is the one whose waits these are.
    const bool is_first_alone = threads.size() == 1 && *threads.begin() == ThreadId{pid, pid};
    if (threads.empty() || is_first_alone)
      wall.ns = static_cast<double>(session_.end_ns - session_.begin_ns);
    return region_work_.of({{&sums, true}}, wall);
  }

 private:
  using ThreadId = std::pair<std::uint32_t, std::uint32_t>;  ///< process and thread

  /// A key of StackCounts.
  static std::uint64_t stack_key(std::uint32_t stack, bool in_call, bool is_idle) {
    std::uint64_t key = std::uint64_t{stack} << 2;
    if (in_call)
      key |= 2;
    if (is_idle)
      key |= 1;
    return key;
  }

  /// The thread's number in the session; kNone where it has none.
  [[nodiscard]] std::uint32_t thread_of(std::uint32_t cpu_thread) const {
    if (cpu_thread >= cpu_.threads.size())
      return kNone;
    return cpu_.threads[cpu_thread].thread;
  }

  [[nodiscard]] const Stretches& calls_of(std::uint32_t thread) const {
    if (thread == kNone)
      return none_;
    return in_calls_[thread];
  }

  [[nodiscard]] double idle_ns(std::uint32_t thread, std::int64_t start, std::int64_t end) const {
    return static_cast<double>(end - start - gpu_busy_.of_thread(thread).within(start, end));
  }

  void sort_calls_by_thread() {
    in_calls_.resize(session_.threads.size());
    for (const model::Launch& call : session_.launches)
      if (call.thread < in_calls_.size() && call.end_ns != kOpen)
        in_calls_[call.thread].add(call.start_ns, call.end_ns);
    for (Stretches& calls : in_calls_)
      calls.finish();
  }

  /// By thread, in order, where its ranges begin and end. A thread opens none while it waits; but
  /// where /proc is read, when a wait began is not known exactly. Empty elsewhere.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> edges_in_waits() const {
    std::vector<std::vector<std::int64_t>> edges_of(session_.threads.size());
    if (cpu_.unwinding != "none")
      return edges_of;
    for (const model::Range& range : session_.ranges)
      for (const std::int64_t edge_ns : {range.start_ns, range.end_ns})
        if (range.thread < edges_of.size())
          edges_of[range.thread].push_back(edge_ns);
    for (std::vector<std::int64_t>& edges : edges_of)
      std::ranges::sort(edges);
    return edges_of;
  }

  void add_sample_points(CpuPoints& points) const {
    for (std::uint32_t i = 0; i < cpu_.samples.size(); ++i) {
      const model::CpuSample& sample = cpu_.samples[i];
      const std::uint32_t thread = thread_of(sample.thread);
      if (thread != kNone)
        points.add(CpuPoints::kSample, i, thread, sample.at_ns, sample.at_ns);
    }
  }

  /// A wait is cut where a range of its thread begins or ends in it.
  void add_wait_points(CpuPoints& points) const {
    const std::vector<std::vector<std::int64_t>> edges_of = edges_in_waits();
    for (std::uint32_t i = 0; i < cpu_.waits.size(); ++i) {
      const CpuWait& wait = cpu_.waits[i];
      const std::uint32_t thread = thread_of(wait.thread);
      if (thread == kNone)
        continue;
      const std::vector<std::int64_t>& edges = edges_of[thread];
      std::int64_t start_ns = wait.start_ns;
      for (auto edge = std::upper_bound(edges.begin(), edges.end(), wait.start_ns);
           edge != edges.end() && *edge < wait.end_ns;
           ++edge) {
        points.add(CpuPoints::kWait, i, thread, start_ns, *edge);
        start_ns = *edge;
      }
      points.add(CpuPoints::kWait, i, thread, start_ns, wait.end_ns);
    }
  }

  void add_count_points(CpuPoints& points) const {
    for (const model::CpuCount& count : cpu_.counts) {
      const std::uint32_t thread = thread_of(count.thread);
      if (thread != kNone)
        points.add(CpuPoints::kCount, count.counter, thread, count.at_ns, count.at_ns);
    }
  }

  /// Samples of workers, for the threads whose work they do.
  void add_pool_points(const PoolStacks& pools, CpuPoints& points) const {
    const std::vector<std::uint32_t> users = pool_users(session_, pools);
    for (std::uint32_t i = 0; i < users.size(); ++i) {
      const std::int64_t at_ns = cpu_.samples[i].at_ns;
      if (users[i] != kNone)
        points.add(CpuPoints::kPoolSample, i, users[i], at_ns, at_ns);
    }
  }

  void add_pool_wait_points(const std::vector<CpuWait>& waits, CpuPoints& points) const {
    for (std::uint32_t i = 0; i < waits.size(); ++i) {
      const std::int64_t middle = std::midpoint(waits[i].start_ns, waits[i].end_ns);
      points.add(CpuPoints::kPoolWait, i, thread_of(waits[i].thread), middle, middle);
    }
  }

  /// Where the thread was that had what another one waited for.
  void add_holder_points(CpuPoints& points) const {
    for (std::uint32_t i = 0; i < cpu_.waits.size(); ++i) {
      const CpuWait& wait = cpu_.waits[i];
      if (wait.holder == kNone || thread_of(wait.thread) == kNone)
        continue;
      const std::uint32_t holder = thread_of(wait.holder);
      const std::int64_t middle = std::midpoint(wait.start_ns, wait.end_ns);
      if (holder != kNone)
        points.add(CpuPoints::kHolder, i, holder, middle, middle);
    }
  }

  void attribute_points(const Options& options, const Tree& tree) {
    const PoolStacks pools = pool_stacks(session_);
    const std::vector<CpuWait> waits_for_pool = pool_waits(session_, pools);
    CpuPoints points;
    add_sample_points(points);
    add_wait_points(points);
    add_count_points(points);
    add_pool_points(pools, points);
    add_pool_wait_points(waits_for_pool, points);
    add_holder_points(points);
    const Contexts contexts = build_contexts(session_, tree, options, points.calls);
    point_sets_ = build_sets(tree, contexts, keys_);
    point_sums_.resize(point_sets_.size());
    in_range_.resize(cpu_.samples.size());
    std::vector<std::uint32_t> set_of_wait(cpu_.waits.size());
    for (std::size_t p = 0; p < points.calls.size(); ++p) {
      const bool is_in_range = contexts.of_launch[p] != 0;
      const std::uint32_t set = point_sets_.of_context[contexts.of_launch[p]];
      CpuSetSums& sums = point_sums_[set];
      const std::uint32_t source = points.sources[p];
      switch (points.kinds[p]) {
        case CpuPoints::kSample:
          add_sample(points.calls[p], cpu_.samples[source].stack, sums);
          break;
        case CpuPoints::kWait:
          set_of_wait[source] = set;
          add_wait(points.calls[p], cpu_.waits[source], sums);
          break;
        case CpuPoints::kCount:
          sums.counts.resize(cpu_.counters.size());
          ++sums.counts[source];
          break;
        case CpuPoints::kPoolSample:
          if (!is_in_range)
            break;
          in_range_[source] = true;
          ++sums.pool[cpu_.samples[source].stack];
          break;
        case CpuPoints::kPoolWait: add_held(waits_for_pool[source], kNone, "pool", sums); break;
        case CpuPoints::kHolder: {
          const CpuWait& wait = cpu_.waits[source];
          const std::uint32_t region = primary_region(point_sets_, set);
          add_held(wait, region, name_of(wait.kind), point_sums_[set_of_wait[source]]);
          break;
        }
      }
    }
  }

  void add_sample(const model::Launch& point, std::uint32_t stack, CpuSetSums& sums) const {
    const bool in_call = in_calls_[point.thread].holds(point.start_ns);
    const bool is_idle = !gpu_busy_.of_thread(point.thread).holds(point.start_ns);
    ++sums.stacks[stack_key(stack, in_call, is_idle)];
  }

  /// `point`: the part of the wait that belongs to this set.
  void add_wait(const model::Launch& point, const CpuWait& wait, CpuSetSums& sums) const {
    const double weight = wait.weight;
    const double length = weight * static_cast<double>(point.end_ns - point.start_ns);
    const std::int64_t in_calls_ns = in_calls_[point.thread].within(point.start_ns, point.end_ns);
    const double outside = length - weight * static_cast<double>(in_calls_ns);
    sums.waits_ns += length;
    if (own_code_.delays(wait))
      sums.waited[wait.stack] += outside;
    // Calls are short compared with a wait that holds one: idle time is shared out by length.
    const double idle = weight * idle_ns(point.thread, point.start_ns, point.end_ns);
    double idle_outside = 0;
    if (length > 0)
      idle_outside = idle * outside / length;
    sums.parts[names_.of_wait(wait.kind)].add(outside, idle_outside);
    if (weight != 1)
      sums.estimated_ns += outside;
    if (wait.holder != kNone && thread_of(wait.holder) == kNone)
      add_held(wait, kNone, name_of(wait.kind), sums);
  }

  /// `region`: of the holder.
  void add_held(const CpuWait& wait,
                std::uint32_t region,
                std::string_view kind,
                CpuSetSums& sums) const {
    constexpr int kMostSamplesOfHolder = 8;
    HeldTime& held = sums.held[{wait.holder, region, kind}];
    held.ns += wait.weight * static_cast<double>(wait.end_ns - wait.start_ns);
    const auto thread_and_time = [](const model::CpuSample& sampled) {
      return std::pair(sampled.thread, sampled.at_ns);
    };
    const std::pair begin_of_wait(wait.holder, wait.start_ns);
    auto sample = std::ranges::lower_bound(cpu_.samples, begin_of_wait, {}, thread_and_time);
    for (int i = 0; i < kMostSamplesOfHolder && sample != cpu_.samples.end(); ++i, ++sample) {
      if (sample->thread != wait.holder || sample->at_ns >= wait.end_ns)
        break;
      const std::uint32_t frame = telling_frame(cpu_, sample->stack);
      if (frame != kNone && !hot_functions_.is_unread(frame))
        ++held.doing[frame];
    }
  }

  void attribute_calls(const Contexts& contexts, const Tree& tree) {
    if (contexts.of_launch.size() != session_.launches.size())
      return;
    call_sets_ = build_sets(tree, contexts, keys_);
    call_sums_.resize(call_sets_.size());
    for (std::size_t l = 0; l < session_.launches.size(); ++l) {
      const model::Launch& call = session_.launches[l];
      const bool has_time = call.end_ns != kOpen && call.end_ns >= call.start_ns;
      if (!has_time || call.thread >= session_.threads.size())
        continue;
      const std::uint32_t set = call_sets_.of_context[contexts.of_launch[l]];
      CpuSetSums& sums = call_sums_[set];
      const auto length = static_cast<double>(call.end_ns - call.start_ns);
      const double idle = idle_ns(call.thread, call.start_ns, call.end_ns);
      sums.parts[names_.of_call(call)].add(length, idle);
    }
  }

  /// The region of the aggregate (of a process where there is none) in which it is drawn, or that
  /// of another domain.
  [[nodiscard]] bool is_primary(const SetEntry& entry) const {
    if (!entry.exclusive || entry.inherited || entry.region >= keys_.size())
      return false;
    const RegionKey& key = keys_[entry.region];
    return key.thread == kNone && (!aggregate_ || key.process == kNone);
  }

  /// The first region that draws the set, or kNone.
  [[nodiscard]] std::uint32_t primary_region(const Sets& sets, std::uint32_t set) const {
    for (const SetEntry& entry : sets.of(set))
      if (is_primary(entry))
        return entry.region;
    return kNone;
  }

  /// Of all threads; returns those that have samples.
  std::set<ThreadId> add_program_samples(CpuSetSums& sums) const {
    std::set<ThreadId> threads;
    for (const model::CpuSample& sample : cpu_.samples) {
      const model::CpuThread& thread = cpu_.threads[sample.thread];
      const bool in_call = calls_of(thread.thread).holds(sample.at_ns);
      const bool is_idle = !gpu_busy_.of_pid(thread.pid).holds(sample.at_ns);
      ++sums.stacks[stack_key(sample.stack, in_call, is_idle)];
      threads.emplace(thread.pid, thread.tid);
    }
    return threads;
  }

  /// `pid`: the process that was started.
  void add_program_waits(std::uint32_t pid, CpuSetSums& sums) const {
    for (const CpuWait& wait : cpu_.waits) {
      const model::CpuThread& thread = cpu_.threads[wait.thread];
      if (own_code_.delays(wait))
        sums.waited[wait.stack] += wait.weight * static_cast<double>(wait.end_ns - wait.start_ns);
      const bool is_never_for_work =
          wait.kind == model::WaitKind::kGil || wait.kind == model::WaitKind::kPreempted;
      const bool is_first_thread = thread.pid == pid && thread.tid == pid;
      if (is_never_for_work || (is_first_thread && wait.kind != model::WaitKind::kChild))
        add_program_wait(wait, sums);
    }
    for (const CpuWait& wait : waits_of_children(session_, pid))
      add_program_wait(wait, sums);
  }

  void add_program_wait(const CpuWait& wait, CpuSetSums& sums) const {
    const model::CpuThread& thread = cpu_.threads[wait.thread];
    if (wait.holder != kNone)
      add_held(wait, kNone, name_of(wait.kind), sums);
    const auto ns_in = [&](const Stretches& stretches) {
      return static_cast<double>(stretches.within(wait.start_ns, wait.end_ns));
    };
    const double length = static_cast<double>(wait.end_ns - wait.start_ns);
    const double in_calls = ns_in(calls_of(thread.thread));
    const double busy = ns_in(gpu_busy_.of_pid(thread.pid));
    const double outside = length - in_calls;
    const double idle = std::max(0.0, length - std::max(busy, in_calls));
    const auto weight = static_cast<double>(wait.weight);
    sums.parts[names_.of_wait(wait.kind)].add(outside * weight, idle * weight);
    sums.waits_ns += length * weight;
  }

  const Session& session_;
  const CpuProfile& cpu_;
  const std::vector<RegionKey>& keys_;
  const OwnCode own_code_;
  const HotFunctions hot_functions_;
  const GpuBusyTimes gpu_busy_;
  PartNames names_;
  const RegionWork region_work_;
  bool aggregate_ = false;
  std::vector<Stretches> in_calls_;  ///< by thread
  const Stretches none_;
  std::vector<bool> in_range_;  ///< samples of a pool that count in a range
  Sets point_sets_, call_sets_;
  std::vector<CpuSetSums> point_sums_, call_sums_;
};

}  // namespace

void add_cpu(const Session& session,
             const Options& options,
             const Tree& tree,
             const Contexts& contexts,
             const std::vector<RegionKey>& keys,
             model::Report& report,
             base::Held<CpuWork>& whole) {
  const CpuProfile& cpu = session.cpu;
  const bool is_empty = cpu.samples.empty() && cpu.waits.empty() && cpu.counts.empty();
  if (cpu.interval_ns <= 0 || is_empty)
    return;
  const CpuSums sums(session, options, tree, contexts, keys, report.regions);
  const std::vector<std::vector<CpuSetUse>> uses = sums.uses();
  report.cpu_outside = sums.outside();
  report.waits = waits_by_function(session, sums.own_code().code());
  if (keys.empty())
    whole = sums.of_program();
  const int threads = threads_for(cpu.samples.size(), options.threads);
  base::parallel_for(report.regions.size(), threads, [&](std::size_t r) {
    model::Region& region = report.regions[r];
    KnownWall wall;
    if (region.occurrences > 0)
      wall.ns = region.wall.inclusive_ns;
    wall.at_least = region.kind != model::RangeKind::kPushPop || region.unclosed > 0;
    region.cpu = sums.region_work().of(uses[r], wall);
  });
}

}  // namespace rangescope::analyze
