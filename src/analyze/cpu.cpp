#include "analyze/cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "analyze/digest.hpp"
#include "analyze/sets.hpp"
#include "analyze/stretches.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::CpuFrame;
using model::CpuProfile;
using model::CpuWork;
using model::Session;

using model::kMostFunctions;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kPartKinds[] = {"python", "native", "cuda", "waiting"};
enum PartKind : std::uint8_t { kPython, kNative, kCuda, kWaiting };
constexpr std::string_view kWaitNames[] = {"other", "lock", "I/O", "sleep", "preempted"};

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

/// Texts as numbers.
class PartNames {
 public:
  std::uint32_t intern(std::string_view text) {
    const auto [at, fresh] = known_.try_emplace(std::string(text), static_cast<std::uint32_t>(names_.size()));
    if (fresh) names_.emplace_back(text);
    return at->second;
  }
  [[nodiscard]] const std::string& text(std::uint32_t name) const { return names_[name]; }

 private:
  std::map<std::string, std::uint32_t, std::less<>> known_;
  std::vector<std::string> names_;
};

bool is_interpreter(std::string_view file) {
  return file.starts_with("libpython") || file.starts_with("python");
}

void add_counter(std::vector<model::CpuCounterSum>& into, model::CpuCounterSum sum) {
  const auto same = std::find_if(into.begin(), into.end(), [&](const auto& each) { return each.name == sum.name; });
  if (same == into.end()) return into.push_back(std::move(sum));
  same->records += sum.records;
  same->count += sum.count;
  same->deviation = std::hypot(same->deviation, sum.deviation);
}

/// Sums of one set of regions.
struct CpuSetSums {
  std::map<std::uint32_t, std::pair<double, double>> parts;  ///< name and kind: ns, and while the GPU was idle
  std::unordered_map<std::uint64_t, std::int64_t> stacks;    ///< stack << 2 | in a call << 1 | GPU idle
  double waits_ns = 0;                                       ///< all, those within calls too
  std::vector<std::int64_t> counts;                          ///< records of each counter; empty where there are none
};

class CpuSums {
 public:
  CpuSums(const Session& session, const Options& options, const Tree& tree, const Contexts& contexts,
          const std::vector<RegionKey>& keys)
      : session_(session), cpu_(session.cpu), keys_(keys) {
    aggregate_ = std::any_of(keys.begin(), keys.end(),
                             [](const RegionKey& key) { return key.process == kNone && key.thread == kNone; });
    gpu_recorded_ = !session.kernels.empty() || !session.copies.empty() || !session.graph_launches.empty();
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
    const auto add = [&](const auto& work) {
      for (const auto& each : work) {
        const std::uint32_t stream = each.stream;
        if (stream >= session_.streams.size() || session_.streams[stream].process >= busy_.size()) continue;
        busy_[session_.streams[stream].process].add(each.start_ns, each.end_ns);
      }
    };
    add(session_.kernels);
    add(session_.copies);
    add(session_.memsets);
    add(session_.graph_launches);
    for (Stretches& each : busy_) each.finish();
  }

  void calls_by_thread() {
    in_calls_.resize(session_.threads.size());
    for (const model::Launch& call : session_.launches)
      if (call.thread < in_calls_.size() && call.end_ns != kOpen)
        in_calls_[call.thread].add(call.start_ns, call.end_ns);
    for (Stretches& each : in_calls_) each.finish();
  }

  void meanings() {
    meaning_.resize(cpu_.stacks.size());
    std::vector<std::uint32_t> cuda(cpu_.stacks.size(), kNone);  // the outermost function of CUDA, by kind
    const std::uint32_t python = part(kPython, "");
    for (std::size_t s = 0; s < cpu_.stacks.size(); ++s) {
      const model::CpuStack& stack = cpu_.stacks[s];
      const CpuFrame& frame = cpu_.frames[stack.frame];
      const std::string_view module = base::file_name(session_.strings.view(frame.module));
      if (stack.parent != kNone) cuda[s] = cuda[stack.parent];
      if (cuda[s] == kNone && (module.starts_with("libcudart.so") || module.starts_with("libcuda.so")))
        cuda[s] = part(kCuda, cuda_kind(session_.strings.view(frame.name)));
      if (cuda[s] != kNone)
        meaning_[s] = cuda[s];
      else if (frame.kind == model::FrameKind::kPython || is_interpreter(module))
        meaning_[s] = python;
      else
        meaning_[s] = part(kNative, frame.kind == model::FrameKind::kCut         ? "(unknown)"
                                    : module.empty() || module.starts_with("//") ? "(JIT)"
                                                                                 : module);
    }
    unknown_ = part(kNative, "(unknown)");
    kernel_ = part(kNative, "[kernel]");
    unrecorded_wait_ = part(kWaiting, "other");
  }

  /// Kind and name of a part as one number.
  std::uint32_t part(PartKind kind, std::string_view name) { return names_.intern(name) << 2 | kind; }

  [[nodiscard]] const Stretches* busy_of(std::uint32_t thread) const {
    const std::uint32_t process = session_.threads[thread].process;
    return process < busy_.size() ? &busy_[process] : nullptr;
  }
  [[nodiscard]] double idle_ns(std::uint32_t thread, std::int64_t start, std::int64_t end) const {
    const Stretches* busy = busy_of(thread);
    return static_cast<double>(end - start - (busy != nullptr ? busy->within(start, end) : 0));
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
    for (std::uint32_t i = 0; i < cpu_.waits.size(); ++i) {
      const model::CpuWait& wait = cpu_.waits[i];
      if (const std::uint32_t thread = thread_of(wait.thread); thread != kNone) {
        points.push_back({wait.start_ns, wait.end_ns, thread});
        source.push_back(i);
      }
    }
    const std::size_t not_counts = points.size();
    for (const model::CpuCount& count : cpu_.counts) {
      if (const std::uint32_t thread = thread_of(count.thread); thread != kNone) {
        points.push_back({count.at_ns, count.at_ns, thread});
        source.push_back(count.counter);
      }
    }
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
      } else if (p >= not_counts) {
        sums.counts.resize(cpu_.counters.size());
        ++sums.counts[source[p]];
      } else {
        const double length = static_cast<double>(point.end_ns - point.start_ns);
        const double inside = static_cast<double>(calls.within(point.start_ns, point.end_ns));
        const double outside = length - inside;
        sums.waits_ns += length;
        auto& into = sums.parts[part(kWaiting, kWaitNames[static_cast<std::size_t>(cpu_.waits[source[p]].kind)])];
        into.first += outside;
        // Calls are short beside a wait that holds one: idle time is shared out by length.
        into.second += length > 0 ? idle_ns(point.thread, point.start_ns, point.end_ns) * outside / length : 0;
      }
    }
  }

  void calls(const Contexts& contexts, const Tree& tree) {
    if (contexts.of_launch.size() != session_.launches.size()) return;
    call_sets_ = build_sets(tree, contexts, keys_);
    call_sums_.resize(call_sets_.size());
    for (std::size_t l = 0; l < session_.launches.size(); ++l) {
      const model::Launch& call = session_.launches[l];
      if (call.end_ns == kOpen || call.end_ns < call.start_ns || call.thread >= session_.threads.size()) continue;
      auto& into =
          call_sums_[call_sets_.of_context[contexts.of_launch[l]]].parts[part(kCuda, call_kind(session_, call))];
      into.first += static_cast<double>(call.end_ns - call.start_ns);
      into.second += idle_ns(call.thread, call.start_ns, call.end_ns);
    }
  }

  /// The region of the aggregate (of a process where there is none) in which it is drawn, or that of another domain.
  [[nodiscard]] bool is_primary(const SetEntry& entry) const {
    return entry.exclusive && !entry.inherited && entry.region < keys_.size() && keys_[entry.region].thread == kNone &&
           (!aggregate_ || keys_[entry.region].process == kNone);
  }

 public:
  void uses(std::vector<std::vector<Use>>& out) const {
    out.resize(keys_.size());
    const auto add = [&](const Sets& sets, const std::vector<CpuSetSums>& sums) {
      for (std::size_t s = 0; s < sums.size(); ++s) {
        bool first = true;  // a chain that is in ranges of two domains is drawn in one
        for (const SetEntry& entry : sets.of(static_cast<std::uint32_t>(s))) {
          if (entry.inherited || entry.region >= keys_.size()) continue;
          const bool primary = first && is_primary(entry);
          if (primary) first = false;
          out[entry.region].push_back({&sums[s], entry.exclusive, primary});
        }
      }
    };
    add(point_sets_, point_sums_);
    add(call_sets_, call_sums_);
  }

  /// What no region draws. Of threads that neither opened a range nor called CUDA their samples, and no waits.
  [[nodiscard]] base::Held<CpuWork> outside() const {
    std::vector<Use> uses;
    const auto add = [&](const Sets& sets, const std::vector<CpuSetSums>& sums) {
      for (std::size_t s = 0; s < sums.size(); ++s) {
        const auto entries = sets.of(static_cast<std::uint32_t>(s));
        if (std::none_of(entries.begin(), entries.end(), [&](const SetEntry& e) { return is_primary(e); }))
          uses.push_back({&sums[s], true, true});
      }
    };
    add(point_sets_, point_sums_);
    add(call_sets_, call_sums_);
    std::map<std::uint32_t, std::uint32_t> processes;
    for (std::uint32_t p = 0; p < session_.processes.size(); ++p) processes.try_emplace(session_.processes[p].pid, p);
    CpuSetSums others;
    for (const model::CpuSample& sample : cpu_.samples) {
      if (cpu_.threads[sample.thread].thread != kNone) continue;
      const auto process = processes.find(cpu_.threads[sample.thread].pid);
      const bool busy = process != processes.end() && busy_[process->second].holds(sample.at_ns);
      ++others.stacks[std::uint64_t{sample.stack} << 2 | (busy ? 0u : 1u)];
    }
    uses.push_back({&others, true, true});
    return work_of(uses, {});
  }

  /// Without a wall time: of what samples, calls and waits come to. `at_least`: of more than that where they come to
  /// more than chance adds, as those of all threads do while a start/end range is open.
  [[nodiscard]] base::Held<CpuWork> work_of(const std::vector<Use>& uses, std::optional<double> wall_ns,
                                            bool at_least = false) const {
    CpuWork work;
    work.interval_ns = static_cast<double>(cpu_.interval_ns);
    const double interval = work.interval_ns;
    std::map<std::uint32_t, std::pair<double, double>> parts;
    std::unordered_map<std::uint64_t, std::int64_t> stacks;
    std::map<std::uint32_t, std::int64_t> own;
    double waits = 0, recorded = 0;
    std::vector<std::int64_t> records(cpu_.counters.size());
    for (const Use& use : uses) {
      for (std::size_t c = 0; c < use.sums->counts.size(); ++c) records[c] += use.sums->counts[c];
      for (const auto& [name, ns] : use.sums->parts) {
        parts[name].first += ns.first;
        parts[name].second += ns.second;
        recorded += ns.first;
      }
      for (const auto& [stack, count] : use.sums->stacks) {
        stacks[stack] += count;
        if (use.primary) own[static_cast<std::uint32_t>(stack >> 2)] += count;
      }
      waits += use.sums->waits_ns;
    }
    // Samples outside calls, by what they mean.
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> counts;
    std::int64_t outside = 0, outside_idle = 0;
    for (const auto& [key, count] : stacks) {
      work.samples += count;
      if ((key & 2) != 0) continue;
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
    if (work.samples == 0 && recorded <= 0 && work.counters.empty()) return {};
    const double chance = 3 * interval * std::sqrt(static_cast<double>(outside) + 1);
    double wall = recorded + static_cast<double>(outside) * interval;
    if (wall_ns && (!at_least || wall <= *wall_ns + chance)) wall = std::max(*wall_ns, at_least ? recorded : 0);
    double rest = std::max(0.0, wall - recorded);
    // Samples of the kernel are missing: what they would have been, where that is more than chance.
    double missing = 0;
    if (!cpu_.kernel && cpu_.switches) {
      const double gap = rest - static_cast<double>(outside) * interval;
      if (gap > chance) missing = gap;
    }
    double idle_rest = outside > 0 ? static_cast<double>(outside_idle) / static_cast<double>(outside) : 1;
    if (missing > 0) {
      parts[kernel_].first += missing;
      parts[kernel_].second += missing * idle_rest;
      rest -= missing;
    }
    // Where nothing tells waits from running, samples alone say how long it ran.
    if (!cpu_.switches && static_cast<double>(outside) * interval < rest) {
      const double waited = rest - static_cast<double>(outside) * interval;
      auto& into = parts[unrecorded_wait_];
      into.first += waited;
      into.second += waited * idle_rest;
      rest -= waited;
    }
    if (outside > 0) {
      const double each = rest / static_cast<double>(outside);
      for (const auto& [name, count] : counts) {
        parts[name].first += static_cast<double>(count.first) * each;
        parts[name].second += static_cast<double>(count.second) * each;
      }
    } else if (rest > 0) {
      parts[unknown_].first += rest;  // too short for a sample
      parts[unknown_].second += rest;
    }
    model::CpuPart* const totals[] = {&work.python, &work.native, &work.cuda, &work.waiting};
    for (std::size_t k = 0; k < 4; ++k) totals[k]->kind = kPartKinds[k];
    for (const auto& [name, ns] : parts) {
      const std::size_t kind = name & 3;
      if (ns.first <= 0) continue;
      work.parts.push_back({std::string(kPartKinds[kind]), names_.text(name >> 2), ns.first, ns.second});
      totals[kind]->ns += ns.first;
      totals[kind]->gpu_idle_ns += ns.second;
    }
    std::stable_sort(work.parts.begin(), work.parts.end(),
                     [](const model::CpuPart& a, const model::CpuPart& b) { return a.ns > b.ns; });
    if (!gpu_recorded_) {
      for (model::CpuPart* total : totals) total->gpu_idle_ns = kNaN;
      for (model::CpuPart& each : work.parts) each.gpu_idle_ns = kNaN;
    }
    for (const auto& [stack, count] : own) work.stacks.push_back({stack, count});
    const double ran = std::max(0.0, wall - waits - missing);
    if (work.samples > 0) functions(stacks, ran / static_cast<double>(work.samples), work);
    return work;
  }

 private:
  /// What was sampled and never recorded is absent; what is recorded each time is 0.
  void counters(const std::vector<std::int64_t>& records, CpuWork& work) const {
    for (std::size_t c = 0; c < records.size(); ++c) {
      const model::CpuCounter& counter = cpu_.counters[c];
      if (records[c] == 0 && !counter.exact()) continue;
      const auto count = static_cast<double>(records[c]);
      add_counter(work.counters, {std::string(session_.strings.view(counter.name)), records[c], count * counter.weight,
                                  counter.exact() ? 0 : std::sqrt(count) * counter.weight});
    }
  }

  void functions(const std::unordered_map<std::uint64_t, std::int64_t>& stacks, double each, CpuWork& work) const {
    std::unordered_map<std::uint32_t, std::pair<double, double>> of_frame;
    std::vector<std::uint32_t> seen;
    for (const auto& [key, count] : stacks) {
      const double ns = static_cast<double>(count) * each;
      seen.clear();
      const auto first = static_cast<std::uint32_t>(key >> 2);
      for (std::uint32_t s = first; s < cpu_.stacks.size(); s = cpu_.stacks[s].parent) {
        const std::uint32_t frame = cpu_.stacks[s].frame;
        if (s == first) of_frame[frame].first += ns;
        seen.push_back(frame);
      }
      std::sort(seen.begin(), seen.end());  // a recursive function counts once
      seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
      for (const std::uint32_t frame : seen) of_frame[frame].second += ns;
    }
    std::vector<std::uint32_t> frames;
    for (const auto& [frame, ns] : of_frame)
      if (cpu_.frames[frame].kind != model::FrameKind::kCut) frames.push_back(frame);
    const auto take = [&](auto value, std::vector<model::CpuFunction>& out) {
      const std::size_t count = std::min(frames.size(), kMostFunctions);
      std::partial_sort(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(count), frames.end(),
                        [&](std::uint32_t a, std::uint32_t b) {
                          const double x = value(of_frame.at(a)), y = value(of_frame.at(b));
                          return x != y ? x > y : a < b;
                        });
      for (std::size_t i = 0; i < count; ++i) {
        const auto& ns = of_frame.at(frames[i]);
        if (value(ns) <= 0) break;
        model::CpuFunction function = function_of(session_, frames[i]);
        function.self_ns = ns.first;
        function.total_ns = ns.second;
        out.push_back(std::move(function));
      }
    };
    take([](const std::pair<double, double>& ns) { return ns.first; }, work.functions);
    take([](const std::pair<double, double>& ns) { return ns.second; }, work.callers);
  }

  const Session& session_;
  const CpuProfile& cpu_;
  const std::vector<RegionKey>& keys_;
  bool gpu_recorded_ = false, aggregate_ = false;
  std::vector<Stretches> busy_, in_calls_;
  PartNames names_;
  std::vector<std::uint32_t> meaning_;
  std::uint32_t unknown_ = 0, kernel_ = 0, unrecorded_wait_ = 0;
  Sets point_sets_, call_sets_;
  std::vector<CpuSetSums> point_sums_, call_sums_;
};

}  // namespace

std::string_view cuda_kind(std::string_view function) {
  const auto has = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
  if (has("Launch")) return "launch";
  if (has("Synchronize") || has("EventQuery") || has("StreamQuery")) return "synchronize";
  if (has("Memcpy")) return "copy";
  if (has("Memset")) return "set";
  if (has("Malloc") || has("Free") || has("MemAlloc") || has("MemPool") || has("MemCreate") || has("MemMap") ||
      has("HostRegister"))
    return "allocate";
  if (has("Module") || has("Library") || has("GetFunction") || has("FuncLoad")) return "load";
  return "other";
}

model::CpuFunction function_of(const Session& session, std::uint32_t number) {
  const CpuFrame& frame = session.cpu.frames[number];
  model::CpuFunction function;
  function.name = session.strings.view(frame.name);
  function.module = session.strings.view(frame.module);
  if (function.name.empty())
    function.name = function.module.empty() ? "(JIT)" : fmt::format("[{}]", base::file_name(function.module));
  if (function.module == "[kernel]") function.name = "[kernel]";
  if (frame.kind == model::FrameKind::kCut) function.name = "(cut)";
  function.file = session.strings.view(frame.file);
  function.line = frame.line;
  function.python = frame.kind == model::FrameKind::kPython;
  function.frame = number;
  return function;
}

void add_cpu_work(CpuWork& into, const CpuWork& other) {
  const auto sum = [](model::CpuPart& to, const model::CpuPart& from) {
    to.ns += from.ns;
    to.gpu_idle_ns += from.gpu_idle_ns;
  };
  into.samples += other.samples;
  sum(into.python, other.python);
  sum(into.native, other.native);
  sum(into.cuda, other.cuda);
  sum(into.waiting, other.waiting);
  for (const model::CpuPart& part : other.parts) {
    const auto same = std::find_if(into.parts.begin(), into.parts.end(),
                                   [&](const model::CpuPart& p) { return p.kind == part.kind && p.name == part.name; });
    same == into.parts.end() ? into.parts.push_back(part) : sum(*same, part);
  }
  std::stable_sort(into.parts.begin(), into.parts.end(),
                   [](const model::CpuPart& a, const model::CpuPart& b) { return a.ns > b.ns; });
  const auto functions = [](std::vector<model::CpuFunction>& to, const std::vector<model::CpuFunction>& from,
                            double model::CpuFunction::*by) {
    for (const model::CpuFunction& function : from) {
      const auto same =
          std::find_if(to.begin(), to.end(), [&](const model::CpuFunction& f) { return f.frame == function.frame; });
      if (same == to.end()) {
        to.push_back(function);
      } else {
        same->self_ns += function.self_ns;
        same->total_ns += function.total_ns;
      }
    }
    std::stable_sort(to.begin(), to.end(), [by](const auto& a, const auto& b) { return a.*by > b.*by; });
    if (to.size() > kMostFunctions) to.resize(kMostFunctions);
  };
  functions(into.functions, other.functions, &model::CpuFunction::self_ns);
  functions(into.callers, other.callers, &model::CpuFunction::total_ns);
  into.stacks.insert(into.stacks.end(), other.stacks.begin(), other.stacks.end());
  for (const model::CpuCounterSum& counter : other.counters) add_counter(into.counters, counter);
}

CpuWork own_cpu_work(const model::Report& report, const model::Region& region) {
  CpuWork own = *region.cpu;
  for (const model::Region& inside : report.regions) {
    if (inside.parent != region.id || !inside.cpu) continue;
    const auto less = [](model::CpuPart& part, const model::CpuPart& other) {
      if (part.kind == other.kind && part.name == other.name) part.ns = std::max(0.0, part.ns - other.ns);
    };
    for (model::CpuPart CpuWork::*part : {&CpuWork::python, &CpuWork::native, &CpuWork::cuda, &CpuWork::waiting})
      less(own.*part, (*inside.cpu).*part);
    for (model::CpuPart& part : own.parts)
      for (const model::CpuPart& other : inside.cpu->parts) less(part, other);
    for (model::CpuFunction& function : own.functions)
      for (const model::CpuFunction& other : inside.cpu->functions)
        if (function.frame == other.frame) function.self_ns = std::max(0.0, function.self_ns - other.self_ns);
    own.samples = std::max<std::int64_t>(0, own.samples - inside.cpu->samples);
  }
  std::stable_sort(own.parts.begin(), own.parts.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  std::stable_sort(own.functions.begin(), own.functions.end(),
                   [](const auto& a, const auto& b) { return a.self_ns > b.self_ns; });
  return own;
}

/// What is longer stands in a sentence without its template arguments, as kernels do where they are compared.
constexpr std::size_t kLongName = 80;

std::string cpu_causes(const model::Region& region) {
  return region.cpu ? cpu_causes(*region.cpu, region.gpu ? static_cast<double>(region.gpu->kernels) : 0) : "";
}

std::string cpu_causes(const CpuWork& cpu, double kernels) {
  const double wall = cpu.whole_ns();
  std::vector<std::string> texts;
  for (const model::CpuPart& part : cpu.parts) {
    if (part.ns < 0.1 * wall || texts.size() == 3) break;
    if (cpu.samples < 20 && (part.kind == "python" || part.kind == "native")) continue;  // others are recorded
    std::string text = base::format_share(part.ns / wall) + (texts.empty() ? " of its time is " : " ");
    if (part.kind == "python") {
      text += "Python";
      // The Python function whose own code, interpreter's work included, takes most.
      const auto python = std::find_if(cpu.functions.begin(), cpu.functions.end(),
                                       [](const model::CpuFunction& f) { return f.python; });
      if (python != cpu.functions.end()) text += fmt::format(" in {}:{}", base::file_name(python->file), python->name);
    } else if (part.kind == "native") {
      text += part.name == "[kernel]" ? "the operating system" : part.name;
      const auto function = std::find_if(cpu.functions.begin(), cpu.functions.end(), [&](const model::CpuFunction& f) {
        return !f.python && base::file_name(f.module) == part.name;
      });
      if (part.name != "[kernel]" && function != cpu.functions.end() && !function->name.starts_with('['))
        text += " in " + (function->name.size() > kLongName ? folded_kernel(function->name) : function->name);
    } else if (part.kind == "cuda") {
      text += part.name == "launch" ? "launching" : "CUDA calls: " + part.name;
      if (part.name == "launch" && kernels > 0)
        text += fmt::format(" ({} of {})", base::counted(static_cast<std::uint64_t>(kernels), "kernel"),
                            base::format_ns(part.ns / kernels));
    } else {
      text += part.name == "preempted" ? "waiting for a free core" : "waiting: " + part.name;
    }
    texts.push_back(base::printable(text));
  }
  return base::join(texts, ", ");
}

void add_cpu(const Session& session, const Options& options, const Tree& tree, const Contexts& contexts,
             const std::vector<RegionKey>& keys, model::Report& report) {
  if (session.cpu.interval_ns <= 0 ||
      (session.cpu.samples.empty() && session.cpu.waits.empty() && session.cpu.counts.empty()))
    return;
  const CpuSums sums(session, options, tree, contexts, keys);
  std::vector<std::vector<CpuSums::Use>> uses;
  sums.uses(uses);
  report.cpu_outside = sums.outside();
  base::parallel_for(report.regions.size(), session.cpu.samples.size() < 20000 ? 1 : options.threads,
                     [&](std::size_t r) {
                       model::Region& region = report.regions[r];
                       const bool exact = region.kind == model::RangeKind::kPushPop && region.unclosed == 0;
                       std::optional<double> wall;
                       if (region.occurrences > 0) wall = region.wall.inclusive_ns;
                       region.cpu = sums.work_of(uses[r], wall, !exact);
                     });
}

}  // namespace rangescope::analyze
