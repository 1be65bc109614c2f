#include "analyze/compare/digest.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "analyze/compare/compare_chains.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

/// Of the fullest GPU.
std::optional<double> peak_memory_bytes(const model::Report& report) {
  if (report.memory.empty()) return std::nullopt;
  return std::ranges::max(report.memory, {}, &model::DeviceMemory::peak_bytes).peak_bytes;
}

}  // namespace

model::Digest digest(const model::Report& report, const model::Session* session) {
  model::Digest out;
  ChainFrames frames(out.frames);
  out.run = report.run;
  out.losses = report.losses;
  out.verdict = report.verdict;
  out.judged = true;
  for (std::size_t i = 0; i < report.devices.size() && i < report.device_names.size(); ++i) {
    const model::Device& device = report.devices[i];
    std::string text = report.device_names[i];
    if (device.sm_count > 0) text += fmt::format(", {} SMs", device.sm_count);
    if (device.mig) text += ", MIG";
    out.devices.push_back(std::move(text));
  }
  std::sort(out.devices.begin(), out.devices.end());
  const bool aggregate = std::any_of(report.regions.begin(), report.regions.end(),
                                     [](const model::Region& r) { return !r.process && !r.thread; });
  for (const model::Region& region : report.regions) {
    if (aggregate ? region.process || region.thread : region.thread || region.process != report.regions[0].process)
      continue;
    model::DigestRegion one;
    one.path = region.path;
    one.domain = region.domain;
    one.kind = region.kind;
    one.occurrences = region.occurrences;
    for (const model::Measure& measure : model::measures()) {
      if (const auto value = measure.get(region)) one.values[std::string(measure.tag)] = *value;
    }
    for (const auto& [name, metric] : region.metrics) {
      if (metric.absent.empty()) one.values["metrics." + name] = metric.value;
    }
    if (region.cpu) {
      one.cpu_interval_ns = region.cpu->interval_ns;
      for (const model::CpuFunction& function : region.cpu->functions)
        one.functions.push_back({function.name, function.file, function.module, function.python, function.self_ns});
      if (session != nullptr) one.chains = frames.chains(*session, region.cpu->stacks);
    }
    for (const model::OccurrenceSample& sample : region.samples) {
      one.wall_ns.push_back(sample.wall_ns);
      if (region.gpu) one.busy_ns.push_back(sample.busy_ns);
    }
    out.partial_gpu = out.partial_gpu || (region.gpu && region.gpu->partial);
    out.regions.push_back(std::move(one));
  }
  model::add_whole_run(peak_memory_bytes(report), out);
  for (const model::KernelRow& row : report.kernels) out.kernels.push_back({row.name, row.calls, row.total_ns});
  return out;
}

}  // namespace rangescope::analyze
