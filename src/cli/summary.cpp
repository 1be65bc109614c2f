#include "cli/summary.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"

namespace rangescope::cli {
namespace {

/// Text in a Markdown table cell.
std::string cell(std::string_view text) {
  std::string out = base::printable(text);
  for (const char* special : {"\\", "|", "<", ">", "*", "_", "`"})
    out = base::replace_all(out, special, std::string("\\") + special);
  return out;
}

bool aggregate(const model::Region& region) {
  return !region.process && !region.thread;
}

double weight(const model::Region& region, bool gpu) {
  if (gpu) return region.gpu ? region.gpu->exclusive_busy_ns : 0;
  return region.wall.exclusive_ns;
}

std::string run_line(const model::Report& report) {
  std::string out;
  if (!report.run.command.empty())
    out += "Program: `" + base::replace_all(base::printable(base::shell_quote(report.run.command)), "`", "'") + "`  \n";
  if (report.run.duration_ns > 0) out += "Recorded: " + base::format_ns(report.run.duration_ns) + "  \n";
  for (const std::string& source : report.run.sources) out += "Source: " + cell(source) + "  \n";
  return out;
}

/// What to try, each with the number that it rests on.
std::vector<std::string> advice(const model::Region& region) {
  std::vector<std::string> out;
  const std::string name = "`" + base::printable(model::path_text(region)) + "`: ";
  if (region.bound) {
    const std::string& kind = region.bound->kind;
    if (kind == "memory")
      out.push_back(name + "bound by memory (" + base::printable(region.bound->reason) +
                    "). Move fewer bytes: fuse kernels, use smaller types, keep data in caches, enlarge batches.");
    else if (kind.starts_with("compute"))
      out.push_back(name + "bound by " + kind + " (" + base::printable(region.bound->reason) +
                    "). Use tensor cores or lower precision where results allow it, or do less work.");
    else if (kind == "latency")
      out.push_back(name + "bound by latency (" + base::printable(region.bound->reason) +
                    "). Give each kernel more independent work: larger tiles or batches, higher occupancy.");
    else if (kind == "idle")
      out.push_back(name + "the GPU waits (" + base::printable(region.bound->reason) +
                    "). Launch earlier, synchronize less, put launches into a CUDA graph.");
  }
  if (!region.gpu || region.gpu->span_ns <= 0) return out;
  const model::GpuWork& gpu = *region.gpu;
  const double idle = gpu.idle_ns / gpu.span_ns;
  if (idle > 0.3 && (!region.bound || region.bound->kind != "idle"))
    out.push_back(name + "the GPU is idle for " + base::format_share(idle) +
                  " of the time between the region's first and last kernel. Launch earlier, synchronize less, or put "
                  "the launches into a CUDA graph.");
  if (gpu.kernels >= 100 && gpu.kernel_ns / static_cast<double>(gpu.kernels) < 5000)
    out.push_back(name + std::to_string(gpu.kernels) + " kernels take " +
                  base::format_ns(gpu.kernel_ns / static_cast<double>(gpu.kernels)) +
                  " each on average; launching costs about as much. Fuse them, or use CUDA graphs.");
  if (gpu.copy_ns > 0.2 * gpu.busy_ns && gpu.busy_ns > 0)
    out.push_back(name + "copies take " + base::format_ns(gpu.copy_ns) + " beside " + base::format_ns(gpu.kernel_ns) +
                  " of kernels. Keep data on the GPU, use pinned memory, overlap copies with kernels.");
  if (region.wall.inclusive_ns > 0 && gpu.sync_ns > 0.5 * region.wall.inclusive_ns && idle > 0.3)
    out.push_back(name + "the CPU waits for the GPU for " + base::format_ns(gpu.sync_ns) + " of " +
                  base::format_ns(region.wall.inclusive_ns) + ". Synchronize once, at the end.");
  return out;
}

}  // namespace

std::string kernels_page(const model::Report& report) {
  std::string out = "# Kernels by GPU time\n\n" + run_line(report) + "\n";
  if (report.kernels.empty()) return out + "No kernel was recorded by a stage with a timeline.\n";
  out += "| kernel | calls | total | mean | share |\n|---|---:|---:|---:|---:|\n";
  for (const model::KernelRow& row : report.kernels)
    out += "| " + cell(row.name.empty() ? row.short_name : row.name) + " | " + base::format_count(row.calls) + " | " +
           base::format_ns(row.total_ns) + " | " + base::format_ns(row.duration_ns.mean) + " | " +
           base::format_share(row.share) + " |\n";
  out +=
      "\n# Kernels by region\n\n| region | kernel | calls | total | share of the region |\n|---|---|---:|---:|---:|\n";
  for (const model::Region& region : report.regions) {
    if (!aggregate(region) || !region.gpu) continue;
    for (const model::KernelRow& row : region.gpu->top_kernels)
      out += "| " + cell(model::path_text(region)) + " | " + cell(row.short_name.empty() ? row.name : row.short_name) +
             " | " + base::format_count(row.calls) + " | " + base::format_ns(row.total_ns) + " | " +
             base::format_share(row.share) + " |\n";
  }
  return out;
}

std::string stakeholder_page(const model::Report& report) {
  std::string out = "# Where the time goes\n\n" + run_line(report) + "\n";
  std::vector<const model::Region*> regions;
  bool gpu = false;
  for (const model::Region& region : report.regions) {
    if (!aggregate(region)) continue;
    regions.push_back(&region);
    gpu = gpu || (region.gpu && region.gpu->busy_ns > 0);
  }
  std::stable_sort(regions.begin(), regions.end(),
                   [&](const auto* a, const auto* b) { return weight(*a, gpu) > weight(*b, gpu); });
  if (regions.size() > 5) regions.resize(5);
  if (regions.empty()) return out + "No NVTX range was recorded.\n";
  out += gpu ? "| region | occurrences | wall time | GPU busy, own | kernels |\n|---|---:|---:|---:|---:|\n"
             : "| region | occurrences | wall time | own wall time |\n|---|---:|---:|---:|\n";
  for (const model::Region* region : regions) {
    out += "| " + cell(model::path_text(*region)) + " | " + base::format_count(region->occurrences) + " | " +
           base::format_ns(region->wall.inclusive_ns) + " | ";
    if (gpu)
      out += base::format_ns(weight(*region, true)) + " | " +
             (region->gpu ? base::format_count(region->gpu->kernels) : "0") + " |\n";
    else
      out += base::format_ns(region->wall.exclusive_ns) + " |\n";
  }
  out += "\n# What bounds it\n\n";
  bool any = false;
  for (const model::Region* region : regions) {
    if (!region->bound || region->bound->kind == "unknown") continue;
    any = true;
    out += "- `" + base::printable(model::path_text(*region)) + "`: " + base::printable(region->bound->kind) + " - " +
           base::printable(region->bound->reason) + "\n";
  }
  if (!any) out += "Not measured: no hardware counters were collected for these regions.\n";
  out += "\n# What to try\n\n";
  std::vector<std::string> all;
  for (const model::Region* region : regions)
    for (std::string& one : advice(*region)) all.push_back(std::move(one));
  for (const std::string& one : all) out += "- " + one + "\n";
  if (all.empty()) out += "Nothing stands out in what was measured.\n";
  if (!report.losses.empty()) {
    out += "\n# What is missing\n\n";
    for (const model::Loss& loss : report.losses)
      out += "- " + base::printable(loss.detail.empty() ? loss.kind : loss.detail) + "\n";
  }
  return out;
}

}  // namespace rangescope::cli
