#include "report/document/report_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/document/cpu_page.hpp"
#include "report/document/figures.hpp"
#include "report/document/findings.hpp"
#include "report/document/memory/memory_page.hpp"
#include "report/document/rank_table.hpp"
#include "report/document/region_table.hpp"

namespace rangescope::report {
namespace {

constexpr std::size_t kSummaryRows = 8;

/// "window 3, 12.5 s after the start", "3 windows, the first 12.5 s after the start"
std::string windows_text(const model::RunInfo& run) {
  const auto& first = run.windows.front();
  const std::size_t count = run.windows.size();
  std::string text = base::counted(count, "window");
  if (count == 1) text = fmt::format("window {}", first.number);
  if (count > 1 && first.after_ns == 0) return text;
  text += count == 1 ? ", " : ", the first ";
  return text + base::format_ns(first.after_ns) + " after the start";
}

/// "CPU 1.250 s (user 1.100 s, system 150.0 ms), 0.35 CPUs used", "peak memory 45.2 MB"
void add_usage(const model::RunInfo& run, std::vector<std::string>& facts) {
  if (!run.usage) return;
  const std::string user = base::format_ns(run.usage->user_ns);
  const std::string system = base::format_ns(run.usage->system_ns);
  facts.push_back(fmt::format("CPU {} (user {}, system {})", base::format_ns(run.usage->cpu_ns()),
                              user, system));
  const double cpus_used = run.cpus_used().value_or(0);
  if (cpus_used > 0) facts.push_back(fmt::format("{:.2f} CPUs used", cpus_used));
  if (run.usage->peak_rss_bytes)
    facts.push_back("peak memory " + base::format_bytes(*run.usage->peak_rss_bytes) + " (RSS)");
}

Section head(const model::Report& report, const std::string& title) {
  const model::RunInfo& run = report.run;
  Section section{title + (run.id.empty() ? "" : " of " + run.id), true};
  if (!run.command.empty())
    section.add({.tone = base::Tone::kBold, .code = base::shell_quote(run.command)});
  const std::vector<std::string> facts = run_facts(report);
  if (!facts.empty()) section.add({.text = base::join(facts, ", "), .tone = base::Tone::kDim});
  for (const auto& [name, text] : {std::pair{"host", &run.host}, {"recorded by", &run.tool}})
    if (!text->empty())
      section.add({.text = *text, .shape = Line::kItem, .name = name, .detail = true});
  for (const std::string& source : run.sources)
    section.add({.text = source, .shape = Line::kItem, .name = "read from", .detail = true});
  return section;
}

base::Tone tone_of(model::Severity severity) {
  return severity == model::Severity::kError     ? base::Tone::kBad
         : severity == model::Severity::kWarning ? base::Tone::kWarn
                                                 : base::Tone::kDim;
}

/// What is missing or wrong, and what a reader should know.
Section foot(const model::Report& report) {
  Section section{"Data losses and notes", true};
  for (const model::Loss& loss : report.losses) {
    std::string text(loss.kind.id());
    if (loss.count > 0)
      text += " (" + base::format_count(static_cast<std::int64_t>(loss.count)) + ")";
    if (!loss.detail.empty()) text += ": " + loss.detail;
    section.add({text, Line::kItem, tone_of(loss.severity), "data loss"});
  }
  for (const model::Finding& finding : report.findings)
    if (finding.verdict != model::Grade::kOk && finding.verdict != model::Grade::kSkip)
      add_finding(section, finding);
  for (const std::string& note : report.notes)
    section.add({.text = note, .shape = Line::kItem, .name = "note"});
  return section;
}

void add_grid(Document& page, const char* title, Grid grid) {
  if (!grid.rows.empty()) page.begin(title).add(std::move(grid));
}

bool aggregate(const model::Region& region) {
  return !region.process && !region.thread;
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

void add_memory(Document& page, const model::Report& report) {
  constexpr std::size_t kMemoryRows = 10;
  auto sections = memory_sections(report, kMemoryRows);
  for (Section& section : sections) page.sections.push_back(std::move(section));
  if (auto section = cuda_memory_section(report)) page.sections.push_back(std::move(*section));
}

/// How much of what the GPU can do was used, and what that is measured against.
void add_utilization(Document& page, const model::Report& report) {
  Grid grid({{"range", false, true},
             {"MFU"},
             {"MBU"},
             {"executed"},
             {"tokens/s"},
             {"a token"},
             {"formula", false}});
  const auto share = [](const std::optional<double>& value) {
    return value ? format_utilization(*value) : "-";
  };
  for (const model::Region& region : report.regions) {
    const auto& use = region.utilization;
    if (!aggregate(region) || !use || !(use->executed || use->useful || use->bandwidth)) continue;
    const double many = use->useful_tokens.value_or(0), each = region.wall.per_occurrence_ns.mean;
    const bool rate = many > 0 && each > 0;
    grid.add({{model::path_text(region)},
              {share(use->useful)},
              {share(use->bandwidth)},
              {share(use->executed)},
              {rate ? base::format_si(many / each * 1e9, "") : "-"},
              {rate ? base::format_ns(each / many) : "-"},
              {use->formula}});
  }
  if (grid.rows.empty()) return;
  Section& section = page.begin("How well the GPU is used").add(std::move(grid));
  for (const std::string& note : report.notes)
    if (note.starts_with("peaks: "))
      section.add({.text = "Against the " + note + roofs(report) + "."});
}

void add_limits(Document& page, const model::Report& report) {
  Section& section = page.begin("What limits it");
  const auto line = [&](const std::string& what, const model::Bound& bound) {
    section.add({.text = what + ": " + bound.reason, .shape = Line::kItem, .name = bound.kind});
  };
  std::size_t left = kSummaryRows;
  std::set<std::string> told;  // a kernel that runs in every layer is one line
  for (const model::Region& region : report.regions) {
    if (!aggregate(region)) continue;
    if (region.bound && region.bound->kind != "unknown") {
      if (left-- > 0) line(model::path_text(region), *region.bound);
    } else {
      for (const model::KernelMetrics& kernel : region.kernels)
        if (kernel.bound && kernel.bound->kind != "unknown" && left > 0 &&
            told.insert(kernel.name).second)
          --left, line(model::path_text(region) + ", kernel " + kernel.name, *kernel.bound);
    }
    if (left == 0) break;
  }
}

Grid family_grid(const model::Report& report) {
  Grid grid({{"kind", false, true}, {"kernels"}, {"calls"}, {"total"}, {"share"}});
  for (const model::KernelFamily& family : report.families)
    grid.add({{family.name},
              {base::format_count(family.kernels)},
              {base::format_count(family.calls)},
              {base::format_ns(family.total_ns)},
              {base::format_share(family.share)}});
  return grid;
}

}  // namespace

std::vector<std::string> run_facts(const model::Report& report) {
  const model::RunInfo& run = report.run;
  std::vector<std::string> facts;
  if (run.duration_ns > 0)
    facts.push_back(base::format_ns(run.duration_ns) +
                    (!run.windows.empty() ? " in " + windows_text(run)
                     : run.attached_pid   ? fmt::format(" of process {}", *run.attached_pid)
                                          : ""));
  add_usage(run, facts);
  if (run.signal)
    facts.push_back(fmt::format("ended by signal {}", *run.signal));
  else if (run.exit_code && *run.exit_code != 0)
    facts.push_back(fmt::format("exit code {}", *run.exit_code));
  if (report.processes.size() > 1)
    facts.push_back(base::counted(report.processes.size(), "process"));
  for (const std::string& device : device_texts(report)) facts.push_back(device);
  if (!run.id.empty()) facts.push_back("run " + run.id);
  return facts;
}

base::Result<Document> report_document(const model::Report& report, const Style& style) {
  if (!style.cpu.empty()) return cpu_page(report, style);
  std::vector<ColumnView> explained;
  auto tables = TRY(region_sections(report, style, explained));
  Document page;
  page.sections.push_back(head(report, "Region report"));
  page.sections.push_back(verdict_section(report, style));
  page.sections.push_back(what_if_section(report));
  const auto beyond = [](const model::Region& region) { return region.wall.share > 1.0005; };
  if (tables.empty()) page.begin("Regions").add({.text = "no ranges"});
  for (Section& table : tables) page.sections.push_back(std::move(table));
  if (std::any_of(report.regions.begin(), report.regions.end(), beyond) &&
      report.processes.size() > 1)
    page.sections.back().add({.text = "(share: of the run's " +
                                      base::format_ns(report.run.duration_ns) +
                                      "; concurrent threads and processes add up to more)",
                              .tone = base::Tone::kDim});
  add_memory(page, report);
  page.sections.push_back(own_function_section(report, style));
  page.sections.push_back(program_functions(report, style));
  page.sections.push_back(wait_section(report, style));
  page.sections.push_back(process_section(report, style));
  constexpr std::size_t kCommunicationRows = 8;
  page.sections.push_back(
      rank_section(report, style.all ? report.ranks.size() : kCommunicationRows));
  for (Section& section :
       communication_sections(report, std::min(kCommunicationRows, style.top_kernels)))
    page.sections.push_back(std::move(section));
  if (style.top_kernels > 0) {
    KernelGrids kernels = kernel_grids(report, style.top_kernels);
    add_grid(page, "Kernels", std::move(kernels.kernels));
    add_grid(page, "Metrics of kernels", std::move(kernels.metrics));
    add_grid(page, "Why kernels wait", stall_grid(report, style.top_kernels));
    add_grid(page, "Operators", operator_grid(report, style.top_kernels));
  }
  if (style.explain) {
    Section& section = page.begin("Columns");
    for (const ColumnView& column : explained)
      if (const model::Measure* measure = model::find_measure(column.tag))
        section.add({.text = fmt::format("{} ({}, from {}): {}", measure->title, measure->tag,
                                         measure->source, measure->formula),
                     .shape = Line::kItem});
  }
  page.sections.push_back(foot(report));
  return page;
}

Document summary_document(const model::Report& report) {
  Style style;
  style.width = 0;
  style.top = kSummaryRows;
  style.explain = true;
  Document page;
  page.sections.push_back(head(report, "Where the time goes"));
  page.sections.push_back(verdict_section(report, style));
  style.explain = false;
  std::vector<ColumnView> explained;
  if (auto tables = region_sections(report, style, explained); tables && !tables->empty()) {
    tables->front().title = "Time by range";
    tables->front().blocks.insert(tables->front().blocks.begin(),
                                  Markup{"", "summary.svg", "Time by range"});
    page.sections.push_back(std::move(tables->front()));
  }
  add_memory(page, report);
  add_utilization(page, report);
  add_limits(page, report);
  add_grid(page, "Kernels by kind", family_grid(report));
  add_grid(page, "Kernels", kernel_grids(report, style.top_kernels).kernels);
  add_grid(page, "Why kernels wait", stall_grid(report, style.top_kernels));
  page.sections.push_back(foot(report));
  return page;
}

Document operators_document(const model::Report& report) {
  Document page;
  page.sections.push_back(head(report, "Operators"));
  add_grid(page, "By time", operator_grid(report, report.operators.size()));
  return page;
}

Document kernels_document(const model::Report& report) {
  Document page;
  page.sections.push_back(head(report, "Kernels by GPU time"));
  const auto grid = [](const char* title) {
    return Grid({{title, false, true}, {"calls"}, {"total"}, {"mean"}, {"share"}});
  };
  const auto add = [](Grid& to, const std::string& name, const model::KernelRow& row) {
    to.add({{name},
            {base::format_count(row.calls)},
            {base::format_ns(row.total_ns)},
            {base::format_ns(row.duration_ns.mean)},
            {base::format_share(row.share)}});
  };
  Grid kernels = grid("kernel"), by_region = grid("kernel of the region");
  for (const model::KernelRow& row : report.kernels)
    add(kernels, row.name.empty() ? row.short_name : row.name, row);
  if (report.kernels.empty())
    page.begin("Kernels").add({.text = "No kernel was recorded by a stage with a timeline."});
  add_grid(page, "Kernels", std::move(kernels));
  add_grid(page, "Kernels by kind", family_grid(report));
  for (const model::Region& region : report.regions) {
    if (!aggregate(region) || !region.gpu || region.gpu->top_kernels.empty()) continue;
    by_region.add({{model::path_text(region)}, {}, {}, {}, {}});
    for (const model::KernelRow& row : region.gpu->top_kernels) {
      add(by_region, row.short_name.empty() ? row.name : row.short_name, row);
      by_region.rows.back().front().depth = 1;
    }
  }
  add_grid(page, "Kernels by region", std::move(by_region));
  return page;
}

std::string summary_figure(const model::Report& report) {
  const bool gpu = report.total && report.total->busy_ns > 0;
  std::vector<std::pair<std::string, double>> bars;
  for (const model::Region& region : report.regions) {
    const double own =
        gpu ? (region.gpu ? region.gpu->exclusive_busy_ns : 0) : region.wall.exclusive_ns;
    if (aggregate(region) && own > 0) bars.emplace_back(model::path_text(region), own);
  }
  std::stable_sort(bars.begin(), bars.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (bars.size() > kSummaryRows) bars.resize(kSummaryRows);
  return bars_figure(gpu ? "GPU time of each range, without ranges inside it"
                         : "Time of each range, without ranges inside it",
                     bars);
}

}  // namespace rangescope::report
