// PyTorch's profiler that a program runs itself, where no timeline shows what it costs: the two
// profilers cannot both record GPU work. Samples of its Python functions do.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/catalog.hpp"
#include "analyze/verdict/rule.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

constexpr std::string_view kProfilerFile = "torch/profiler/profiler.py";
constexpr std::string_view kCure = "profiler_in_loop";
/// Of the run: profiling a few steps on purpose takes less.
constexpr double kProfilerMatters = 0.05;

const model::CpuFunction* costliest_of_profiler(const model::CpuWork& cpu) {
  const model::CpuFunction* costliest = nullptr;
  for (const model::CpuFunction& function : cpu.callers) {
    if (!function.file.ends_with(kProfilerFile)) continue;
    if (costliest == nullptr || function.total_ns >= costliest->total_ns) costliest = &function;
  }
  return costliest;
}

bool is_named(const std::vector<model::Verdict>& lines) {
  return std::ranges::any_of(lines, [](const model::Verdict& line) { return line.cure == kCure; });
}

bool lacks_gpu_work(const model::Report& report) {
  return std::ranges::any_of(report.losses, [](const model::Loss& loss) {
    return loss.kind == model::LossKind("cupti_let_go");
  });
}

}  // namespace

void find_guest_profiler(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  if (!(report.run.duration_ns > 0) || is_named(out)) return;
  double profiler_ns = 0;
  const model::CpuFunction* costliest = nullptr;
  const auto add = [&](const model::CpuWork& cpu) {
    const model::CpuFunction* function = costliest_of_profiler(cpu);
    if (function == nullptr) return;
    profiler_ns += function->total_ns;
    if (costliest == nullptr || function->total_ns > costliest->total_ns) costliest = function;
  };
  if (report.cpu_outside) add(*report.cpu_outside);
  for (const model::Region& region : report.regions) {
    const bool is_root = region.path.size() == 1 && !region.process && !region.thread;
    if (is_root && !region.module && region.cpu) add(*region.cpu);
  }
  const double share = std::min(1.0, profiler_ns / report.run.duration_ns);
  if (costliest == nullptr || share < kProfilerMatters) return;

  std::string text = fmt::format(
      "PyTorch's profiler, which the program runs itself, takes {} of CPU time, {} of the run ({} "
      "in {})",
      base::format_ns(profiler_ns), share_text(share), costliest->name,
      base::file_name(costliest->file));
  if (lacks_gpu_work(report)) text += "; from its start on, GPU work cannot be recorded";
  model::Verdict verdict =
      facts.about_run("guest_profiler", std::move(text), share * report.run.duration_ns);
  verdict.severity = model::Weight::kWarning;
  verdict.attempt = cures::cure_of(kCure).attempt;
  verdict.evidence = {{"profiler_ns", profiler_ns}};
  out.push_back(std::move(verdict));
}

}  // namespace rangescope::analyze
