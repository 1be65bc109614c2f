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

// ", called from step (train.py:12)": the program's own function that called a library's.
std::string caller_text(const model::CpuFunction& hottest) {
  if (!hottest.caller.known())
    return {};
  return ", called from " + base::printable(place_text(hottest.caller));
}

}  // namespace

std::string runnable_text(const model::RunInfo& run) {
  const std::string text = "waiting for a CPU";
  const std::optional<double> own = run.cpus_used();
  if (!own || !run.usage->machine)
    return text;
  const auto& [cpus, others] = *run.usage->machine;
  const bool are_all_taken = *own + others >= kTaken * cpus;
  if (!are_all_taken)
    return text;  // a limit of its own, or a moment's wish
  if (others >= kOthers * cpus)
    return text + fmt::format(": other programs used {:.1f} of {}", others, cpus);
  return text + fmt::format(": its own threads used {:.1f} of {}", *own, cpus);
}

std::string part_text(const model::CpuPart& part, double kernels, const model::RunInfo& run) {
  if (part.kind == "python")
    return "Python";
  if (part.kind == "native")
    return part.name == "[kernel]" ? "the operating system" : part.name;
  if (part.name == "GIL" && part.kind != "cuda")
    return "waiting for the GIL";
  if (part.kind != "cuda")
    return part.name == "preempted" ? fmt::format("runnable ({})", runnable_text(run))
                                    : "waiting: " + part.name;
  if (part.name != "launch")
    return "CUDA calls: " + part.name;
  if (!(kernels > 0))
    return "launching";
  return fmt::format("launching ({}, {} each)",
                     base::counted(static_cast<std::uint64_t>(kernels), "kernel"),
                     base::format_ns(part.ns / kernels));
}

std::string share_text(double share) {
  return share >= 0.0995 && share < 0.995 ? fmt::format("{:.0f} %", share * 100)
                                          : base::format_share(share);
}

double kernel_ns(const model::Region& region) {
  return region.gpu && region.gpu->kernel_ns > 0 ? region.gpu->kernel_ns : 0;
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

std::string bound_text(const model::Bound& bound, std::string_view more) {
  return fmt::format(
      "{} ({}{})", base::replace_all(bound_kind(bound), "_", "-"), bound_shares(bound), more);
}

std::string cpu_causes(const model::Region& region, const model::RunInfo& run) {
  if (!region.cpu)
    return {};
  return cpu_causes(*region.cpu, region.gpu ? static_cast<double>(region.gpu->kernels) : 0, run);
}

std::string cpu_causes(const model::CpuWork& cpu, double kernels, const model::RunInfo& run) {
  const bool may_wait_for_work = run.attached_pid.has_value();
  const double wall = cpu.whole_ns();
  std::vector<std::string> texts;
  for (const model::CpuPart& part : cpu.parts) {
    if (part.ns < kPart * wall || texts.size() == 3)
      break;
    if (cpu.samples < kEnough && (part.kind == "python" || part.kind == "native"))
      continue;  // others are recorded
    texts.push_back(share_text(part.ns / wall) + " " +
                    base::printable(part_text(part, kernels, run)));
  }
  std::string text = base::join(texts, ", ");
  const auto hottest = std::max_element(
      cpu.functions.begin(), cpu.functions.end(), [](const auto& a, const auto& b) {
        return a.self_ns < b.self_ns;
      });
  if (text.empty() || cpu.samples < kEnough || hottest == cpu.functions.end())
    return text;
  if (hottest->name.starts_with('['))
    return text;
  const double busy = wall - cpu.waiting.ns;
  const bool of_wall = hottest->self_ns >= kHottest * wall;
  if (!of_wall && (!may_wait_for_work || hottest->self_ns < kHottest * busy))
    return text;
  return text + "; hottest function " + base::printable(function_text(*hottest)) + ", " +
         share_text(hottest->self_ns / (of_wall ? wall : busy)) +
         (of_wall ? "" : " of the CPU time") + caller_text(*hottest);
}

}  // namespace rangescope::analyze
