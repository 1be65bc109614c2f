#include "analyze/compare/digest.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "analyze/compare/compare_chains.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

/// Of the fullest GPU.
std::optional<double> peak_memory_bytes(const model::Report& report) {
  if (report.memory.empty())
    return std::nullopt;
  return std::ranges::max(report.memory, {}, &model::DeviceMemory::peak_bytes).peak_bytes;
}

std::vector<model::DigestFunction> digest_functions(
    const std::vector<model::CpuFunction>& functions) {
  std::vector<model::DigestFunction> out;
  for (const model::CpuFunction& function : functions)
    out.push_back({function.name,
                   function.file,
                   function.module,
                   function.python,
                   function.self_ns,
                   function.line});
  return out;
}

std::optional<double> busy_of(const base::Held<model::GpuWork>& gpu) {
  if (!gpu || gpu->partial || std::isnan(gpu->busy_ns))
    return std::nullopt;
  return gpu->busy_ns;
}

void add_run_rows(const model::Report& report, model::Digest& out) {
  model::RunNumbers whole_run;
  whole_run.wall_ns = report.run.duration_ns;
  whole_run.busy_ns = busy_of(report.total);
  whole_run.peak_memory_bytes = peak_memory_bytes(report);
  model::RunNumbers outside;
  if (report.outside)
    outside.wall_ns = report.outside->wall_ns;
  outside.busy_ns = busy_of(report.unattributed);
  if (report.cpu_outside) {
    outside.cpu_interval_ns = report.cpu_outside->interval_ns;
    outside.functions = digest_functions(report.cpu_outside->functions);
    outside.own_functions = digest_functions(report.cpu_outside->own_functions);
  }
  model::add_run_rows(std::move(whole_run), std::move(outside), out);
}

/// "H100, 132 SMs, MIG", sorted.
std::vector<std::string> device_texts(const model::Report& report) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < report.devices.size() && i < report.device_names.size(); ++i) {
    const model::Device& device = report.devices[i];
    std::string text = report.device_names[i];
    if (device.sm_count > 0)
      text += fmt::format(", {} SMs", device.sm_count);
    if (device.mig)
      text += ", MIG";
    texts.push_back(std::move(text));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

/// Regions over all processes and threads; where there are none, those of the first process.
std::vector<const model::Region*> regions_of_digest(const model::Report& report) {
  const auto is_over_all = [](const model::Region& region) {
    return !region.process && !region.thread;
  };
  const bool has_aggregate = std::ranges::any_of(report.regions, is_over_all);
  const auto is_compared = [&](const model::Region& region) {
    if (has_aggregate)
      return is_over_all(region);
    return !region.thread && region.process == report.regions[0].process;
  };
  std::vector<const model::Region*> regions;
  for (const model::Region& region : report.regions)
    if (is_compared(region))
      regions.push_back(&region);
  return regions;
}

model::DigestRegion digest_region(const model::Region& region) {
  model::DigestRegion out;
  out.path = region.path;
  out.domain = region.domain;
  out.kind = region.kind;
  out.occurrences = region.occurrences;
  for (const model::Measure& measure : model::measures()) {
    if (const auto value = measure.get(region))
      out.values[std::string(measure.tag)] = *value;
  }
  for (const auto& [name, metric] : region.metrics) {
    if (metric.absent.empty())
      out.values["metrics." + name] = metric.value;
  }
  if (region.cpu) {
    out.cpu_interval_ns = region.cpu->interval_ns;
    out.functions = digest_functions(region.cpu->functions);
    out.own_functions = digest_functions(region.cpu->own_functions);
  }
  for (const model::OccurrenceSample& sample : region.samples) {
    out.wall_ns.push_back(sample.wall_ns);
    if (region.gpu)
      out.busy_ns.push_back(sample.busy_ns);
  }
  return out;
}

}  // namespace

model::Digest digest(const model::Report& report, const model::Session* session) {
  model::Digest out;
  ChainFrames frames(out.frames);
  out.run = report.run;
  out.losses = report.losses;
  out.verdict = report.verdict;
  out.judged = true;
  out.devices = device_texts(report);
  for (const model::Region* region : regions_of_digest(report)) {
    model::DigestRegion& added = out.regions.emplace_back(digest_region(*region));
    if (region->cpu && session != nullptr)
      added.chains = frames.chains(*session, region->cpu->stacks);
    if (region->gpu && region->gpu->partial)
      out.partial_gpu = true;
  }
  add_run_rows(report, out);
  for (const model::KernelRow& row : report.kernels)
    out.kernels.push_back({row.name, row.calls, row.total_ns});
  return out;
}

}  // namespace rangescope::analyze
