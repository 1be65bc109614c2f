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

// Rows without --top.
constexpr std::size_t kDefaultOwnFunctions = 8, kDefaultFunctions = 10, kDefaultWaits = 10;
constexpr std::size_t kDefaultRegionFunctions = 15;

constexpr std::string_view kInEventLoop = ", in the event loop's thread";

std::size_t rows_or(const Style& style, std::size_t default_rows) {
  if (style.top == 0)
    return default_rows;
  return style.top;
}

/// "12.3 %", "-" if the total is not known.
std::string share_of_total(double ns, double total_ns) {
  if (total_ns > 0)
    return format_share(ns / total_ns);
  return "-";
}

/// Finds the region that a user named.
class RegionSearch {
 public:
  explicit RegionSearch(const std::string& wanted) : wanted_(wanted) {}

  /// Null if the report has no such region; names() are then those that it has.
  const model::Region* find(const model::Report& report) {
    for (const model::Region& region : report.regions) {
      if (has_path(region))
        return &region;
    }
    for (const model::TableRow& row : report.rows) {  // "layer_#": several siblings
      if (row.merged && has_path(*row.merged))
        return &*row.merged;
    }
    if (longest_ != nullptr)
      return longest_;
    for (const ShownRow& row : shown_rows(report)) {  // "Model > model": a chain
      if (row.label == wanted_)
        return row.region;
    }
    return nullptr;
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  /// Remembers the region if only its last name matches.
  bool has_path(const model::Region& region) {
    if (region.process || region.thread || region.path.empty())
      return false;
    const std::string path = model::path_text(region);
    const std::string& last_name = region.path.back();
    names_.push_back(path);
    if (is_wanted(region, path))
      return true;
    if (last_name != path)
      names_.push_back(last_name);
    const bool is_longest =
        longest_ == nullptr || region.wall.inclusive_ns > longest_->wall.inclusive_ns;
    if (is_longest && is_wanted(region, last_name))
      longest_ = &region;
    return false;
  }

  /// As recorded, or as tables print it.
  [[nodiscard]] bool is_wanted(const model::Region& region, const std::string& name) const {
    std::string printed = base::printable(name);
    if (region.kind == model::RangeKind::kStartEnd)
      printed += model::kStartEndMark;
    return name == wanted_ || printed == wanted_;
  }

  const std::string& wanted_;
  const model::Region* longest_ = nullptr;  ///< of those with that last name, most wall time
  std::vector<std::string> names_;
};

/// "forward (modeling_llama.py:312)", "gemm_kernel [libfoo.so]"
std::string function_text(const model::CpuFunction& function) {
  if (function.python) {
    std::string place(base::file_name(function.file));
    if (function.line > 0)
      place += fmt::format(":{}", function.line);
    return fmt::format("{} ({})", function.name, place);
  }
  const bool names_module = function.names_its_module() || function.name.starts_with('(');
  if (names_module || function.module.empty())
    return function.name;
  if (function.module.starts_with('['))
    return function.name + " " + function.module;
  return fmt::format("{} [{}]", function.name, base::file_name(function.module));
}

/// The function with its hottest line and its most frequent caller.
std::string function_details_text(const model::CpuFunction& function) {
  std::string text = function_text(function);
  if (function.hot_line > 0 && function.python)
    text += fmt::format(", line {}", function.hot_line);
  else if (function.hot_line > 0)
    text += fmt::format(", {}:{}", base::file_name(function.file), function.hot_line);
  if (function.caller.known())
    text += ", from " + model::place_text(function.caller);
  return text;
}

Grid function_grid(const char* title,
                   const std::vector<model::CpuFunction>& functions,
                   double wall_ns,
                   std::size_t max_rows) {
  Grid grid({{title, false, true},
             {"self"},
             {"self %", true, false, 1},
             {"total"},
             {"total %", true, false, 1}});
  grid.min_shrunk_width = 40;
  const std::size_t shown = std::min(functions.size(), max_rows);
  for (const model::CpuFunction& function : std::span(functions).first(shown)) {
    grid.add({{function_details_text(function)},
              {format_ns(function.self_ns)},
              {share_of_total(function.self_ns, wall_ns)},
              {format_ns(function.total_ns)},
              {share_of_total(function.total_ns, wall_ns)}});
  }
  return grid;
}

/// Metrics of counted events; sampled ones have an interval.
Grid counter_grid(const model::Report& report, const model::Region& region) {
  Grid grid({{"events of the CPU, per instance", false, true},
             {"value"},
             {"from", true, false, 1},
             {"to", true, false, 1},
             {"records", true, false, 2}});
  grid.min_shrunk_width = 40;
  for (const auto& [name, metric] : region.metrics) {
    if (!metric.source.starts_with(model::kCpuEvents))
      continue;
    const auto column = std::ranges::find(report.metric_columns, name, &model::MetricColumn::name);
    const bool has_title = column != report.metric_columns.end();
    std::string value = "-", smallest, largest;
    if (metric.absent.empty()) {
      value = format_value(metric.value, metric.unit);
      if (metric.max > metric.min) {
        smallest = format_value(metric.min, metric.unit);
        largest = format_value(metric.max, metric.unit);
      }
    }
    grid.add({{has_title ? column->title : name},
              {std::move(value)},
              {std::move(smallest)},
              {std::move(largest)},
              {base::format_count(metric.rounds)}});
  }
  return grid;
}

/// The processes of one command below one parent: a script of 3,000 commands has few such rows.
struct CommandRow {
  std::string name;
  std::size_t depth = 0;
  std::int64_t count = 0;
  double wall_ns = 0;
  std::int64_t ranges = 0;
  std::vector<std::size_t> children;
};

/// Rows in the order of their first process; children follow their parent. The first row is the
/// root, which is no command.
std::vector<CommandRow> command_rows(const model::Report& report) {
  std::vector<const model::ReportProcess*> processes;
  std::map<std::uint32_t, double> first_child_ns;
  for (const auto* list : {&report.processes, &report.other_processes}) {
    for (const model::ReportProcess& process : *list) {
      processes.push_back(&process);
      const auto [first, is_new] = first_child_ns.try_emplace(process.parent_pid, process.start_ns);
      if (!is_new)
        first->second = std::min(first->second, process.start_ns);
    }
  }
  // A process with ranges is known from when it loaded the library: it may have had children
  // before.
  const auto start_ns = [&](const model::ReportProcess* process) {
    const auto child = first_child_ns.find(process->pid);
    if (process->ranges == 0 || child == first_child_ns.end())
      return process->start_ns;
    return std::min(process->start_ns, child->second);
  };
  std::ranges::stable_sort(processes, std::ranges::less(), start_ns);
  std::vector<CommandRow> rows = {{}};
  std::map<std::pair<std::size_t, std::string_view>, std::size_t> row_by_parent_and_name;
  std::map<std::uint32_t, std::size_t> row_of_pid;
  for (const model::ReportProcess* process : processes) {
    std::size_t parent = 0;
    if (const auto found = row_of_pid.find(process->parent_pid); found != row_of_pid.end())
      parent = found->second;
    const std::string_view name(base::file_name(process->name));
    const auto [entry, is_new] = row_by_parent_and_name.try_emplace({parent, name}, rows.size());
    const std::size_t index = entry->second;
    if (is_new) {
      const std::size_t depth = parent == 0 ? 0 : rows[parent].depth + 1;
      rows[parent].children.push_back(index);
      CommandRow& row = rows.emplace_back();
      row.name = name;
      row.depth = depth;
    }
    row_of_pid[process->pid] = index;
    ++rows[index].count;
    rows[index].wall_ns += process->end_ns - process->start_ns;
    rows[index].ranges += process->ranges;
  }
  return rows;
}

/// Indices of rows without the root: parents before children, siblings with most time first.
std::vector<std::size_t> tree_order(std::vector<CommandRow>& rows) {
  std::vector<std::size_t> order;
  std::vector<std::size_t> pending = {0};
  while (!pending.empty()) {
    const std::size_t index = pending.back();
    pending.pop_back();
    if (index != 0)
      order.push_back(index);
    std::vector<std::size_t>& children = rows[index].children;
    // The last one, with most time, is taken next.
    std::ranges::stable_sort(
        children, std::ranges::less(), [&](std::size_t child) { return rows[child].wall_ns; });
    pending.insert(pending.end(), children.begin(), children.end());
  }
  return order;
}

/// Processes of a program without ranges; of one with ranges, where others ran while none was open.
bool has_process_table(const model::Report& report) {
  constexpr double kMuchOutside = 0.1;
  if (model::is_program(report))
    return report.processes.size() > 1;
  if (report.other_processes.empty() || !report.outside || !report.ranks.empty())
    return false;
  return report.outside->wall_ns >= kMuchOutside * report.run.duration_ns;
}

}  // namespace

Section process_section(const model::Report& report, const Style& style) {
  constexpr std::size_t kDefaultCommands = 20, kMaxIndent = 12;
  Section section{"Processes", true};
  if (!has_process_table(report))
    return section;
  const bool has_ranges = !model::is_program(report);
  std::vector<CommandRow> rows = command_rows(report);
  const std::vector<std::size_t> order = tree_order(rows);
  std::size_t shown = order.size();
  if (!style.all)
    shown = std::min(shown, kDefaultCommands);
  Grid grid({{"process", false, true}, {"count"}, {"from start to exit"}});
  if (has_ranges)
    grid.columns.push_back({"ranges"});
  grid.min_shrunk_width = 40;
  for (const std::size_t index : std::span(order).first(shown)) {
    const CommandRow& row = rows[index];
    std::string wall = "-";  // not recorded
    if (row.wall_ns > 0)
      wall = format_ns(row.wall_ns);
    std::vector<GridCell> cells = {{row.name, base::Tone::kPlain, std::min(row.depth, kMaxIndent)},
                                   {base::format_count(row.count)},
                                   {std::move(wall)}};
    if (has_ranges) {
      std::string ranges = "-";
      if (row.ranges > 0)
        ranges = base::format_count(row.ranges);
      cells.push_back({std::move(ranges)});
    }
    grid.add(std::move(cells));
  }
  if (order.size() > shown)
    grid.omitted = base::counted(order.size() - shown, "more command") + ": --all shows each";
  return std::move(section.add(std::move(grid)));
}

Section program_functions(const model::Report& report, const Style& style) {
  Section section{"Functions", true};
  if (!model::is_program(report))
    return section;
  const base::Held<model::CpuWork>& cpu = report.regions.front().cpu;
  if (!cpu || cpu->functions.empty())
    return section;
  return std::move(section.add(function_grid(
      "function", cpu->functions, cpu->whole_ns(), rows_or(style, kDefaultFunctions))));
}

Section own_function_section(const model::Report& report, const Style& style) {
  Section section{"Functions of the program", true};
  if (!model::is_program(report) || !report.regions.front().cpu)
    return section;
  const model::CpuWork& cpu = *report.regions.front().cpu;
  const double cpu_ns = cpu.cpu_ns();
  const std::size_t max_rows = rows_or(style, kDefaultOwnFunctions);
  constexpr const char* kTitle = "function, with the libraries that it calls";
  Grid grid({{kTitle, false, true}, {"CPU"}, {"CPU %", true, false, 1}});
  grid.min_shrunk_width = 40;
  for (const model::CpuFunction& function : cpu.own_functions) {
    if (grid.rows.size() == max_rows || function.self_ns < 0.01 * cpu_ns)
      break;
    std::string place = model::place_text(function.place());
    if (function.event_loop_ns > 0.5 * function.self_ns)
      place += kInEventLoop;
    grid.add({{std::move(place)},
              {format_ns(function.self_ns)},
              {format_share(function.self_ns / cpu_ns)}});
  }
  if (!grid.rows.empty())
    section.add(std::move(grid));
  return section;
}

Grid wait_grid(const model::Report& report, const Style& style) {
  const double min_ns = 0.01 * report.run.duration_ns;
  const std::size_t max_rows = rows_or(style, kDefaultWaits);
  Grid grid({{"waits", false, true},
             {"for"},
             {"time"},
             {"count"},
             {"threads", true, false, 2},
             {"meanwhile another thread in it", false, false, 1}});
  grid.min_shrunk_width = 32;
  for (const model::CpuWaitRow& wait : report.waits) {
    if (grid.rows.size() == max_rows || wait.blocked_ns < min_ns)
      continue;
    std::string place = "(unknown)";
    if (wait.place.known())
      place = model::place_text(wait.place);
    if (wait.idle)
      place += ", idle";
    if (wait.event_loop)
      place += kInEventLoop;
    std::string meanwhile = "-";
    if (wait.meanwhile.known())
      meanwhile = "runs " + model::place_text(wait.meanwhile);
    if (wait.holder_waits.known())
      meanwhile = fmt::format(
          "{} in {}", name_of(wait.holder_waits_for), model::place_text(wait.holder_waits));
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
  if (!model::is_program(report))
    return section;
  Grid grid = wait_grid(report, style);
  if (!grid.rows.empty())
    section.add(std::move(grid));
  return section;
}

/// The call tree of the program's own functions: CPU and waits as shares of the wall time.
Grid tree_grid(const std::vector<model::CpuTreeRow>& rows, double wall_ns) {
  Grid grid({{"functions of the program", false, true},
             {"CPU"},
             {"CPU %", true, false, 1},
             {"waits"},
             {"waits %", true, false, 1}});
  grid.min_shrunk_width = 40;
  for (const model::CpuTreeRow& row : rows) {
    std::string chain;
    for (std::size_t i = 0; i + 1 < row.chain.size(); ++i)
      chain += model::name_without_arguments(row.chain[i].name) + " > ";
    chain += model::place_text(row.chain.back());
    grid.add({{std::move(chain), base::Tone::kPlain, row.depth},
              {format_ns(row.cpu_ns)},
              {share_of_total(row.cpu_ns, wall_ns)},
              {format_ns(row.waiting_ns)},
              {share_of_total(row.waiting_ns, wall_ns)}});
  }
  return grid;
}

namespace {

/// What the page is of: a region, or the time outside all ranges.
struct CpuSubject {
  const model::Region* region = nullptr;  ///< null outside ranges
  bool is_program = false;                ///< the region of a program without ranges
  std::string name;
  const model::CpuWork& cpu;

  [[nodiscard]] bool is_all_threads() const { return region == nullptr || is_program; }
};

base::Result<CpuSubject> find_subject(const model::Report& report, const Style& style) {
  RegionSearch search(style.cpu);
  const model::Region* region = search.find(report);
  if (region == nullptr && style.cpu != kOutsideRanges) {
    constexpr std::ptrdiff_t kMaxNamed = 8;
    std::vector<std::string> names = {kOutsideRanges};
    names.insert(names.end(), search.names().begin(), search.names().end());
    std::string hint = base::did_you_mean(style.cpu, names);
    if (hint.empty()) {
      names.resize(std::min(std::ssize(names), kMaxNamed));
      hint = "Name one of " + base::join(names, ", ");
    }
    return base::fail(base::Code::kUsage,
                      "there is no range '" + base::printable(style.cpu) + "' in this report",
                      "--cpu",
                      base::printable(hint));
  }
  const bool is_outside = region == nullptr;
  const std::string name = is_outside ? kOutsideRanges : base::printable(model::path_text(*region));
  const base::Held<model::CpuWork>& cpu = is_outside ? report.cpu_outside : region->cpu;
  if (!cpu)
    return base::fail(
        base::Code::kNothingCaptured,
        "the CPU was not sampled in '" + name + "'",
        {},
        "Record with rangescope profile --cpu; the data losses name what prevents it");
  return CpuSubject{region, !is_outside && model::is_program(report), name, *cpu};
}

/// "2.1 s in 12 instances" of a region.
std::string instances_text(const model::Region& region, double wall_ns) {
  std::string count = "calls that are not counted";
  if (!region.sampled())
    count = base::counted(static_cast<std::uint64_t>(region.occurrences), "instance");
  if (region.unclosed > 0)
    count += fmt::format(" and {} that never ended", region.unclosed);
  const bool has_several_threads = wall_ns > 1.01 * region.wall.inclusive_ns;
  if (region.kind == model::RangeKind::kStartEnd && has_several_threads)
    count = "all threads during " + count;
  return format_ns(wall_ns) + " in " + count;
}

/// "2.1 s in 4 threads, which ran and waited 8.4 s": of the run, or outside ranges.
std::string threads_text(const model::Report& report, const CpuSubject& subject, double wall_ns) {
  double run_ns = wall_ns;
  std::string threads = "all threads";
  if (subject.is_program) {
    run_ns = subject.region->wall.inclusive_ns;
    threads = base::counted(static_cast<std::uint64_t>(subject.region->threads), "thread");
  } else if (report.outside) {
    run_ns = report.outside->wall_ns;
  }
  std::string text = format_ns(run_ns) + " in " + threads;
  if (wall_ns > 1.01 * run_ns)
    text += ", which ran and waited " + format_ns(wall_ns);
  return text;
}

/// Python, native code, CUDA calls and waiting, each with its largest parts. With a timeline of the
/// GPU also how long the GPU was busy and idle meanwhile.
Grid wall_time_grid(const model::CpuWork& cpu, double wall_ns) {
  constexpr std::size_t kMaxParts = 8;
  constexpr double kMinShare = 0.001;
  static constexpr std::pair<const char*, const model::CpuPart model::CpuWork::*> kParts[] = {
      {"Python", &model::CpuWork::python},
      {"native code", &model::CpuWork::native},
      {"CUDA calls", &model::CpuWork::cuda},
      {"waiting", &model::CpuWork::waiting}};
  const bool has_gpu = !std::isnan(cpu.python.gpu_idle_ns);
  Grid grid({{"wall time", false, true}, {"time"}, {"share"}});
  if (has_gpu)
    grid.columns.insert(grid.columns.end(), {{"GPU busy"}, {"GPU idle"}});
  const auto add = [&](const std::string& title, std::size_t depth, const model::CpuPart& part) {
    std::vector<GridCell> cells = {{title, base::Tone::kPlain, depth},
                                   {format_ns(part.ns)},
                                   {share_of_total(part.ns, wall_ns)}};
    if (has_gpu) {
      cells.push_back({format_ns(std::max(0.0, part.ns - part.gpu_idle_ns))});
      cells.push_back({format_ns(part.gpu_idle_ns)});
    }
    grid.add(std::move(cells));
  };
  for (const auto& [title, member] : kParts) {
    const model::CpuPart& total = cpu.*member;
    if (total.ns <= 0)
      continue;
    add(title, 0, total);
    std::size_t shown = 0;
    for (const model::CpuPart& part : cpu.parts) {
      const bool is_inside = part.kind == total.kind && !part.name.empty();
      if (!is_inside || part.ns < kMinShare * wall_ns || shown == kMaxParts)
        continue;
      add(part.name == "[kernel]" ? "the operating system" : part.name, 1, part);
      ++shown;
    }
  }
  return grid;
}

/// "GIL held by thread 12 in load, running read: 12.3 ms"
std::string holder_text(const model::CpuHolder& holder) {
  std::string text = holder.kind + " held by ";
  if (holder.kind == "pool")
    text = "the pool waits for ";
  text += holder.thread;
  if (!holder.range.empty())
    text += " in " + holder.range;
  if (!holder.doing.empty())
    text += ", running " + holder.doing;
  return text + ": " + format_ns(holder.ns);
}

}  // namespace

base::Result<Document> cpu_page(const model::Report& report, const Style& style) {
  const CpuSubject subject = TRY(find_subject(report, style));
  const model::CpuWork& cpu = subject.cpu;
  const double wall_ns = cpu.whole_ns();
  const bool is_all_threads = subject.is_all_threads();
  Document page;
  std::string time, whose;
  if (is_all_threads) {
    time = threads_text(report, subject, wall_ns);
    whose = "their";
  } else {
    time = instances_text(*subject.region, wall_ns);
    whose = "its threads'";
  }
  const std::string samples = base::counted(static_cast<std::uint64_t>(cpu.samples), "sample");
  page.begin("CPU of " + subject.name)
      .add({.text = fmt::format("{}: {}, {} of {} CPU", subject.name, time, samples, whose)});
  Section& parts = page.begin("Wall time").add(wall_time_grid(cpu, wall_ns));
  for (const model::CpuHolder& holder : cpu.holders)
    parts.add({.text = holder_text(holder)});
  if (cpu.pool_samples > 0)
    parts.add({.text = "threads of its pools (OpenMP, BLAS): " + format_ns(cpu.pool_ns) +
                       " of CPU time in addition to the wall time"});
  const auto add_table = [&](const char* title, Grid grid) {
    if (!grid.rows.empty())
      page.begin(title).add(std::move(grid));
  };
  const std::size_t max_functions = rows_or(style, kDefaultRegionFunctions);
  if (subject.region != nullptr)
    add_table("Events", counter_grid(report, *subject.region));
  add_table("Tree", tree_grid(cpu.tree, wall_ns));
  add_table("Functions",
            function_grid("functions, by self time", cpu.functions, wall_ns, max_functions));
  if (cpu.tree.empty())
    add_table("Callers",
              function_grid("functions, with what they call", cpu.callers, wall_ns, max_functions));
  if (is_all_threads)
    add_table("Waits", wait_grid(report, style));
  return page;
}

}  // namespace rangescope::report
