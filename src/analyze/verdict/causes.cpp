#include "analyze/verdict/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyze/names/kernel_labels.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

constexpr double kPart = 0.1, kHottest = 0.05;
constexpr double kTaken = 0.75, kOthers = 0.2;  // of the CPUs
constexpr std::int64_t kEnough = 20;            // samples: fewer name nothing
constexpr std::size_t kLongName = 80;  // longer ones lose their template arguments in a sentence

std::string function_text(const model::CpuFunction& function) {
  if (function.python)
    return std::string(base::file_name(function.file)) + ":" + function.name;
  model::CodePlace place = function.place();
  if (place.name.size() > kLongName)
    place.name = folded_kernel(place.name);
  return place_text(place);
}

/// ", called from step (train.py:12)": the program's own function that called a library's.
std::string caller_text(const model::CpuFunction& hottest) {
  if (!hottest.caller.known())
    return {};
  return ", called from " + base::printable(place_text(hottest.caller));
}

/// "58 % Python, 21 % launching (624 kernels, 3.1 us each)"
std::string largest_parts_text(const model::CpuWork& cpu,
                               double kernels,
                               const model::RunInfo& run) {
  const double wall_ns = cpu.whole_ns();
  std::vector<std::string> texts;
  for (const model::CpuPart& part : cpu.parts) {
    if (part.ns < kPart * wall_ns || texts.size() == 3)
      break;
    const bool is_sampled = part.kind == "python" || part.kind == "native";
    if (is_sampled && cpu.samples < kEnough)
      continue;
    const std::string name = base::printable(part_text(part, kernels, run));
    texts.push_back(share_text(part.ns / wall_ns) + " " + name);
  }
  return base::join(texts, ", ");
}

/// The function with the most self time; null where it has no name or samples are too few.
const model::CpuFunction* hottest_function(const model::CpuWork& cpu) {
  if (cpu.samples < kEnough)
    return nullptr;
  const auto hottest = std::ranges::max_element(cpu.functions, {}, &model::CpuFunction::self_ns);
  if (hottest == cpu.functions.end() || hottest->name.starts_with('['))
    return nullptr;
  return &*hottest;
}

}  // namespace

std::string runnable_text(const model::RunInfo& run) {
  const std::string text = "waiting for a CPU";
  const std::optional<double> own_cpus = run.cpus_used();
  if (!own_cpus || !run.usage->machine)
    return text;
  const auto& [cpus, others] = *run.usage->machine;
  const bool are_all_taken = *own_cpus + others >= kTaken * cpus;
  if (!are_all_taken)
    return text;  // a limit of its own, or a moment's wish
  if (others >= kOthers * cpus)
    return text + fmt::format(": other programs used {:.1f} of {}", others, cpus);
  return text + fmt::format(": its own threads used {:.1f} of {}", *own_cpus, cpus);
}

std::string part_text(const model::CpuPart& part, double kernels, const model::RunInfo& run) {
  if (part.kind == "python")
    return "Python";
  if (part.kind == "native")
    return part.name == "[kernel]" ? "the operating system" : part.name;
  if (part.name == "GIL" && part.kind != "cuda")
    return "waiting for the GIL";
  if (part.kind != "cuda") {
    if (part.name == "preempted")
      return "runnable (" + runnable_text(run) + ")";
    return "waiting: " + part.name;
  }
  if (part.name != "launch")
    return "CUDA calls: " + part.name;
  if (!(kernels > 0))
    return "launching";
  return fmt::format("launching ({}, {} each)",
                     base::counted(static_cast<std::uint64_t>(kernels), "kernel"),
                     base::format_ns(part.ns / kernels));
}

std::string share_text(double share) {
  const bool has_two_digits = share >= 0.0995 && share < 0.995;
  if (has_two_digits)
    return fmt::format("{:.0f} %", share * 100);
  return base::format_share(share);
}

double kernel_ns(const model::Region& region) {
  const bool is_known = region.gpu && region.gpu->kernel_ns > 0;
  return is_known ? region.gpu->kernel_ns : 0;
}

std::string kernel_text(const model::KernelRow& kernel) {
  constexpr std::size_t kColumns = 48;
  const std::string& name = kernel.label.empty() ? kernel.short_name : kernel.label;
  return base::elide(base::printable(name), kColumns);
}

std::string bound_kind(const model::Bound& bound) {
  for (const std::string_view kind : {"memory", "compute", "latency"})
    if (bound.kind.starts_with(kind))
      return std::string(kind) + "_bound";
  return bound.kind == "balanced" ? bound.kind : "";
}

std::string bound_shares(const model::Bound& bound) {
  return fmt::format(
      "memory {}, compute {} of peak", share_text(*bound.memory), share_text(*bound.compute));
}

std::string bound_text(const model::Bound& bound, std::string_view detail) {
  return fmt::format(
      "{} ({}{})", base::replace_all(bound_kind(bound), "_", "-"), bound_shares(bound), detail);
}

std::string cpu_causes(const model::Region& region, const model::RunInfo& run) {
  if (!region.cpu)
    return {};
  return cpu_causes(*region.cpu, region.gpu ? static_cast<double>(region.gpu->kernels) : 0, run);
}

std::string cpu_causes(const model::CpuWork& cpu, double kernels, const model::RunInfo& run) {
  const bool may_wait_for_work = run.attached_pid.has_value();
  std::string text = largest_parts_text(cpu, kernels, run);
  const model::CpuFunction* hottest = hottest_function(cpu);
  if (text.empty() || hottest == nullptr)
    return text;
  const double wall_ns = cpu.whole_ns();
  const double busy_ns = wall_ns - cpu.waiting.ns;
  std::string share = share_text(hottest->self_ns / wall_ns);
  const bool is_large_of_wall = hottest->self_ns >= kHottest * wall_ns;
  if (!is_large_of_wall) {
    if (!may_wait_for_work || hottest->self_ns < kHottest * busy_ns)
      return text;
    share = share_text(hottest->self_ns / busy_ns) + " of the CPU time";
  }
  text += "; hottest function " + base::printable(function_text(*hottest));
  text += ", " + share + caller_text(*hottest);
  return text;
}

}  // namespace rangescope::analyze
