#include "report/cpu_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/view.hpp"

namespace rangescope::report {
namespace {

using base::format_ns;
using base::format_share;

const model::Region* cpu_region(const model::Report& report, const std::string& wanted,
                                std::vector<std::string>& names) {
  const model::Region* best = nullptr;
  const auto offer = [&](const model::Region& region) {
    if (region.process || region.thread || region.path.empty()) return false;
    names.push_back(model::path_text(region));
    if (names.back() == wanted) return true;
    // Of several of that name, the one where most time went.
    if (region.path.back() == wanted && (best == nullptr || region.wall.inclusive_ns > best->wall.inclusive_ns))
      best = &region;
    names.push_back(region.path.back());
    return false;
  };
  for (const model::Region& region : report.regions)
    if (offer(region)) return &region;
  for (const model::TableRow& row : report.rows)  // "layer_#": siblings put together
    if (row.merged && offer(*row.merged)) return &*row.merged;
  return best;
}

std::string function_table(const char* title, const std::vector<model::CpuFunction>& list, double wall,
                           std::size_t most, const Style& style) {
  base::Table table({{title, false, true, 0},
                     {"self", true, false, 0},
                     {"", true, false, 1},
                     {"total", true, false, 0},
                     {"", true, false, 1}});
  for (std::size_t i = 0; i < std::min(list.size(), most); ++i) {
    const model::CpuFunction& each = list[i];
    table.add({{base::printable(function_text(each))},
               {format_ns(each.self_ns)},
               {wall > 0 ? format_share(each.self_ns / wall) : "-"},
               {format_ns(each.total_ns)},
               {wall > 0 ? format_share(each.total_ns / wall) : "-"}});
  }
  return table.render(style.width, style.color, nullptr, 40);
}

/// Metrics of counted events, and where they are sampled the interval that holds them.
std::string counter_table(const model::Report& report, const model::Region& region, const Style& style) {
  base::Table table({{"events of the CPU, an occurrence", false, true, 0},
                     {"value", true, false, 0},
                     {"from", true, false, 1},
                     {"to", true, false, 1},
                     {"records", true, false, 2}});
  bool any = false;
  for (const auto& [name, metric] : region.metrics) {
    if (!metric.source.starts_with("CPU events")) continue;
    const auto titled =
        std::find_if(report.metric_columns.begin(), report.metric_columns.end(),
                     [&, &metric_name = name](const auto& column) { return column.name == metric_name; });
    const bool interval = metric.absent.empty() && metric.max > metric.min;
    table.add({{base::printable(titled != report.metric_columns.end() ? titled->title : name)},
               {metric.absent.empty() ? format_value(metric.value, metric.unit) : "-"},
               {interval ? format_value(metric.min, metric.unit) : ""},
               {interval ? format_value(metric.max, metric.unit) : ""},
               {base::format_count(metric.rounds)}});
    any = true;
  }
  return any ? "\n" + table.render(style.width, style.color, nullptr, 40) : "";
}

}  // namespace

std::string function_text(const model::CpuFunction& function) {
  if (function.python)
    return function.line > 0 ? fmt::format("{} ({}:{})", function.name, base::file_name(function.file), function.line)
                             : fmt::format("{} ({})", function.name, base::file_name(function.file));
  if (function.name.find("+0x") != std::string::npos || function.name.starts_with('[') ||
      function.name.starts_with('('))
    return function.name;
  if (!function.module.empty()) return fmt::format("{} [{}]", function.name, base::file_name(function.module));
  return function.name;
}

base::Result<std::string> cpu_page(const model::Report& report, const Style& style) {
  std::vector<std::string> names = {kOutsideRanges};
  const model::Region* region = cpu_region(report, style.cpu, names);
  const bool outside = region == nullptr && style.cpu == kOutsideRanges;
  if (region == nullptr && !outside)
    return base::fail(base::Code::kUsage, "there is no range '" + base::printable(style.cpu) + "' in this report",
                      "--cpu", base::did_you_mean(style.cpu, names));
  const std::string name = outside ? kOutsideRanges : base::printable(model::path_text(*region));
  const base::Held<model::CpuWork>& work = outside ? report.cpu_outside : region->cpu;
  if (!work)
    return base::fail(base::Code::kNothingCaptured, "the CPU was not sampled in '" + name + "'", {},
                      "Record with rangescope profile --cpu; its losses say what forbids it");
  const model::CpuWork& cpu = *work;
  const double wall = cpu.whole_ns();
  std::string many =
      outside ? "all threads" : base::counted(static_cast<std::uint64_t>(region->occurrences), "occurrence");
  if (!outside && region->unclosed > 0) many += fmt::format(" and {} that never ended", region->unclosed);
  if (!outside && region->kind == model::RangeKind::kStartEnd && wall > 1.01 * region->wall.inclusive_ns)
    many = "all threads during " + many;
  std::string page =
      fmt::format("{}: {} in {}, {} of {} CPU\n\n", name, format_ns(wall), many,
                  base::counted(static_cast<std::uint64_t>(cpu.samples), "sample"), outside ? "their" : "its threads'");
  const bool gpu = !std::isnan(cpu.python.gpu_idle_ns);
  std::vector<base::Table::Column> heads = {
      {"wall time", false, true, 0}, {"time", true, false, 0}, {"share", true, false, 0}};
  if (gpu) heads.push_back({"GPU busy", true, false, 0});
  if (gpu) heads.push_back({"GPU idle", true, false, 0});
  base::Table table(std::move(heads));
  const auto add = [&](std::string title, const model::CpuPart& part) {
    std::vector<base::Table::Cell> cells = {
        {std::move(title)}, {format_ns(part.ns)}, {wall > 0 ? format_share(part.ns / wall) : "-"}};
    if (gpu) cells.push_back({format_ns(std::max(0.0, part.ns - part.gpu_idle_ns))});
    if (gpu) cells.push_back({format_ns(part.gpu_idle_ns)});
    table.add(std::move(cells));
  };
  static constexpr std::pair<const char*, const model::CpuPart model::CpuWork::*> kParts[] = {
      {"Python", &model::CpuWork::python},
      {"native code", &model::CpuWork::native},
      {"CUDA calls", &model::CpuWork::cuda},
      {"waiting", &model::CpuWork::waiting}};
  for (const auto& [title, member] : kParts) {
    const model::CpuPart& part = cpu.*member;
    if (part.ns <= 0) continue;
    add(title, part);
    std::size_t shown = 0;
    for (const model::CpuPart& each : cpu.parts)
      if (each.kind == part.kind && !each.name.empty() && each.ns >= 0.001 * wall && shown++ < 8)
        add("  " + base::printable(each.name == "[kernel]" ? "the operating system" : each.name), each);
  }
  page += table.render(style.width, style.color, nullptr);
  if (!outside) page += counter_table(report, *region, style);
  const std::size_t most = style.top == 0 ? 15 : style.top;
  if (!cpu.functions.empty())
    page += "\n" + function_table("functions, by their own time", cpu.functions, wall, most, style);
  if (!cpu.callers.empty())
    page += "\n" + function_table("functions, with what they call", cpu.callers, wall, most, style);
  return page;
}

}  // namespace rangescope::report
