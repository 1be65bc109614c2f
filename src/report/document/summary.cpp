#include "report/document/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/advice.hpp"
#include "model/measure.hpp"
#include "report/document/figures.hpp"
#include "report/document/markdown_text.hpp"
#include "report/document/verdict_text.hpp"
#include "report/document/view.hpp"

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

/// The report's verdict, and what it says to try.
std::string answers(const model::Report& report) {
  std::string out;
  for (const model::Verdict& verdict : report.verdict) {
    out += "- " + md_escaped(verdict_text(report, verdict)) + "\n";
    if (const std::string advice = model::advice_for(verdict); !advice.empty())
      out += "  - try: " + md_escaped(advice) + "\n";
    if (!verdict.next.empty()) out += "  - next: " + md_code(verdict.next) + "\n";
  }
  return out.empty() ? out : "# What stands out\n\n" + out + "\n";
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
  return out.empty() ? out : "\n# What limits it\n\n" + out;
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
  out += answers(report);
  const std::vector<const model::Region*> regions = comparable(report, gpu);
  if (regions.empty()) return out + "No NVTX range was recorded.\n";
  out += "# Time by range\n\n";
  const double whole = gpu ? report.total->busy_ns : report.run.duration_ns;
  const std::string own = gpu ? "GPU self time" : "self time";
  const auto any = [&](auto has) { return std::any_of(regions.begin(), regions.end(), has); };
  const bool tokens = any([](const model::Region* r) { return r->utilization && r->utilization->useful_tokens; });
  out += "![Time by range](summary.svg)\n\n";
  out += "| range | count | time | each, mean ± deviation | " + own + " | share |" + (gpu ? " kernels |" : "") +
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
      gpu ? "\n*Time* is the program's; *GPU self time* is the GPU's work for this range and for no range inside it.\n"
          : "\n*Self time* is the time in which no range inside was open.\n";
  out += utilization(report, regions);
  out += bounds(regions);
  if (!report.families.empty()) out += "\n# Kernels\n\n" + family_table(report) + top_kernels(report);
  std::string missing;
  for (const model::Loss& loss : report.losses)
    missing += "- " + base::printable(loss.detail.empty() ? loss.kind.id() : loss.detail) + "\n";
  for (const model::Finding& finding : report.findings)
    missing += "- " + base::printable(finding.id) + ": " + base::printable(finding.found) + "\n";
  if (!missing.empty()) out += "\n# What is missing\n\n" + missing;
  return out;
}

}  // namespace rangescope::report
