#include "report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/markdown_text.hpp"
#include "report/view.hpp"

namespace rangescope::report {
namespace {

bool aggregate(const model::Region& region) {
  return !region.process && !region.thread;
}

double weight(const model::Region& region, bool gpu) {
  if (gpu) return region.gpu ? region.gpu->exclusive_busy_ns : 0;
  return region.wall.exclusive_ns;
}

std::string run_line(const model::Report& report) {
  std::string out;
  if (!report.run.command.empty()) out += "Program: " + md_code(base::shell_quote(report.run.command)) + "  \n";
  if (report.run.duration_ns > 0) out += "Recorded: " + base::format_ns(report.run.duration_ns) + "  \n";
  for (const std::string& source : report.run.sources) out += "Source: " + md_escaped(source) + "  \n";
  return out;
}

/// What bounds a region: its own bound, else that of the first of its kernels that has one, with the kernel's name.
std::pair<const model::Bound*, std::string> bound_of(const model::Region& region) {
  if (region.bound && region.bound->kind != "unknown") return {&*region.bound, {}};
  for (const model::KernelMetrics& kernel : region.kernels)
    if (kernel.bound && kernel.bound->kind != "unknown") return {&*kernel.bound, kernel.name};
  return {nullptr, {}};
}

/// What to try, each with the number that it rests on.
std::vector<std::string> advice(const model::Region& region) {
  std::vector<std::string> out;
  const std::string name = md_code(model::path_text(region)) + ": ";
  if (const auto [bound, kernel] = bound_of(region); bound) {
    const std::string& kind = bound->kind;
    // The reason stands above where the bound is a kernel's.
    const std::string why = kernel.empty() ? " (" + base::printable(bound->reason) + ")" : "";
    const std::string what =
        kernel.empty() ? name : name + "kernel " + base::printable(kernel.substr(0, kernel.find('('))) + " is ";
    if (kind == "memory")
      out.push_back(what + "bound by memory" + why +
                    ". Move fewer bytes: fuse kernels, use smaller types, keep data in caches, enlarge batches.");
    else if (kind.starts_with("compute"))
      out.push_back(what + "bound by " + kind + why +
                    ". Use tensor cores or lower precision where results allow it, or do less work.");
    else if (kind == "latency")
      out.push_back(what + "bound by latency" + why +
                    ". Give each kernel more independent work: larger tiles or batches, higher occupancy.");
    else if (kind == "idle")
      out.push_back(name + "the GPU waits" + why +
                    ". Launch earlier, synchronize less, put launches into a CUDA graph.");
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

/// The regions of one domain, of push/pop ranges where there are any: those of other domains and start/end ranges cover
/// the same time again, and their shares would add up to more than there is.
std::vector<const model::Region*> comparable(const model::Report& report, bool gpu) {
  std::map<std::pair<model::RangeKind, std::string>, double> domains;
  for (const model::Region& region : report.regions)
    if (aggregate(region)) domains[{region.kind, region.domain}] += weight(region, gpu);
  const bool stacks = std::any_of(domains.begin(), domains.end(), [](const auto& one) {
    return one.first.first == model::RangeKind::kPushPop && one.second > 0;
  });
  auto most = domains.end();
  for (auto one = domains.begin(); one != domains.end(); ++one)
    if ((!stacks || one->first.first == model::RangeKind::kPushPop) &&
        (most == domains.end() || one->second > most->second))
      most = one;
  std::vector<const model::Region*> out;
  for (const model::Region& region : report.regions)
    if (aggregate(region) && region.kind == most->first.first && region.domain == most->first.second)
      out.push_back(&region);
  std::stable_sort(out.begin(), out.end(),
                   [&](const auto* a, const auto* b) { return weight(*a, gpu) > weight(*b, gpu); });
  if (out.size() > 5) out.resize(5);
  return out;
}

/// Two or three sentences that need no table.
std::string opening(const model::Report& report, std::span<const model::Region* const> regions, bool gpu) {
  std::string out;
  const double whole = gpu ? report.total->busy_ns : report.run.duration_ns;
  if (gpu) {
    out += "The GPU worked for " + base::format_ns(report.total->busy_ns);
    if (report.run.duration_ns > 0)
      out += " of the " + base::format_ns(report.run.duration_ns) + " that were recorded (" +
             base::format_share(report.total->busy_ns / report.run.duration_ns) + ")";
    out += ". ";
  }
  const double first = weight(*regions.front(), gpu);
  if (whole > 0 && first > 0) {
    out += "The largest part, " + base::format_share(first / whole) + ", goes to " +
           md_code(model::path_text(*regions.front()));
    double together = 0;
    for (const model::Region* region : regions) together += weight(*region, gpu);
    if (regions.size() > 1)
      out += "; the " + std::to_string(regions.size()) + " ranges below have " + base::format_share(together / whole) +
             " together";
    out += ". ";
  }
  if (gpu && report.unattributed && whole > 0 && report.unattributed->busy_ns > 0.05 * whole)
    out += base::format_share(report.unattributed->busy_ns / whole) + " was started outside every range. ";
  return out.empty() ? out : out + "\n\n";
}

std::string bounds(std::span<const model::Region* const> regions) {
  std::string out;
  const auto line = [&](const std::string& what, const model::Bound& bound) {
    out += "- " + md_code(what) + ": " + base::printable(bound.kind) + " - " + base::printable(bound.reason) + "\n";
  };
  for (const model::Region* region : regions) {
    if (region->bound && region->bound->kind != "unknown") {
      line(model::path_text(*region), *region->bound);
      continue;
    }
    std::set<std::string> told;  // a kernel that runs in every layer is one line
    for (const model::KernelMetrics& kernel : region->kernels)
      if (kernel.bound && kernel.bound->kind != "unknown" && told.size() < 3 && told.insert(kernel.name).second)
        line(model::path_text(*region) + ", kernel " + kernel.name, *kernel.bound);
  }
  if (out.empty())
    out =
        "Not measured: no hardware counters of these ranges were collected. `rangescope profile --ncu ncu=standard "
        "--nvtx-include NAME -- program` collects them.\n";
  return out;
}

/// "; fp32 66.90 TFLOP/s, dram 4.800 TB/s": those that the work came under.
std::string roofs(const model::Report& report) {
  std::map<std::string, double> flops, bytes;
  const auto add = [&](const std::vector<model::RooflinePoint>& points) {
    for (const model::RooflinePoint& point : points) {
      if (point.peak_flop_per_s > 0) flops[point.precision] = point.peak_flop_per_s;
      if (point.peak_bytes_per_s > 0) bytes[point.level] = point.peak_bytes_per_s;
    }
  };
  for (const model::Region& region : report.regions) add(region.roofline);
  for (const model::KernelCounters& kernel : report.kernel_counters) add(kernel.roofline);
  std::string out;
  for (const auto& [list, unit] : {std::pair{&flops, "FLOP/s"}, {&bytes, "B/s"}})
    for (const auto& [name, peak] : *list)
      out += (out.empty() ? "; " : ", ") + name + " " + base::format_si(peak, unit);
  return out;
}

/// How much of what the GPU can do was used, and what that is measured against.
std::string utilization(const model::Report& report, std::span<const model::Region* const> regions) {
  std::string rows;
  const auto share = [](const std::optional<double>& value) { return value ? format_utilization(*value) : "-"; };
  for (const model::Region* region : regions)
    if (const auto& use = region->utilization; use && (use->executed || use->useful || use->bandwidth))
      rows += "| " + md_escaped(model::path_text(*region)) + " | " + share(use->useful) + " | " +
              share(use->bandwidth) + " | " + share(use->executed) + " | " + md_escaped(use->formula) + " |\n";
  if (rows.empty()) return {};
  std::string peaks;
  for (const std::string& note : report.notes)
    if (note.starts_with("peaks: ")) peaks = "\nAgainst the " + base::printable(note) + roofs(report) + ".\n";
  return "\n# How well the GPU is used\n\n| range | MFU | MBU | executed | formula |\n|---|---:|---:|---:|---|\n" +
         rows + peaks;
}

std::string family_table(const model::Report& report) {
  std::string out = "| kind | kernels | calls | total | share |\n|---|---:|---:|---:|---:|\n";
  for (const model::KernelFamily& family : report.families)
    out += "| " + md_escaped(family.name) + " | " + base::format_count(family.kernels) + " | " +
           base::format_count(family.calls) + " | " + base::format_ns(family.total_ns) + " | " +
           base::format_share(family.share) + " |\n";
  return out;
}

std::string top_kernels(const model::Report& report) {
  std::string out = "\n| kernel | calls | share |\n|---|---:|---:|\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(5, report.kernels.size()); ++i) {
    const model::KernelRow& row = report.kernels[i];
    out += "| " + md_escaped(row.label.empty() ? row.short_name : row.label) + " | " + base::format_count(row.calls) +
           " | " + base::format_share(row.share) + " |\n";
  }
  return out;
}

std::string xml_escaped(std::string_view text) {
  return base::replace_all(base::replace_all(base::replace_all(base::printable(text), "&", "&amp;"), "<", "&lt;"), ">",
                           "&gt;");
}

}  // namespace

std::string summary_figure(const model::Report& report) {
  const bool gpu = report.total && report.total->busy_ns > 0;
  std::vector<const model::Region*> regions = comparable(report, gpu);
  std::erase_if(regions, [&](const model::Region* region) { return !(weight(*region, gpu) > 0); });
  const double most = regions.empty() ? 0 : weight(*regions.front(), gpu);
  constexpr int kRow = 28, kLeft = 220, kBar = 380;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{}\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<title>{}</title>\n<text x=\"8\" y=\"20\">{}</text>\n",
      44 + kRow * static_cast<int>(regions.size()), "Time by range",
      gpu ? "GPU time of each range, without ranges inside it" : "Time of each range, without ranges inside it");
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const double part = weight(*regions[i], gpu);
    const int y = 36 + kRow * static_cast<int>(i);
    std::string name = model::path_text(*regions[i]);
    if (name.size() > 30) name = "..." + name.substr(name.size() - 27);
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"18\" "
        "fill=\"#3b6ea5\"/><text x=\"{:.1f}\" y=\"{}\">{}</text>\n",
        kLeft - 8, y + 14, xml_escaped(name), kLeft, y, kBar * part / most, kLeft + kBar * part / most + 6, y + 14,
        xml_escaped(base::format_ns(part)));
  }
  return out + "</svg>\n";
}

std::string kernels_page(const model::Report& report) {
  std::string out = "# Kernels by GPU time\n\n" + run_line(report) + "\n";
  if (report.kernels.empty()) return out + "No kernel was recorded by a stage with a timeline.\n";
  out += "| kernel | calls | total | mean | share |\n|---|---:|---:|---:|---:|\n";
  for (const model::KernelRow& row : report.kernels)
    out += "| " + md_escaped(row.name.empty() ? row.short_name : row.name) + " | " + base::format_count(row.calls) +
           " | " + base::format_ns(row.total_ns) + " | " + base::format_ns(row.duration_ns.mean) + " | " +
           base::format_share(row.share) + " |\n";
  if (!report.families.empty()) out += "\n# Kernels by kind\n\n" + family_table(report);
  out +=
      "\n# Kernels by region\n\n| region | kernel | calls | total | share of the region |\n|---|---|---:|---:|---:|\n";
  for (const model::Region& region : report.regions) {
    if (!aggregate(region) || !region.gpu) continue;
    for (const model::KernelRow& row : region.gpu->top_kernels)
      out += "| " + md_escaped(model::path_text(region)) + " | " +
             md_escaped(row.short_name.empty() ? row.name : row.short_name) + " | " + base::format_count(row.calls) +
             " | " + base::format_ns(row.total_ns) + " | " + base::format_share(row.share) + " |\n";
  }
  return out;
}

std::string summary_page(const model::Report& report) {
  std::string out = "# Where the time goes\n\n" + run_line(report) + "\n";
  const bool gpu = report.total && report.total->busy_ns > 0 &&
                   std::any_of(report.regions.begin(), report.regions.end(), [](const model::Region& region) {
                     return aggregate(region) && region.gpu && region.gpu->busy_ns > 0;
                   });
  const std::vector<const model::Region*> regions = comparable(report, gpu);
  if (regions.empty()) return out + "No NVTX range was recorded.\n";
  out += opening(report, regions, gpu);
  const double whole = gpu ? report.total->busy_ns : report.run.duration_ns;
  const std::string own = gpu ? "GPU time, own" : "time, own";
  const auto any = [&](auto has) { return std::any_of(regions.begin(), regions.end(), has); };
  const bool tokens = any([](const model::Region* r) { return r->utilization && r->utilization->useful_tokens; });
  out += "![Time by range](summary.svg)\n\n";
  out += "| range | times | time | each, mean ± deviation | " + own + " | share |" + (gpu ? " kernels |" : "") +
         (tokens ? " tokens/s | a token |\n" : "\n");
  out += std::string("|---|---:|---:|---:|---:|---:|") + (gpu ? "---:|" : "") + (tokens ? "---:|---:|\n" : "\n");
  for (const model::Region* region : regions) {
    const double part = weight(*region, gpu);
    const model::Spread& each = region->wall.per_occurrence_ns;
    out += "| " + md_escaped(model::path_text(*region)) + " | " + base::format_count(region->occurrences) + " | " +
           base::format_ns(region->wall.inclusive_ns) + " | " + base::format_ns(each.mean) + " ± " +
           base::format_ns(each.stddev) + " | " + base::format_ns(part) + " | " +
           (whole > 0 ? base::format_share(part / whole) : "-") + " |";
    if (gpu) out += " " + (region->gpu ? base::format_count(region->gpu->kernels) : "0") + " |";
    const double many = region->utilization ? region->utilization->useful_tokens.value_or(0) : 0;
    if (tokens)
      out += many > 0 && each.mean > 0
                 ? " " + base::format_si(many / each.mean * 1e9, "") + " | " + base::format_ns(each.mean / many) + " |"
                 : " - | - |";
    out += "\n";
  }
  out +=
      gpu ? "\n*Time* is the program's between begin and end of the range; *GPU time, own* is what the GPU worked for "
            "it and for no range inside it.\n"
          : "\n*Own* is the time in which no range inside it was open.\n";
  out += utilization(report, regions);
  out += "\n# What bounds it\n\n" + bounds(regions);
  if (!report.families.empty()) out += "\n# Kernels\n\n" + family_table(report) + top_kernels(report);
  out += "\n# What to try\n\n";
  std::vector<std::string> all;
  for (const model::Region* region : regions)
    for (std::string& one : advice(*region)) all.push_back(std::move(one));
  for (const std::string& one : all) out += "- " + one + "\n";
  if (all.empty()) out += "Nothing stands out in what was measured.\n";
  std::string missing;
  for (const model::Loss& loss : report.losses)
    missing += "- " + base::printable(loss.detail.empty() ? loss.kind.id() : loss.detail) + "\n";
  for (const model::Finding& finding : report.findings)
    missing += "- " + base::printable(finding.id) + ": " + base::printable(finding.found) + "\n";
  if (!missing.empty()) out += "\n# What is missing\n\n" + missing;
  return out;
}

}  // namespace rangescope::report
