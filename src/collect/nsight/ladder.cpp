#include "collect/nsight/ladder.hpp"

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

RANGESCOPE_EMBED(ladder, RANGESCOPE_TSV);

namespace rangescope::collect {
namespace {

struct Name {
  Step step;
  std::string_view name;
};
constexpr Name kSteps[] = {{Step::kNative, "native"},
                           {Step::kRange, "range"},
                           {Step::kAppRange, "app-range"},
                           {Step::kApplication, "application"},
                           {Step::kKernel, "kernel"}};

std::string refused_calls(const Evidence& evidence) {
  std::string out;
  for (const auto& [api, count] : evidence.calls)
    if (const std::string reason = range_replay_refuses(api); !reason.empty())
      out += (out.empty() ? "" : ", ") + api + " (" + base::counted(count, "time") +
             (reason == api ? "" : "; " + reason) + ")";
  if (out.empty() && evidence.graph_launches > 0)
    out = base::counted(evidence.graph_launches, "CUDA graph launch");
  return out;
}

}  // namespace

std::string_view step_name(Step step) {
  for (const Name& one : kSteps)
    if (one.step == step) return one.name;
  return "?";
}

std::optional<Step> find_step(std::string_view name) {
  for (const Name& one : kSteps)
    if (one.name == name) return one.step;
  return std::nullopt;
}

std::string range_replay_refuses(std::string_view api) {
  // "cudaMallocAsync_v11020", "cuMemAllocAsync_ptsz": versions and per-thread variants are
  // suffixes.
  for (const auto& [reason, prefixes] : base::rows<2>(rangescope_ladder))
    for (const std::string_view prefix : base::split(prefixes, ' '))
      if (api.starts_with(prefix)) return std::string(reason.empty() ? prefix : reason);
  return {};
}

std::string calls_to_note() {
  std::string out =
      "cuCtxCreate,cuDevicePrimaryCtxRetain,cuMemAlloc,cuMemFree,cuModuleLoad,cuLibraryLoad";
  for (const auto& [reason, prefixes] : base::rows<2>(rangescope_ladder))
    for (const std::string_view each : base::split(prefixes, ' '))
      if (!each.starts_with("cuda") && !each.starts_with("cuMemAlloc") &&
          !each.starts_with("cuMemFree"))
        out += "," + std::string(each);
  return out;
}

bool is_ladder(std::string_view mode) {
  return mode == "auto" || mode.ends_with("-or-kernel");
}

std::vector<Rung> ladder(const Wish& wish, const Evidence& evidence, const Abilities& ncu) {
  if (!is_ladder(wish.mode)) {
    const auto only = find_step(wish.mode);
    return {{only.value_or(Step::kKernel), true, "asked for"}};
  }
  std::vector<Rung> rungs;
  const auto refuse = [&](Step step, std::string why) {
    rungs.push_back({step, false, std::move(why)});
  };
  const auto take = [&](Step step, std::string why) {
    rungs.push_back({step, true, std::move(why)});
  };

  if (!wish.ranges)
    refuse(Step::kNative, "no range was named");
  else if (wish.kernel_filter)
    refuse(Step::kNative, "a kernel filter was given");
  else if (wish.sections)
    refuse(Step::kNative,
           "sections were asked for; native counters give metrics (metrics=[...] alone would use "
           "them)");
  else if (!wish.native_counters)
    refuse(Step::kNative, wish.no_native_counters.empty()
                              ? "the native collector cannot collect counters here"
                              : wish.no_native_counters);
  else if (evidence.occurrences && *evidence.occurrences < 2)
    refuse(Step::kNative,
           "the range has one instance, and native counters take one pass per instance");
  else if (evidence.occurrences && *evidence.occurrences <= wish.every)
    refuse(Step::kNative, "of " + base::counted(*evidence.occurrences, "instance") +
                              " one is measured with every=" + std::to_string(wish.every) +
                              ", and native counters take one pass per instance");
  else
    take(Step::kNative, "metrics of a range with enough instances: no replay needed");

  const std::string calls = refused_calls(evidence);
  /// Why this mode cannot replay the ranges, "" where it may.
  const auto why_not = [&](Step step) -> std::string {
    const std::string me = "ncu " + to_string(ncu.version), name(step_name(step));
    if (!wish.ranges) return "no range was named";
    if (wish.kernel_filter) return "a kernel filter was given, and a range is measured as a whole";
    if (!ncu.takes("--replay-mode", name)) return me + " has no " + name + " replay";
    if (wish.every > 1 && !ncu.has("--range-filter"))
      return me + " cannot choose every " + std::to_string(wish.every) +
             ". occurrence (--range-filter came with 2023.1)";
    if (step == Step::kRange && !calls.empty())
      return "range replay cannot replay what was seen inside: " + calls;
    if (step == Step::kRange && evidence.contexts > 1)
      return "the range uses " + std::to_string(evidence.contexts) + " CUDA contexts";
    return evidence.kernels == 0 ? "no kernel was launched inside the range" : "";
  };
  for (const auto& [step, reason] :
       {std::pair{Step::kRange, std::string(evidence.kernels ? "nothing inside prevents it"
                                                             : "the program was not probed")},
        {Step::kAppRange,
         std::string("relaunches the program for every pass; allows any CUDA call inside") +
             (evidence.alike == false
                  ? "; instances differ, so the program must do the same every time"
                  : "")}}) {
    const std::string why = why_not(step);
    rungs.push_back({step, why.empty(), why.empty() ? reason : why});
  }

  take(Step::kKernel, wish.ranges
                          ? "each kernel inside the range is replayed; works where ranges cannot"
                          : "no range was named, so kernels are measured");
  if (wish.mode != "auto")
    std::erase_if(rungs, [&](const Rung& rung) {
      return rung.step == Step::kNative ||
             (rung.step == Step::kRange && wish.mode == "app-range-or-kernel");
    });
  return rungs;
}

bool try_again(const Outcome& outcome, int attempt, int retries) {
  return outcome.result != Result::kOk && outcome.transient && attempt <= retries;
}

}  // namespace rangescope::collect
