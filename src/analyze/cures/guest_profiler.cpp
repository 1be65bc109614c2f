#include "analyze/cures/guest_profiler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/catalog.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

constexpr std::string_view kProfilerFile = "torch/profiler/profiler.py";
constexpr std::string_view kProfilerCure = "profiler_in_loop";
/// Of the run: profiling a few steps on purpose takes less.
constexpr double kProfilerMatters = 0.05;

/// What the profiler's functions take, and the one that calls the others.
struct ProfilerTime {
  double ns = 0;
  const model::CpuFunction* outermost = nullptr;

  void add(const model::CpuWork& cpu) {
    const model::CpuFunction* costliest = nullptr;
    for (const model::CpuFunction& function : cpu.callers) {
      if (!function.file.ends_with(kProfilerFile))
        continue;
      if (costliest == nullptr || function.total_ns >= costliest->total_ns)
        costliest = &function;
    }
    if (costliest == nullptr)
      return;
    ns += costliest->total_ns;
    if (outermost == nullptr || costliest->total_ns > outermost->total_ns)
      outermost = costliest;
  }
};

/// Outermost ranges and the time outside them: each sample is in one of these.
ProfilerTime profiler_time(const model::Report& report) {
  ProfilerTime time;
  if (report.cpu_outside)
    time.add(*report.cpu_outside);
  for (const model::Region& region : report.regions) {
    const bool is_aggregate = !region.process && !region.thread;
    const bool is_outermost = is_aggregate && region.path.size() == 1 && !region.module;
    if (is_outermost && region.cpu)
      time.add(*region.cpu);
  }
  return time;
}

}  // namespace

void add_guest_profiler(model::Report& report) {
  const double run_ns = report.run.duration_ns;
  const bool is_named = std::ranges::any_of(
      report.verdict, [](const model::Verdict& line) { return line.cure == kProfilerCure; });
  const ProfilerTime time = profiler_time(report);
  if (is_named || time.outermost == nullptr || !(run_ns > 0))
    return;
  const double saves_ns = std::min(time.ns, run_ns);
  if (saves_ns < kProfilerMatters * run_ns)
    return;

  const Cure& cure = cure_of(kProfilerCure);
  model::Verdict line;
  line.kind = "cure";
  line.cure = kProfilerCure;
  line.severity = model::Weight::kWarning;
  line.attempt = cure.attempt;
  line.saves_ns = saves_ns;
  line.saves_share = saves_ns / run_ns;
  line.evidence = {{"profiler_ns", time.ns}};
  line.text = fmt::format(
      "PyTorch's profiler, which the program runs itself, takes {} of CPU time ({} in {}); {}, the "
      "run is shorter by about as much ({})",
      base::format_ns(time.ns),
      time.outermost->name,
      base::file_name(time.outermost->file),
      cure.done,
      base::format_share(*line.saves_share));
  const bool lacks_gpu_work = std::ranges::any_of(report.losses, [](const model::Loss& loss) {
    return loss.kind == model::LossKind("cupti_let_go");
  });
  if (lacks_gpu_work)
    line.text += ", and GPU work can be recorded";
  report.verdict.push_back(std::move(line));
}

}  // namespace rangescope::analyze::cures
