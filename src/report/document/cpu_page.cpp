#include "report/document/cpu_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "model/program.hpp"
#include "model/range_expression.hpp"
#include "report/document/shown_rows.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using base::format_ns;
using base::format_share;

constexpr std::size_t kOwnFunctions = 8, kWaits = 10;  ///< rows, where none are asked for

const model::Region* cpu_region(const model::Report& report, const std::string& wanted,
                                std::vector<std::string>& names) {
  const model::Region* best = nullptr;
  const auto offer = [&](const model::Region& region) {
    if (region.process || region.thread || region.path.empty()) return false;
    const std::string mark(region.kind == model::RangeKind::kStartEnd ? model::kStartEndMark : "");
    const auto is_wanted = [&](const std::string& name) {  // as it is, or as tables print it
      return name == wanted || base::printable(name) + mark == wanted;
    };
    names.push_back(model::path_text(region));
    if (is_wanted(names.back())) return true;
    // Of several of that name, the one where most time went.
    if (is_wanted(region.path.back()) &&
        (best == nullptr || region.wall.inclusive_ns > best->wall.inclusive_ns))
      best = &region;
    if (region.path.back() != names.back()) names.push_back(region.path.back());
    return false;
  };
  for (const model::Region& region : report.regions)
    if (offer(region)) return &region;
  for (const model::TableRow& row : report.rows)  // "layer_#": siblings put together
    if (row.merged && offer(*row.merged)) return &*row.merged;
  if (best != nullptr) return best;
  for (const ShownRow& row : shown_rows(report))  // "Model > model": a chain
    if (row.label == wanted) return row.region;
  return nullptr;
}

/// "forward (modeling_llama.py:312)", "gemm_kernel [libfoo.so]"
std::string function_text(const model::CpuFunction& function) {
  if (function.python)
    return function.line > 0
               ? fmt::format("{} ({}:{})", function.name, base::file_name(function.file),
                             function.line)
               : fmt::format("{} ({})", function.name, base::file_name(function.file));
  if (function.names_its_module() || function.name.starts_with('(')) return function.name;
  if (function.module.starts_with('[')) return function.name + " " + function.module;
  if (!function.module.empty())
    return fmt::format("{} [{}]", function.name, base::file_name(function.module));
  return function.name;
}

Grid function_grid(const char* title, const std::vector<model::CpuFunction>& list, double wall,
                   std::size_t most) {
  Grid grid({{title, false, true},
             {"self"},
             {"self %", true, false, 1},
             {"total"},
             {"total %", true, false, 1}});
  grid.least = 40;
  const auto share = [&](double ns) { return wall > 0 ? format_share(ns / wall) : "-"; };
  for (const model::CpuFunction& each : std::span(list).first(std::min(list.size(), most))) {
    std::string text = function_text(each);
    if (each.hot_line > 0)
      text += each.python ? fmt::format(", line {}", each.hot_line)
                          : fmt::format(", {}:{}", base::file_name(each.file), each.hot_line);
    if (each.caller.known()) text += ", from " + model::place_text(each.caller);
    grid.add({{std::move(text)},
              {format_ns(each.self_ns)},
              {share(each.self_ns)},
              {format_ns(each.total_ns)},
              {share(each.total_ns)}});
  }
  return grid;
}

/// Metrics of counted events, and where they are sampled the interval that holds them.
Grid counter_grid(const model::Report& report, const model::Region& region) {
  Grid grid({{"events of the CPU, per instance", false, true},
             {"value"},
             {"from", true, false, 1},
             {"to", true, false, 1},
             {"records", true, false, 2}});
  grid.least = 40;
  for (const auto& [name, metric] : region.metrics) {
    if (!metric.source.starts_with(model::kCpuEvents)) continue;
    const auto titled = std::find_if(
        report.metric_columns.begin(), report.metric_columns.end(),
        [&, &metric_name = name](const auto& column) { return column.name == metric_name; });
    const bool interval = metric.absent.empty() && metric.max > metric.min;
    grid.add({{titled != report.metric_columns.end() ? titled->title : name},
              {metric.absent.empty() ? format_value(metric.value, metric.unit) : "-"},
              {interval ? format_value(metric.min, metric.unit) : ""},
              {interval ? format_value(metric.max, metric.unit) : ""},
              {base::format_count(metric.rounds)}});
  }
  return grid;
}

}  // namespace

Section process_section(const model::Report& report, const Style& style) {
  Section section{"Processes", true};
  if (!model::is_program(report) || report.processes.size() < 2) return section;
  struct Row {
    std::string name;
    std::size_t depth = 0;
    std::int64_t count = 0;
    double wall_ns = 0;
    std::vector<std::size_t> below;
  };
  // Processes of one command below one parent are a row: a script of 3,000 commands has few of
  // them.
  std::vector<Row> rows = {{}};
  std::map<std::pair<std::size_t, std::string_view>, std::size_t> known;
  std::map<std::uint32_t, std::size_t> row_of;
  std::vector<const model::ReportProcess*> processes;
  for (const model::ReportProcess& process : report.processes) processes.push_back(&process);
  std::stable_sort(processes.begin(), processes.end(),
                   [](auto* a, auto* b) { return a->start_ns < b->start_ns; });
  for (const model::ReportProcess* process : processes) {
    const auto parent = row_of.find(process->parent_pid);
    const std::size_t above = parent == row_of.end() ? 0 : parent->second;
    const std::string_view name(base::file_name(process->name));
    const auto [at, fresh] = known.try_emplace({above, name}, rows.size());
    if (fresh) {
      rows[above].below.push_back(rows.size());
      const std::size_t depth = above == 0 ? 0 : rows[above].depth + 1;
      rows.push_back({std::string(name), depth, 0, 0, {}});
    }
    row_of[process->pid] = at->second;
    ++rows[at->second].count;
    rows[at->second].wall_ns += process->end_ns - process->start_ns;
  }
  Grid grid({{"process", false, true}, {"count"}, {"from start to exit"}});
  grid.least = 40;
  constexpr std::size_t kMost = 20;
  const std::size_t most = style.all ? rows.size() : kMost;
  std::vector<std::size_t> pending = {0};
  while (!pending.empty() && grid.rows.size() < most) {
    Row& row = rows[pending.back()];
    const bool top = pending.back() == 0;
    pending.pop_back();
    std::stable_sort(row.below.begin(), row.below.end(), [&](std::size_t a, std::size_t b) {
      return rows[a].wall_ns < rows[b].wall_ns;
    });
    pending.insert(pending.end(), row.below.begin(), row.below.end());
    if (top) continue;
    std::string wall = "-";  // not recorded
    if (row.wall_ns > 0) wall = format_ns(row.wall_ns);
    grid.add({{row.name, base::Tone::kPlain, std::min<std::size_t>(row.depth, 12)},
              {base::format_count(row.count)},
              {std::move(wall)}});
  }
  if (const std::size_t left = rows.size() - 1 - grid.rows.size(); left > 0)
    grid.more = base::counted(left, "more command") + ": --all shows each";
  return std::move(section.add(std::move(grid)));
}

Section program_functions(const model::Report& report, const Style& style) {
  Section section{"Functions", true};
  if (!model::is_program(report)) return section;
  const base::Held<model::CpuWork>& cpu = report.regions.front().cpu;
  if (!cpu || cpu->functions.empty()) return section;
  return std::move(section.add(
      function_grid("function", cpu->functions, cpu->whole_ns(), style.top == 0 ? 10 : style.top)));
}

Section own_function_section(const model::Report& report, const Style& style) {
  Section section{"Functions of the program", true};
  if (!model::is_program(report) || !report.regions.front().cpu) return section;
  const model::CpuWork& cpu = *report.regions.front().cpu;
  const double cpu_ns = cpu.cpu_ns();
  const std::size_t most = style.top == 0 ? kOwnFunctions : style.top;
  constexpr const char* kTitle = "function, with the libraries that it calls";
  Grid grid({{kTitle, false, true}, {"CPU"}, {"CPU %", true, false, 1}});
  grid.least = 40;
  for (const model::CpuFunction& function : cpu.own_functions) {
    if (grid.rows.size() == most || function.self_ns < 0.01 * cpu_ns) break;
    grid.add({{model::place_text(function.place())},
              {format_ns(function.self_ns)},
              {format_share(function.self_ns / cpu_ns)}});
  }
  if (!grid.rows.empty()) section.add(std::move(grid));
  return section;
}

Grid wait_grid(const model::Report& report, const Style& style) {
  const double least_ns = 0.01 * report.run.duration_ns;
  const std::size_t most = style.top == 0 ? kWaits : style.top;
  Grid grid({{"waits", false, true},
             {"for"},
             {"time"},
             {"count"},
             {"threads", true, false, 2},
             {"while another thread in it runs", false, false, 1}});
  grid.least = 32;
  for (const model::CpuWaitRow& wait : report.waits) {
    if (grid.rows.size() == most || wait.blocked_ns < least_ns) continue;
    std::string place = "(unknown)";
    if (wait.place.known()) place = model::place_text(wait.place);
    if (wait.idle) place += ", idle";
    if (wait.event_loop) place += ", in the event loop's thread";
    std::string meanwhile = "-";
    if (wait.meanwhile.known()) meanwhile = model::place_text(wait.meanwhile);
    grid.add({{std::move(place), wait.idle ? base::Tone::kDim : base::Tone::kPlain},
              {std::string(name_of(wait.kind))},
              {format_ns(wait.total_ns)},
              {base::format_count(wait.count)},
              {base::format_count(wait.threads)},
              {std::move(meanwhile)}});
  }
  return grid;
}

Section wait_section(const model::Report& report, const Style& style) {
  Section section{"Waits", true};
  if (!model::is_program(report)) return section;
  Grid grid = wait_grid(report, style);
  if (!grid.rows.empty()) section.add(std::move(grid));
  return section;
}

/// CPU and waiting apart, as shares of what the region's threads did.
Grid tree_grid(const std::vector<model::CpuTreeRow>& rows, double wall) {
  Grid grid({{"functions of the program", false, true},
             {"CPU"},
             {"CPU %", true, false, 1},
             {"waits"},
             {"waits %", true, false, 1}});
  grid.least = 40;
  const auto share = [&](double ns) { return wall > 0 ? format_share(ns / wall) : "-"; };
  for (const model::CpuTreeRow& row : rows) {
    std::string chain = model::place_text(row.chain.back());
    for (std::size_t above = row.chain.size() - 1; above-- > 0;)
      chain.insert(0, row.chain[above].name + " > ");
    grid.add({{std::move(chain), base::Tone::kPlain, row.depth},
              {format_ns(row.cpu_ns)},
              {share(row.cpu_ns)},
              {format_ns(row.waiting_ns)},
              {share(row.waiting_ns)}});
  }
  return grid;
}

base::Result<Document> cpu_page(const model::Report& report, const Style& style) {
  std::vector<std::string> names = {kOutsideRanges};
  const model::Region* region = cpu_region(report, style.cpu, names);
  const bool outside = region == nullptr && style.cpu == kOutsideRanges;
  if (region == nullptr && !outside) {
    std::string near = base::did_you_mean(style.cpu, names);
    constexpr std::ptrdiff_t kNamed = 8;
    if (near.empty())
      near = "Name one of " +
             base::join({names.begin(), names.begin() + std::min(std::ssize(names), kNamed)}, ", ");
    return base::fail(base::Code::kUsage,
                      "there is no range '" + base::printable(style.cpu) + "' in this report",
                      "--cpu", base::printable(near));
  }
  const std::string name = outside ? kOutsideRanges : base::printable(model::path_text(*region));
  const base::Held<model::CpuWork>& work = outside ? report.cpu_outside : region->cpu;
  if (!work)
    return base::fail(
        base::Code::kNothingCaptured, "the CPU was not sampled in '" + name + "'", {},
        "Record with rangescope profile --cpu; the data losses name what prevents it");
  const model::CpuWork& cpu = *work;
  const double wall = cpu.whole_ns();
  const bool whole = !outside && model::is_program(report);
  std::string time = format_ns(wall), many;
  if (outside || whole) {  // of the run; what several threads ran and waited comes to more
    const double run = whole            ? region->wall.inclusive_ns
                       : report.outside ? report.outside->wall_ns
                                        : wall;
    time = format_ns(run);
    many = whole ? base::counted(static_cast<std::uint64_t>(region->threads), "thread")
                 : "all threads";
    if (wall > 1.01 * run) many += ", which ran and waited " + format_ns(wall);
  } else {
    many = region->sampled()
               ? "calls that are not counted"
               : base::counted(static_cast<std::uint64_t>(region->occurrences), "instance");
    if (region->unclosed > 0) many += fmt::format(" and {} that never ended", region->unclosed);
    if (region->kind == model::RangeKind::kStartEnd && wall > 1.01 * region->wall.inclusive_ns)
      many = "all threads during " + many;
  }
  Document page;
  page.begin("CPU of " + name)
      .add({.text = fmt::format("{}: {} in {}, {} of {} CPU", name, time, many,
                                base::counted(static_cast<std::uint64_t>(cpu.samples), "sample"),
                                outside || whole ? "their" : "its threads'")});
  const bool gpu = !std::isnan(cpu.python.gpu_idle_ns);
  Grid grid({{"wall time", false, true}, {"time"}, {"share"}});
  if (gpu) grid.columns.insert(grid.columns.end(), {{"GPU busy"}, {"GPU idle"}});
  const auto add = [&](const std::string& title, std::size_t depth, const model::CpuPart& part) {
    grid.add({{title, base::Tone::kPlain, depth},
              {format_ns(part.ns)},
              {wall > 0 ? format_share(part.ns / wall) : "-"}});
    if (gpu) grid.rows.back().push_back({format_ns(std::max(0.0, part.ns - part.gpu_idle_ns))});
    if (gpu) grid.rows.back().push_back({format_ns(part.gpu_idle_ns)});
  };
  static constexpr std::pair<const char*, const model::CpuPart model::CpuWork::*> kParts[] = {
      {"Python", &model::CpuWork::python},
      {"native code", &model::CpuWork::native},
      {"CUDA calls", &model::CpuWork::cuda},
      {"waiting", &model::CpuWork::waiting}};
  for (const auto& [title, member] : kParts) {
    const model::CpuPart& part = cpu.*member;
    if (part.ns <= 0) continue;
    add(title, 0, part);
    std::size_t shown = 0;
    for (const model::CpuPart& each : cpu.parts)
      if (each.kind == part.kind && !each.name.empty() && each.ns >= 0.001 * wall && shown++ < 8)
        add(each.name == "[kernel]" ? "the operating system" : each.name, 1, each);
  }
  Section& parts = page.begin("Wall time").add(std::move(grid));
  for (const model::CpuHolder& holder : cpu.holders)
    parts.add({.text = fmt::format(
                   "{} {}{}{}: {}",
                   holder.kind == "pool" ? "the pool waits for" : holder.kind + " held by",
                   holder.thread, holder.range.empty() ? "" : " in " + holder.range,
                   holder.doing.empty() ? "" : ", running " + holder.doing, format_ns(holder.ns))});
  if (cpu.pool_samples > 0)
    parts.add({.text = "threads of its pools (OpenMP, BLAS): " + format_ns(cpu.pool_ns) +
                       " of CPU time in addition to the wall time"});
  const auto table = [&](const char* title, Grid of) {
    if (!of.rows.empty()) page.begin(title).add(std::move(of));
  };
  if (region != nullptr) table("Events", counter_grid(report, *region));
  const std::size_t most = style.top == 0 ? 15 : style.top;
  table("Tree", tree_grid(cpu.tree, wall));
  table("Functions", function_grid("functions, by self time", cpu.functions, wall, most));
  const char* const called = "functions, with what they call";
  if (cpu.tree.empty()) table("Callers", function_grid(called, cpu.callers, wall, most));
  if (outside || whole) table("Waits", wait_grid(report, style));
  return page;
}

}  // namespace rangescope::report
