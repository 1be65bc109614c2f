#include "collect/nsight/ladder.hpp"

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

RANGESCOPE_EMBED(ladder, RANGESCOPE_TSV);

namespace rangescope::collect {
namespace {

struct StepName {
  Step step;
  std::string_view name;
};
constexpr StepName kSteps[] = {{Step::kNative, "native"},
                               {Step::kRange, "range"},
                               {Step::kAppRange, "app-range"},
                               {Step::kApplication, "application"},
                               {Step::kKernel, "kernel"}};

/// "cudaMalloc (3 times), ...": calls inside the ranges that range replay refuses.
std::string refused_calls(const Evidence& evidence) {
  std::vector<std::string> calls;
  for (const auto& [api, count] : evidence.calls) {
    const std::string reason = range_replay_refuses(api);
    if (reason.empty())
      continue;
    std::string details = base::counted(count, "time");
    if (reason != api)
      details += "; " + reason;
    calls.push_back(api + " (" + details + ")");
  }
  if (calls.empty() && evidence.graph_launches > 0)
    return base::counted(evidence.graph_launches, "CUDA graph launch");
  return base::join(calls, ", ");
}

}  // namespace

std::string_view step_name(Step step) {
  for (const StepName& entry : kSteps)
    if (entry.step == step)
      return entry.name;
  return "?";
}

std::optional<Step> find_step(std::string_view name) {
  for (const StepName& entry : kSteps)
    if (entry.name == name)
      return entry.step;
  return std::nullopt;
}

std::string range_replay_refuses(std::string_view api) {
  // "cudaMallocAsync_v11020", "cuMemAllocAsync_ptsz": versions and per-thread variants are
  // suffixes.
  for (const auto& [reason, prefixes] : base::rows<2>(rangescope_ladder))
    for (const std::string_view prefix : base::split(prefixes, ' '))
      if (api.starts_with(prefix))
        return std::string(reason.empty() ? prefix : reason);
  return {};
}

std::string calls_to_note() {
  std::string calls =
      "cuCtxCreate,cuDevicePrimaryCtxRetain,cuMemAlloc,cuMemFree,cuModuleLoad,cuLibraryLoad";
  for (const auto& [reason, prefixes] : base::rows<2>(rangescope_ladder)) {
    for (const std::string_view prefix : base::split(prefixes, ' ')) {
      const bool is_listed = prefix.starts_with("cuMemAlloc") || prefix.starts_with("cuMemFree");
      const bool is_of_runtime = prefix.starts_with("cuda");
      if (!is_listed && !is_of_runtime)
        calls += "," + std::string(prefix);
    }
  }
  return calls;
}

bool is_ladder(std::string_view mode) {
  return mode == "auto" || mode.ends_with("-or-kernel");
}

namespace {

/// Why native counters cannot measure the ranges; "" if they can.
std::string no_native_reason(const Wish& wish, const Evidence& evidence) {
  if (!wish.ranges)
    return "no range was named";
  if (wish.kernel_filter)
    return "a kernel filter was given";
  if (wish.sections)
    return "sections were asked for; native counters give metrics (metrics=[...] alone would use "
           "them)";
  if (!wish.native_counters) {
    if (!wish.no_native_counters.empty())
      return wish.no_native_counters;
    return "the native collector cannot collect counters here";
  }
  if (!evidence.occurrences)
    return {};
  const std::uint64_t instances = *evidence.occurrences;
  if (instances < 2)
    return "the range has one instance, and native counters take one pass per instance";
  if (instances <= wish.every)
    return "of " + base::counted(instances, "instance") +
           " one is measured with every=" + std::to_string(wish.every) +
           ", and native counters take one pass per instance";
  return {};
}

/// Why ncu cannot replay the ranges in this mode; "" if it can.
std::string no_replay_reason(Step step,
                             const Wish& wish,
                             const Evidence& evidence,
                             const Abilities& ncu) {
  const std::string tool = "ncu " + to_string(ncu.version), mode(step_name(step));
  if (!wish.ranges)
    return "no range was named";
  if (wish.kernel_filter)
    return "a kernel filter was given, and a range is measured as a whole";
  if (!ncu.takes("--replay-mode", mode))
    return tool + " has no " + mode + " replay";
  if (wish.every > 1 && !ncu.has("--range-filter"))
    return tool + " cannot choose every " + std::to_string(wish.every) +
           ". occurrence (--range-filter came with 2023.1)";
  if (step == Step::kRange) {
    const std::string calls = refused_calls(evidence);
    if (!calls.empty())
      return "range replay cannot replay what was seen inside: " + calls;
    if (evidence.contexts > 1)
      return "the range uses " + std::to_string(evidence.contexts) + " CUDA contexts";
  }
  if (evidence.kernels == 0)
    return "no kernel was launched inside the range";
  return {};
}

/// Taken for `reason` unless there is one against it.
Rung rung_unless(Step step, const std::string& obstacle, const std::string& reason) {
  if (!obstacle.empty())
    return {step, false, obstacle};
  return {step, true, reason};
}

}  // namespace

std::vector<Rung> ladder(const Wish& wish, const Evidence& evidence, const Abilities& ncu) {
  if (!is_ladder(wish.mode)) {
    const auto only_step = find_step(wish.mode);
    return {{only_step.value_or(Step::kKernel), true, "asked for"}};
  }
  std::vector<Rung> rungs;
  rungs.push_back(rung_unless(Step::kNative,
                              no_native_reason(wish, evidence),
                              "metrics of a range with enough instances: no replay needed"));
  rungs.push_back(
      rung_unless(Step::kRange,
                  no_replay_reason(Step::kRange, wish, evidence, ncu),
                  evidence.kernels ? "nothing inside prevents it" : "the program was not probed"));
  std::string relaunch = "relaunches the program for every pass; allows any CUDA call inside";
  if (evidence.alike == false)
    relaunch += "; instances differ, so the program must do the same every time";
  rungs.push_back(rung_unless(
      Step::kAppRange, no_replay_reason(Step::kAppRange, wish, evidence, ncu), relaunch));
  rungs.push_back({Step::kKernel,
                   true,
                   wish.ranges
                       ? "each kernel inside the range is replayed; works where ranges cannot"
                       : "no range was named, so kernels are measured"});
  if (wish.mode != "auto") {
    const bool skips_range = wish.mode == "app-range-or-kernel";
    std::erase_if(rungs, [&](const Rung& rung) {
      return rung.step == Step::kNative || (rung.step == Step::kRange && skips_range);
    });
  }
  return rungs;
}

bool try_again(const Outcome& outcome, int attempt, int retries) {
  return outcome.result != Result::kOk && outcome.transient && attempt <= retries;
}

}  // namespace rangescope::collect
