// What the launching thread does in the loop that is no part of the step: it compiles again,
// exports a profile, writes a checkpoint. Samples of its Python functions show it.
//
// Files alone do not: torch.load is in the file of torch.save, and each call of a compiled model
// passes through torch._dynamo, torch._functorch and torch._inductor. Frames are compiled in
// convert_frame.py, graphs of the backward pass in graph.py when it first runs. What other threads
// do is not counted: a thread that saves is the cure.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "analyze/cures/candidate.hpp"
#include "analyze/replay/between_calls.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::size_t kFewestCulpritSamples = 3;

struct Culprit {
  std::string_view cure;
  const char* what;  ///< that its thread does
  /// Behind the start. Two compilations are often one for a second shape, from which on it is
  /// dynamic, and one for the last batch.
  std::size_t fewest_instances;
  std::span<const CodePlace> places;
  bool copies_to_host = false;  ///< the copies to the CPU meanwhile are part of it
};

constexpr CodePlace kCompiler[] = {{"torch/_dynamo/convert_frame.py", ""},
                                   {"torch/_inductor/graph.py", ""}};
/// Behind a stretch of profiled steps. Where it starts does not count: a schedule that profiles
/// once warms up, starts and stops in three instances.
constexpr CodePlace kProfiler[] = {{"torch/profiler/profiler.py", "stop_trace"},
                                   {"torch/profiler/profiler.py", "_trace_ready"},
                                   {"torch/profiler/profiler.py", "export_chrome_trace"},
                                   {"torch/profiler/profiler.py", "key_averages"}};
constexpr CodePlace kCheckpoints[] = {
    {"torch/serialization.py", "save"},
    {"torch/distributed/checkpoint/state_dict_saver.py", "save"},
    {"torch/distributed/checkpoint/state_dict_saver.py", "save_state_dict"},
    {"safetensors/torch.py", "save_file"}};
constexpr Culprit kCulprits[] = {
    {"recompilations", "compiles again", 3, kCompiler},
    {"profiler_in_loop", "writes what PyTorch's profiler recorded", 2, kProfiler},
    {"checkpoints_in_loop", "writes checkpoints", 2, kCheckpoints, true},
};

/// The long stretches of the loop in which most samples are at a culprit's places.
struct SampledWork {
  Ids stretches;
  Ids copying;  ///< between them: copies to the CPU, their calls and waits
  double work_ns = 0;
  std::size_t instances = 0, last_instance = 0;
  std::size_t samples = 0, culprit_samples = 0;
};

/// What a thread does between stretches of one kind, where it launches nothing but copies to the
/// CPU there: the work goes on meanwhile, in calls, waits, and stretches that no sample hit.
class WorkBetween {
 public:
  explicit WorkBetween(const Recording& recording) : recording_(recording) {
    for (const Instance& instance : recording.instances())
      for (const Id work : instance.works)
        works_of_[replay::launch_of(recording.graph(), work)].push_back(work);
  }

  /// To `work`, whose stretches are of one thread, in order.
  void add_to(SampledWork& work) const {
    for (std::size_t next = 1; next < work.stretches.size(); ++next) {
      const Id before = work.stretches[next - 1], behind = work.stretches[next];
      const Ids between = copying_between(before, behind);
      if (between.empty())
        continue;
      append(work.copying, between);
      work.work_ns += static_cast<double>(recording_.operation(behind).start_ns -
                                          recording_.operation(before).end_ns);
    }
  }

 private:
  [[nodiscard]] bool is_copy_to_host(Id work) const {
    return recording_.operation(work).kind == Kind::kCopy &&
           recording_.copy(work).kind == model::CopyKind::kDeviceToHost;
  }
  /// Operations of the thread and their copies; nothing where the thread launches anything else.
  [[nodiscard]] Ids copying_between(Id before, Id behind) const {
    const std::span<const Id> of_thread =
        recording_.operations_of(recording_.operation(before).lane);
    Ids between;
    auto id = std::ranges::upper_bound(of_thread, before);
    for (; id != of_thread.end() && *id < behind; ++id) {
      between.push_back(*id);
      const auto works = works_of_.find(*id);
      if (works == works_of_.end())
        continue;
      const bool copies_only =
          std::ranges::all_of(works->second, [&](Id work) { return is_copy_to_host(work); });
      if (!copies_only)
        return {};
      append(between, works->second);
    }
    return between;
  }

  const Recording& recording_;
  std::unordered_map<Id, Ids> works_of_;  ///< by the call that launched them
};

SampledWork work_of(const Recording& recording, Findings& findings, const Culprit& culprit) {
  SampledWork work;
  const auto& instances = recording.instances();
  for (std::size_t index = kStartUpInstances; index < instances.size(); ++index) {
    const std::size_t before = work.stretches.size();
    for (const Id id : instances[index].calls) {
      if (!replay::is_long_stretch(recording.operation(id)) || findings.is_claimed(id))
        continue;
      const auto [samples, at_places] =
          findings.samples().share_at(recording, {id}, culprit.places);
      if (at_places == 0 || 2 * at_places < samples)
        continue;
      work.stretches.push_back(id);
      work.samples += samples;
      work.culprit_samples += at_places;
    }
    if (work.stretches.size() == before)
      continue;
    ++work.instances;
    work.last_instance = index;
  }
  work.work_ns = recording.duration_ns(work.stretches);
  if (culprit.copies_to_host)
    WorkBetween(recording).add_to(work);
  return work;
}

bool recurs(const Recording& recording, const Culprit& culprit, const SampledWork& work) {
  const bool is_repeated =
      work.instances >= culprit.fewest_instances && work.culprit_samples >= kFewestCulpritSamples;
  return is_repeated && is_late(recording, work.last_instance);
}

void find_culprit(const Recording& recording, Findings& findings, const Culprit& culprit) {
  SampledWork work = work_of(recording, findings, culprit);
  if (!recurs(recording, culprit, work))
    return;
  const double work_ns = work.work_ns;
  const double left =
      1 - static_cast<double>(work.culprit_samples) / static_cast<double>(work.samples);
  findings.claim(work.stretches);
  findings.claim(work.copying);
  Candidate candidate{culprit.cure,
                      fmt::format("the launching thread {} in {} of {} instances ({} in all)",
                                  culprit.what,
                                  work.instances,
                                  recording.instances().size(),
                                  base::format_ns(work_ns)),
                      {},
                      {left, 0, std::min(1.0, left + 0.1)},
                      {{"instances", static_cast<double>(work.instances)},
                       {"samples", static_cast<double>(work.culprit_samples)},
                       {"stretch_ns", work_ns}}};
  candidate.remedy.shortened = std::move(work.stretches);
  candidate.remedy.removed = std::move(work.copying);
  findings.add(std::move(candidate));
}

}  // namespace

void find_interpreter_work(const Recording& recording, Findings& findings) {
  if (!recording.has_steps() || findings.samples().empty())
    return;
  for (const Culprit& culprit : kCulprits)
    find_culprit(recording, findings, culprit);
}

}  // namespace rangescope::analyze::cures
