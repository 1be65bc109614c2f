#include "analyze/cpu/cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "analyze/cpu/hot_functions.hpp"
#include "analyze/cpu/other_threads.hpp"
#include "analyze/cpu/own/call_tree.hpp"
#include "analyze/names/kernel_labels.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/sets.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/workers.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

using model::CpuFrame;
using model::CpuProfile;
using model::CpuWait;
using model::CpuWork;
using model::Session;

/// Of a counter whose records lack so small a part, no record is no event.
constexpr double kHardlyAnyLost = 0.05;
constexpr std::string_view kPartKinds[] = {"python", "native", "cuda", "waiting"};
enum PartKind : std::uint8_t { kPython, kNative, kCuda, kWaiting };

std::string_view call_kind(const Session& session, const model::Launch& call) {
  switch (call.kind) {
    case model::LaunchKind::kKernel:
    case model::LaunchKind::kGraph: return "launch";
    case model::LaunchKind::kCopy: return "copy";
    case model::LaunchKind::kMemset: return "set";
    case model::LaunchKind::kSynchronize: return "synchronize";
    case model::LaunchKind::kOther: break;
  }
  return cuda_kind(session.strings.view(call.name));
}

/// Time, and of it that in which the GPU was idle.
struct IdleTime {
  double ns = 0, idle_ns = 0;

  void add(double more, double of_it_idle) {
    ns += more;
    idle_ns += of_it_idle;
  }
};
using PartTimes = std::map<std::uint32_t, IdleTime>;  ///< by name and kind

/// Waiting for what a thread had, in a range of its own.
struct HeldKey {
  std::uint32_t holder, region;  ///< index into CpuProfile::threads; kNone: outside ranges
  std::string_view kind;
  auto operator<=>(const HeldKey&) const = default;
};
struct Held {
  double ns = 0;
  std::map<std::uint32_t, std::int64_t> doing;  ///< samples of the holder meanwhile, by frame
};

/// Sums of one set of regions.
struct CpuSetSums {
  PartTimes parts;
  StackCounts stacks;                                ///< in calls too
  std::unordered_map<std::uint32_t, double> waited;  ///< by stack, without idle threads'
  double waits_ns = 0;                               ///< all, those within calls too
  double estimated_ns = 0;                           ///< of those outside calls, by a scale
  std::vector<std::int64_t> counts;  ///< records of each counter; empty where there are none
  std::map<std::uint32_t, std::int64_t> pool;  ///< samples of threads of a pool, by stack
  std::map<HeldKey, Held> held;
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
        regions_(regions),
        own_code_(session),
        hot_functions_(session) {
    aggregate_ = std::any_of(keys.begin(), keys.end(), [](const RegionKey& key) {
      return key.process == kNone && key.thread == kNone;
    });
    gpu_recorded_ =
        !session.kernels.empty() || !session.copies.empty() || !session.graph_launches.empty();
    gpu_busy();
    calls_by_thread();
    meanings();
    points_and_sums(options, tree);
    calls(contexts, tree);
  }

  /// Sets, of points and of calls, that count in each region; exclusive ones apart.
  struct Use {
    const CpuSetSums* sums;
    bool exclusive, primary;
  };

 private:
  void gpu_busy() {
    busy_.resize(session_.processes.size());
    model::for_each_gpu_work(session_, [&](const auto& work) {
      for (const auto& each : work) {
        const std::uint32_t stream = each.stream;
        if (stream >= session_.streams.size() || session_.streams[stream].process >= busy_.size())
          continue;
        busy_[session_.streams[stream].process].add(each.start_ns, each.end_ns);
      }
    });
    for (Stretches& each : busy_)
      each.finish();
    for (std::uint32_t p = 0; p < session_.processes.size(); ++p)
      first_of_pid_.try_emplace(session_.processes[p].pid, p);
  }
  [[nodiscard]] const Stretches& busy_by_pid(std::uint32_t pid) const {
    const auto process = first_of_pid_.find(pid);
    return process == first_of_pid_.end() ? none_ : busy_[process->second];
  }

  void calls_by_thread() {
    in_calls_.resize(session_.threads.size());
    for (const model::Launch& call : session_.launches)
      if (call.thread < in_calls_.size() && call.end_ns != kOpen)
        in_calls_[call.thread].add(call.start_ns, call.end_ns);
    for (Stretches& each : in_calls_)
      each.finish();
  }

  void meanings() {
    meaning_.resize(cpu_.stacks.size());
    std::vector<std::uint32_t> cuda(cpu_.stacks.size(),
                                    kNone);  // the outermost function of CUDA, by kind
    const std::uint32_t python = part(kPython, "");
    for (std::size_t s = 0; s < cpu_.stacks.size(); ++s) {
      const model::CpuStack& stack = cpu_.stacks[s];
      const CpuFrame& frame = cpu_.frames[stack.frame];
      const std::string_view module = base::file_name(session_.strings.view(frame.module));
      if (stack.parent != kNone)
        cuda[s] = cuda[stack.parent];
      if (cuda[s] == kNone &&
          (module.starts_with("libcudart.so") || module.starts_with("libcuda.so")))
        cuda[s] = part(kCuda, cuda_kind(session_.strings.view(frame.name)));
      if (cuda[s] != kNone)
        meaning_[s] = cuda[s];
      else if (frame.kind == model::FrameKind::kPython || is_python_module(module))
        meaning_[s] = python;
      else
        meaning_[s] = part(kNative,
                           frame.kind == model::FrameKind::kCut         ? "(unknown)"
                           : module.empty() || module.starts_with("//") ? "(JIT)"
                                                                        : module);
    }
    unknown_ = part(kNative, cpu_.unwinding == "none" ? "native code" : "(unknown)");
    kernel_ = part(kNative, "[kernel]");
    unrecorded_wait_ = part(kWaiting, "other");
    for (std::size_t kind = 0; kind < std::size(model::kWaitNames); ++kind)
      wait_parts_[kind] = part(kWaiting, model::kWaitNames[kind]);
  }

  /// Kind and name of a part as one number.
  std::uint32_t part(PartKind kind, std::string_view name) {
    return names_.intern(name) << 2 | kind;
  }

  [[nodiscard]] std::uint32_t part_of_wait(model::WaitKind kind) const {
    return wait_parts_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] const Stretches* busy_of(std::uint32_t thread) const {
    const std::uint32_t process = session_.threads[thread].process;
    return process < busy_.size() ? &busy_[process] : nullptr;
  }
  [[nodiscard]] double idle_ns(std::uint32_t thread, std::int64_t start, std::int64_t end) const {
    const Stretches* busy = busy_of(thread);
    return static_cast<double>(end - start - (busy != nullptr ? busy->within(start, end) : 0));
  }

  /// By thread, in order, where its ranges begin and end. A thread opens none while it waits; but
  /// where /proc is read, when a wait began is not known exactly. Empty elsewhere.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> edges_in_waits() const {
    std::vector<std::vector<std::int64_t>> edges(session_.threads.size());
    if (cpu_.unwinding != "none")
      return edges;
    for (const model::Range& range : session_.ranges)
      for (const std::int64_t at : {range.start_ns, range.end_ns})
        if (range.thread < edges.size())
          edges[range.thread].push_back(at);
    for (std::vector<std::int64_t>& each : edges)
      std::ranges::sort(each);
    return edges;
  }

  void points_and_sums(const Options& options, const Tree& tree) {
    std::vector<model::Launch> points;
    std::vector<std::uint32_t> source;
    const auto thread_of = [&](std::uint32_t thread) {
      return thread < cpu_.threads.size() ? cpu_.threads[thread].thread : kNone;
    };
    for (std::uint32_t i = 0; i < cpu_.samples.size(); ++i) {
      const model::CpuSample& sample = cpu_.samples[i];
      if (const std::uint32_t thread = thread_of(sample.thread); thread != kNone) {
        points.push_back({sample.at_ns, sample.at_ns, thread});
        source.push_back(i);
      }
    }
    const std::size_t samples = points.size();
    const std::vector<std::vector<std::int64_t>> cuts = edges_in_waits();
    for (std::uint32_t i = 0; i < cpu_.waits.size(); ++i) {
      const model::CpuWait& wait = cpu_.waits[i];
      if (const std::uint32_t thread = thread_of(wait.thread); thread != kNone) {
        points.push_back({wait.start_ns, wait.end_ns, thread});
        for (auto cut = std::upper_bound(cuts[thread].begin(), cuts[thread].end(), wait.start_ns);
             cut != cuts[thread].end() && *cut < wait.end_ns;
             ++cut) {
          points.back().end_ns = *cut;
          points.push_back({*cut, wait.end_ns, thread});
        }
        source.resize(points.size(), i);
      }
    }
    const std::size_t not_counts = points.size();
    for (const model::CpuCount& count : cpu_.counts) {
      if (const std::uint32_t thread = thread_of(count.thread); thread != kNone) {
        points.push_back({count.at_ns, count.at_ns, thread});
        source.push_back(count.counter);
      }
    }
    const std::size_t not_pool = points.size();
    const PoolStacks pools = pool_stacks(session_);
    const std::vector<std::uint32_t> users = pool_users(session_, pools);
    in_range_.resize(cpu_.samples.size());
    for (std::uint32_t i = 0; i < users.size(); ++i) {
      if (users[i] == kNone)
        continue;
      points.push_back({cpu_.samples[i].at_ns, cpu_.samples[i].at_ns, users[i]});
      source.push_back(i);
    }
    const std::size_t not_pool_waits = points.size();
    const std::vector<CpuWait> pool_waiting = pool_waits(session_, pools);
    for (std::uint32_t i = 0; i < pool_waiting.size(); ++i) {
      const std::int64_t middle = std::midpoint(pool_waiting[i].start_ns, pool_waiting[i].end_ns);
      points.push_back({middle, middle, thread_of(pool_waiting[i].thread)});
      source.push_back(i);
    }
    const std::size_t not_holders = points.size();
    for (std::uint32_t i = 0; i < cpu_.waits.size(); ++i) {
      const CpuWait& wait = cpu_.waits[i];
      if (wait.holder == kNone || thread_of(wait.thread) == kNone ||
          thread_of(wait.holder) == kNone)
        continue;
      const std::int64_t middle = std::midpoint(wait.start_ns, wait.end_ns);
      points.push_back({middle, middle, thread_of(wait.holder)});
      source.push_back(i);
    }
    std::vector<std::uint32_t> set_of_wait(cpu_.waits.size());
    const Contexts contexts = build_contexts(session_, tree, options, points);
    point_sets_ = build_sets(tree, contexts, keys_);
    point_sums_.resize(point_sets_.size());
    for (std::size_t p = 0; p < points.size(); ++p) {
      CpuSetSums& sums = point_sums_[point_sets_.of_context[contexts.of_launch[p]]];
      const model::Launch& point = points[p];
      const Stretches& calls = in_calls_[point.thread];
      if (p < samples) {
        const Stretches* busy = busy_of(point.thread);
        const bool idle = busy == nullptr || !busy->holds(point.start_ns);
        const std::uint64_t stack = cpu_.samples[source[p]].stack;
        ++sums.stacks[stack << 2 | (calls.holds(point.start_ns) ? 2u : 0u) | (idle ? 1u : 0u)];
      } else if (p >= not_holders) {
        const auto entries = point_sets_.of(point_sets_.of_context[contexts.of_launch[p]]);
        const auto primary = std::find_if(
            entries.begin(), entries.end(), [&](const SetEntry& e) { return is_primary(e); });
        const CpuWait& wait = cpu_.waits[source[p]];
        add_held(point_sums_[set_of_wait[source[p]]],
                 wait,
                 primary == entries.end() ? kNone : primary->region,
                 name_of(wait.kind));
      } else if (p >= not_pool_waits) {
        add_held(sums, pool_waiting[source[p]], kNone, "pool");
      } else if (p >= not_pool) {
        if (contexts.of_launch[p] == 0)
          continue;
        in_range_[source[p]] = true;
        ++sums.pool[cpu_.samples[source[p]].stack];
      } else if (p >= not_counts) {
        sums.counts.resize(cpu_.counters.size());
        ++sums.counts[source[p]];
      } else {
        const CpuWait& wait = cpu_.waits[source[p]];
        const double weight = wait.weight;
        const double length = weight * static_cast<double>(point.end_ns - point.start_ns);
        const double inside =
            weight * static_cast<double>(calls.within(point.start_ns, point.end_ns));
        const double outside = length - inside;
        sums.waits_ns += length;
        if (own_code_.delays(wait))
          sums.waited[wait.stack] += outside;
        // Calls are short beside a wait that holds one: idle time is shared out by length.
        const double idle = weight * idle_ns(point.thread, point.start_ns, point.end_ns);
        sums.parts[part_of_wait(wait.kind)].add(outside, length > 0 ? idle * outside / length : 0);
        if (weight != 1)
          sums.estimated_ns += outside;
        set_of_wait[source[p]] = point_sets_.of_context[contexts.of_launch[p]];
        if (wait.holder != kNone && thread_of(wait.holder) == kNone)
          add_held(sums, wait, kNone, name_of(wait.kind));
      }
    }
  }

  void add_held(CpuSetSums& sums,
                const CpuWait& wait,
                std::uint32_t region,
                std::string_view kind) const {
    Held& held = sums.held[{wait.holder, region, kind}];
    held.ns += wait.weight * static_cast<double>(wait.end_ns - wait.start_ns);
    auto at = std::lower_bound(cpu_.samples.begin(),
                               cpu_.samples.end(),
                               std::pair(wait.holder, wait.start_ns),
                               [](const model::CpuSample& sample, const auto& wanted) {
                                 return std::pair(sample.thread, sample.at_ns) < wanted;
                               });
    for (int left = 8; left > 0 && at != cpu_.samples.end() && at->thread == wait.holder &&
                       at->at_ns < wait.end_ns;
         --left)
      if (const std::uint32_t frame = telling_frame(cpu_, (at++)->stack);
          frame != kNone && !hot_functions_.is_unread(frame))
        ++held.doing[frame];
  }

  void calls(const Contexts& contexts, const Tree& tree) {
    if (contexts.of_launch.size() != session_.launches.size())
      return;
    call_sets_ = build_sets(tree, contexts, keys_);
    call_sums_.resize(call_sets_.size());
    for (std::size_t l = 0; l < session_.launches.size(); ++l) {
      const model::Launch& call = session_.launches[l];
      if (call.end_ns == kOpen || call.end_ns < call.start_ns ||
          call.thread >= session_.threads.size())
        continue;
      CpuSetSums& sums = call_sums_[call_sets_.of_context[contexts.of_launch[l]]];
      sums.parts[part(kCuda, call_kind(session_, call))].add(
          static_cast<double>(call.end_ns - call.start_ns),
          idle_ns(call.thread, call.start_ns, call.end_ns));
    }
  }

  /// The region of the aggregate (of a process where there is none) in which it is drawn, or that
  /// of another domain.
  [[nodiscard]] bool is_primary(const SetEntry& entry) const {
    return entry.exclusive && !entry.inherited && entry.region < keys_.size() &&
           keys_[entry.region].thread == kNone &&
           (!aggregate_ || keys_[entry.region].process == kNone);
  }

 public:
  void uses(std::vector<std::vector<Use>>& out) const {
    out.resize(keys_.size());
    const auto add = [&](const Sets& sets, const std::vector<CpuSetSums>& sums) {
      for (std::size_t s = 0; s < sums.size(); ++s) {
        bool first = true;  // a chain that is in ranges of two domains is drawn in one
        for (const SetEntry& entry : sets.of(static_cast<std::uint32_t>(s))) {
          if (entry.inherited || entry.region >= keys_.size())
            continue;
          const bool primary = first && is_primary(entry);
          if (primary)
            first = false;
          out[entry.region].push_back({&sums[s], entry.exclusive, primary});
        }
      }
    };
    add(point_sets_, point_sums_);
    add(call_sets_, call_sums_);
  }

  [[nodiscard]] const OwnCode& own_code() const { return own_code_; }

  /// What no region draws. Of threads that neither opened a range nor called CUDA their samples,
  /// and no waits.
  [[nodiscard]] base::Held<CpuWork> outside() const {
    std::vector<Use> uses;
    const auto add = [&](const Sets& sets, const std::vector<CpuSetSums>& sums) {
      for (std::size_t s = 0; s < sums.size(); ++s) {
        const auto entries = sets.of(static_cast<std::uint32_t>(s));
        if (std::none_of(
                entries.begin(), entries.end(), [&](const SetEntry& e) { return is_primary(e); }))
          uses.push_back({&sums[s], true, true});
      }
    };
    add(point_sets_, point_sums_);
    add(call_sets_, call_sums_);
    CpuSetSums others;
    for (std::size_t i = 0; i < cpu_.samples.size(); ++i) {
      const model::CpuSample& sample = cpu_.samples[i];
      if (cpu_.threads[sample.thread].thread != kNone || in_range_[i])
        continue;
      const bool busy = busy_by_pid(cpu_.threads[sample.thread].pid).holds(sample.at_ns);
      ++others.stacks[std::uint64_t{sample.stack} << 2 | (busy ? 0u : 1u)];
    }
    uses.push_back({&others, true, true});
    return work_of(uses, {});
  }

  /// The program with all its threads: what they ran, their CUDA calls, and what its first thread
  /// waited for; while that waits for children, what they ran and waited for. Of other threads
  /// those waits which are never for work: for the GIL and for a core.
  [[nodiscard]] base::Held<CpuWork> whole() const {
    CpuSetSums all;
    const auto calls_of = [&](std::uint32_t thread) -> const Stretches& {
      return thread == kNone ? none_ : in_calls_[thread];
    };
    const std::uint32_t started = first_process(session_);
    const std::uint32_t first = started == kNone ? 0 : session_.processes[started].pid;
    std::set<std::pair<std::uint32_t, std::uint32_t>> ran;
    for (const model::CpuSample& sample : cpu_.samples) {
      const model::CpuThread& thread = cpu_.threads[sample.thread];
      const bool busy = busy_by_pid(thread.pid).holds(sample.at_ns);
      const bool call = calls_of(thread.thread).holds(sample.at_ns);
      ++all.stacks[std::uint64_t{sample.stack} << 2 | (call ? 2u : 0u) | (busy ? 0u : 1u)];
      ran.emplace(thread.pid, thread.tid);
    }
    const auto waited = [&](const model::CpuWait& wait) {
      const model::CpuThread& thread = cpu_.threads[wait.thread];
      if (wait.holder != kNone)
        add_held(all, wait, kNone, name_of(wait.kind));
      const double length = static_cast<double>(wait.end_ns - wait.start_ns);
      const auto inside =
          static_cast<double>(calls_of(thread.thread).within(wait.start_ns, wait.end_ns));
      const auto busy =
          static_cast<double>(busy_by_pid(thread.pid).within(wait.start_ns, wait.end_ns));
      const auto times = static_cast<double>(wait.weight);
      all.parts[part_of_wait(wait.kind)].add(
          (length - inside) * times, std::max(0.0, length - std::max(busy, inside)) * times);
      all.waits_ns += length * times;
    };
    for (const model::CpuWait& wait : cpu_.waits) {
      const model::CpuThread& thread = cpu_.threads[wait.thread];
      if (own_code_.delays(wait))
        all.waited[wait.stack] += wait.weight * static_cast<double>(wait.end_ns - wait.start_ns);
      const bool of_any =
          wait.kind == model::WaitKind::kGil || wait.kind == model::WaitKind::kPreempted;
      const bool of_first =
          thread.pid == first && thread.tid == first && wait.kind != model::WaitKind::kChild;
      if (of_any || of_first)
        waited(wait);
    }
    std::ranges::for_each(waits_of_children(session_, first), waited);
    for (const CpuSetSums& calls : call_sums_)
      for (const auto& [name, time] : calls.parts)
        all.parts[name].add(time.ns, time.idle_ns);
    all.counts.resize(cpu_.counters.size());
    for (const model::CpuCount& count : cpu_.counts)
      ++all.counts[count.counter];
    std::optional<double> wall;
    // One thread fills the wall time, where it is the one whose waits these are.
    if (ran.empty() || (ran.size() == 1 && *ran.begin() == std::pair{first, first}))
      wall = static_cast<double>(session_.end_ns - session_.begin_ns);
    return work_of({{&all, true, true}}, wall);
  }

  /// Without a wall time: of what samples, calls and waits come to. `at_least`: of more than that
  /// where they come to more than chance adds, as those of all threads do while a start/end range
  /// is open.
  [[nodiscard]] base::Held<CpuWork> work_of(const std::vector<Use>& uses,
                                            std::optional<double> wall_ns,
                                            bool at_least = false) const {
    CpuWork work;
    work.interval_ns = static_cast<double>(cpu_.interval_ns);
    const double interval = work.interval_ns;
    PartTimes parts;
    StackCounts stacks;
    std::map<std::uint32_t, std::int64_t> own;
    double waits = 0, recorded = 0, estimated = 0;
    std::vector<std::int64_t> records(cpu_.counters.size());
    StackCounts pool;
    std::map<HeldKey, Held> held;
    OwnTimes times;
    for (const Use& use : uses) {
      for (const auto& [stack, ns] : use.sums->waited)
        times[stack].waiting_ns += ns;
      for (const auto& [stack, count] : use.sums->pool) {
        pool[std::uint64_t{stack} << 2] += count;
        work.pool_samples += count;
        if (use.primary)
          own[stack] += count;
      }
      for (const auto& [key, each] : use.sums->held) {
        held[key].ns += each.ns;
        for (const auto& [frame, count] : each.doing)
          held[key].doing[frame] += count;
      }
      for (std::size_t c = 0; c < use.sums->counts.size(); ++c)
        records[c] += use.sums->counts[c];
      for (const auto& [name, time] : use.sums->parts) {
        parts[name].add(time.ns, time.idle_ns);
        recorded += time.ns;
      }
      for (const auto& [stack, count] : use.sums->stacks) {
        stacks[stack] += count;
        if (use.primary)
          own[static_cast<std::uint32_t>(stack >> 2)] += count;
      }
      waits += use.sums->waits_ns;
      estimated += use.sums->estimated_ns;
    }
    // Samples outside calls, by what they mean.
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> counts;
    std::int64_t outside = 0, outside_idle = 0;
    for (const auto& [key, count] : stacks) {
      work.samples += count;
      if ((key & 2) != 0)
        continue;
      const std::uint64_t stack = key >> 2;
      auto& into = counts[stack < meaning_.size() ? meaning_[stack] : unknown_];
      into.first += count;
      outside += count;
      if ((key & 1) != 0) {
        into.second += count;
        outside_idle += count;
      }
    }
    counters(records, work);
    if (work.samples == 0 && recorded <= 0 && work.counters.empty() && work.pool_samples == 0)
      return {};
    work.pool_ns = static_cast<double>(work.pool_samples) * interval;
    holders(held, work);
    if (wall_ns && !at_least && estimated > 0) {
      const double most = *wall_ns - recorded + estimated -
                          (cpu_.kernel ? static_cast<double>(outside) * interval : 0);
      const double more = std::max(0.0, cpu_.kernel ? most : std::min(most, estimated)) - estimated;
      add_to_waits(parts, more);
      recorded += more;
      waits += more;
    }
    const double chance = 3 * interval * std::sqrt(static_cast<double>(outside) + 1);
    double wall = recorded + static_cast<double>(outside) * interval;
    if (wall_ns && (!at_least || wall <= *wall_ns + chance))
      wall = std::max(*wall_ns, at_least ? recorded : 0);
    double rest = std::max(0.0, wall - recorded);
    // Samples of the kernel are missing: what they would have been, where that is more than chance.
    double missing = 0;
    if (!cpu_.kernel && cpu_.switches) {
      const double gap = rest - static_cast<double>(outside) * interval;
      if (gap > chance)
        missing = gap;
    }
    double idle_rest =
        outside > 0 ? static_cast<double>(outside_idle) / static_cast<double>(outside) : 1;
    if (missing > 0) {
      parts[kernel_].add(missing, missing * idle_rest);
      rest -= missing;
    }
    // Where nothing tells waits from running, samples alone say how long it ran.
    if (!cpu_.switches && static_cast<double>(outside) * interval < rest) {
      const double waited = rest - static_cast<double>(outside) * interval;
      parts[unrecorded_wait_].add(waited, waited * idle_rest);
      rest -= waited;
    }
    if (outside > 0) {
      const double each = rest / static_cast<double>(outside);
      for (const auto& [name, count] : counts)
        parts[name].add(static_cast<double>(count.first) * each,
                        static_cast<double>(count.second) * each);
    } else if (rest > 0) {
      parts[unknown_].add(rest, rest);  // too short for a sample
    }
    model::CpuPart* const totals[] = {&work.python, &work.native, &work.cuda, &work.waiting};
    for (std::size_t k = 0; k < 4; ++k)
      totals[k]->kind = kPartKinds[k];
    for (const auto& [name, time] : parts) {
      const std::size_t kind = name & 3;
      if (time.ns <= 0)
        continue;
      work.parts.push_back({std::string(kPartKinds[kind]),
                            std::string(names_.view(name >> 2)),
                            time.ns,
                            time.idle_ns});
      totals[kind]->ns += time.ns;
      totals[kind]->gpu_idle_ns += time.idle_ns;
    }
    std::ranges::stable_sort(work.parts, std::greater<>(), &model::CpuPart::ns);
    if (!gpu_recorded_) {
      for (model::CpuPart* total : totals)
        total->gpu_idle_ns = model::kNan;
      for (model::CpuPart& each : work.parts)
        each.gpu_idle_ns = model::kNan;
    }
    for (const auto& [stack, count] : own)
      work.stacks.push_back({stack, count});
    const double ran = std::max(0.0, wall - waits - missing);
    const double each = work.samples > 0 ? ran / static_cast<double>(work.samples) : 0;
    if (work.samples + work.pool_samples > 0)
      hot_functions_.fill(stacks, each, pool, work);
    for (const auto& [key, count] : stacks)
      times[static_cast<std::uint32_t>(key >> 2)].cpu_ns += static_cast<double>(count) * each;
    own_code_.fill(times, work);
    return work;
  }

 private:
  void holders(const std::map<HeldKey, Held>& held, CpuWork& work) const {
    for (const auto& [key, each] : held) {
      const model::CpuThread& thread = cpu_.threads[key.holder];
      model::CpuHolder holder;
      holder.kind = key.kind;
      holder.thread = fmt::format("{} ({})", session_.strings.view(thread.name), thread.tid);
      if (key.region < regions_.size())
        holder.range = model::path_text(regions_[key.region]);
      const auto most =
          std::max_element(each.doing.begin(), each.doing.end(), [](const auto& a, const auto& b) {
            return a.second < b.second;
          });
      if (most != each.doing.end())
        holder.doing = function_of(session_, most->first).name;
      holder.ns = each.ns;
      work.holders.push_back(std::move(holder));
    }
    longest_holders(work.holders);
  }

  /// What was sampled and never recorded is absent; what is recorded each time, or nearly, is 0. Of
  /// n records that represent w events each the number of events varies by n w (w - 1): by nothing
  /// where each was recorded.
  void counters(const std::vector<std::int64_t>& records, CpuWork& work) const {
    for (std::size_t c = 0; c < records.size(); ++c) {
      const model::CpuCounter& counter = cpu_.counters[c];
      const double weight = counter.weight, more = std::max(0.0, weight - 1);
      if (records[c] == 0 && (more > kHardlyAnyLost || counter.running < 1))
        continue;
      const auto count = static_cast<double>(records[c]);
      work.counters.push_back({std::string(session_.strings.view(counter.name)),
                               records[c],
                               count * weight,
                               std::sqrt(count * weight * more)});
    }
  }

  /// Waits that were scaled come to what the wall time leaves beside samples and calls; their kinds
  /// keep their shares.
  static void add_to_waits(PartTimes& parts, double more) {
    double all = 0;
    for (const auto& [name, time] : parts)
      all += (name & 3) == kWaiting ? time.ns : 0;
    for (auto& [name, time] : parts)
      if ((name & 3) == kWaiting && all > 0)
        time = {time.ns * (1 + more / all), time.idle_ns * (1 + more / all)};
  }

  const Session& session_;
  const CpuProfile& cpu_;
  const std::vector<RegionKey>& keys_;
  const std::vector<model::Region>& regions_;
  const OwnCode own_code_;
  const HotFunctions hot_functions_;
  bool gpu_recorded_ = false, aggregate_ = false;
  std::vector<Stretches> busy_, in_calls_;
  const Stretches none_;
  std::map<std::uint32_t, std::uint32_t> first_of_pid_;
  model::Strings names_;
  std::vector<std::uint32_t> meaning_;
  std::uint32_t unknown_ = 0, kernel_ = 0, unrecorded_wait_ = 0;
  std::uint32_t wait_parts_[std::size(model::kWaitNames)] = {};
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
  if (session.cpu.interval_ns <= 0 ||
      (session.cpu.samples.empty() && session.cpu.waits.empty() && session.cpu.counts.empty()))
    return;
  const CpuSums sums(session, options, tree, contexts, keys, report.regions);
  std::vector<std::vector<CpuSums::Use>> uses;
  sums.uses(uses);
  report.cpu_outside = sums.outside();
  report.waits = waits_by_function(session, sums.own_code().code());
  if (keys.empty())
    whole = sums.whole();
  base::parallel_for(
      report.regions.size(),
      session.cpu.samples.size() < 20000 ? 1 : options.threads,
      [&](std::size_t r) {
        model::Region& region = report.regions[r];
        const auto wall =
            region.occurrences > 0 ? std::optional(region.wall.inclusive_ns) : std::nullopt;
        region.cpu = sums.work_of(
            uses[r], wall, region.kind != model::RangeKind::kPushPop || region.unclosed > 0);
      });
}

}  // namespace rangescope::analyze
