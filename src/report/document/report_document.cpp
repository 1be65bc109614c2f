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
  const std::string start = base::format_ns(first.after_ns) + " after the start";
  if (count == 1)
    return fmt::format("window {}, {}", first.number, start);
  const std::string windows = base::counted(count, "window");
  if (count > 1 && first.after_ns == 0)
    return windows;
  return windows + ", the first " + start;
}

/// "CPU 1.250 s (user 1.100 s, system 150.0 ms), 0.35 CPUs used", "peak memory 45.2 MB", "other
/// programs used 1.40 of 2 CPUs"
void add_usage(const model::RunInfo& run, std::vector<std::string>& facts) {
  if (!run.usage)
    return;
  const std::string user = base::format_ns(run.usage->user_ns);
  const std::string system = base::format_ns(run.usage->system_ns);
  facts.push_back(fmt::format(
      "CPU {} (user {}, system {})", base::format_ns(run.usage->cpu_ns()), user, system));
  const double cpus_used = run.cpus_used().value_or(0);
  if (cpus_used > 0)
    facts.push_back(fmt::format("{:.2f} CPUs used", cpus_used));
  if (run.usage->peak_rss_bytes)
    facts.push_back("peak memory " + base::format_bytes(*run.usage->peak_rss_bytes) + " (RSS)");
  constexpr double kWorthSaying = 0.1;
  const auto& machine = run.usage->machine;
  if (machine && machine->busy_with_others >= kWorthSaying * machine->cpus)
    facts.push_back(fmt::format(
        "other programs used {:.2f} of {} CPUs", machine->busy_with_others, machine->cpus));
}

/// "2.100 s", "2.100 s in window 3, ...", "2.100 s of process 4711"
std::string duration_text(const model::RunInfo& run) {
  const std::string duration = base::format_ns(run.duration_ns);
  if (!run.windows.empty())
    return duration + " in " + windows_text(run);
  if (run.attached_pid)
    return fmt::format("{} of process {}", duration, *run.attached_pid);
  return duration;
}

/// The first section: the command, how the run went, and where it was recorded.
Section head(const model::Report& report, const std::string& title) {
  const model::RunInfo& run = report.run;
  Section section{title, true};
  if (!run.id.empty())
    section.title += " of " + run.id;
  if (!run.command.empty())
    section.add({.tone = base::Tone::kBold, .code = base::shell_quote(run.command)});
  const std::vector<std::string> facts = run_facts(report);
  if (!facts.empty())
    section.add({.text = base::join(facts, ", "), .tone = base::Tone::kDim});
  for (const auto& [name, text] : {std::pair{"host", &run.host}, {"recorded by", &run.tool}})
    if (!text->empty())
      section.add({.text = *text, .shape = Line::kItem, .name = name, .detail = true});
  for (const std::string& source : run.sources)
    section.add({.text = source, .shape = Line::kItem, .name = "read from", .detail = true});
  return section;
}

base::Tone severity_tone(model::Severity severity) {
  switch (severity) {
    case model::Severity::kError: return base::Tone::kBad;
    case model::Severity::kWarning: return base::Tone::kWarn;
    default: return base::Tone::kDim;
  }
}

/// The last section: data losses, findings of the doctor and notes.
Section foot(const model::Report& report) {
  Section section{"Data losses and notes", true};
  for (const model::Loss& loss : report.losses) {
    std::string text(loss.kind.id());
    if (loss.count > 0)
      text += " (" + base::format_count(static_cast<std::int64_t>(loss.count)) + ")";
    if (!loss.detail.empty())
      text += ": " + loss.detail;
    section.add({text, Line::kItem, severity_tone(loss.severity), "data loss"});
  }
  for (const model::Finding& finding : report.findings) {
    const bool is_problem =
        finding.verdict != model::Grade::kOk && finding.verdict != model::Grade::kSkip;
    if (is_problem)
      add_finding(section, finding);
  }
  for (const std::string& note : report.notes)
    section.add({.text = note, .shape = Line::kItem, .name = "note"});
  return section;
}

void add_grid(Document& page, const char* title, Grid grid) {
  if (!grid.rows.empty())
    page.begin(title).add(std::move(grid));
}

/// Over all processes and threads.
bool is_aggregate(const model::Region& region) {
  return !region.process && !region.thread;
}

/// "; fp32 66.90 TFLOP/s, dram 4.800 TB/s": the peaks that the roofline points have.
std::string roofs(const model::Report& report) {
  std::map<std::string, double> flop_peaks, byte_peaks;
  const auto collect = [&](const std::vector<model::RooflinePoint>& points) {
    for (const model::RooflinePoint& point : points) {
      if (point.peak_flop_per_s > 0)
        flop_peaks[point.precision] = point.peak_flop_per_s;
      if (point.peak_bytes_per_s > 0)
        byte_peaks[point.level] = point.peak_bytes_per_s;
    }
  };
  for (const model::Region& region : report.regions)
    collect(region.roofline);
  for (const model::KernelCounters& kernel : report.kernel_counters)
    collect(kernel.roofline);
  std::vector<std::string> texts;
  for (const auto& [name, peak] : flop_peaks)
    texts.push_back(name + " " + base::format_si(peak, "FLOP/s"));
  for (const auto& [name, peak] : byte_peaks)
    texts.push_back(name + " " + base::format_si(peak, "B/s"));
  if (texts.empty())
    return {};
  return "; " + base::join(texts, ", ");
}

void add_memory(Document& page, const model::Report& report) {
  constexpr std::size_t kMemoryRows = 10;
  auto sections = memory_sections(report, kMemoryRows);
  for (Section& section : sections)
    page.sections.push_back(std::move(section));
  if (auto section = cuda_memory_section(report))
    page.sections.push_back(std::move(*section));
}

/// MFU, MBU and token rates by range, and the peaks that they are shares of.
void add_utilization(Document& page, const model::Report& report) {
  Grid grid({{"range", false, true},
             {"MFU"},
             {"MBU"},
             {"executed"},
             {"tokens/s"},
             {"a token"},
             {"formula", false}});
  const auto share = [](const std::optional<double>& value) {
    return or_dash(value, format_utilization);
  };
  for (const model::Region& region : report.regions) {
    const auto& use = region.utilization;
    if (!is_aggregate(region) || !use)
      continue;
    const bool has_share = use->executed || use->useful || use->bandwidth;
    if (!has_share)
      continue;
    const double tokens = use->useful_tokens.value_or(0);  // of an instance
    const double instance_ns = region.wall.per_occurrence_ns.mean;
    std::string rate = "-", token_time = "-";
    if (tokens > 0 && instance_ns > 0) {
      rate = base::format_si(tokens / instance_ns * 1e9, "");
      token_time = base::format_ns(instance_ns / tokens);
    }
    grid.add({{model::path_text(region)},
              {share(use->useful)},
              {share(use->bandwidth)},
              {share(use->executed)},
              {std::move(rate)},
              {std::move(token_time)},
              {use->formula}});
  }
  if (grid.rows.empty())
    return;
  Section& section = page.begin("How well the GPU is used").add(std::move(grid));
  for (const std::string& note : report.notes)
    if (note.starts_with("peaks: "))
      section.add({.text = "Against the " + note + roofs(report) + "."});
}

/// The limiter of each range, or of its kernels where the range has none; at most kSummaryRows.
void add_limits(Document& page, const model::Report& report) {
  Section& section = page.begin("What limits it");
  std::size_t lines_left = kSummaryRows;
  const auto add_line = [&](const std::string& subject, const model::Bound& bound) {
    section.add({.text = subject + ": " + bound.reason, .shape = Line::kItem, .name = bound.kind});
    --lines_left;
  };
  std::set<std::string> listed;  // a kernel that runs in every layer gets one line
  for (const model::Region& region : report.regions) {
    if (!is_aggregate(region))
      continue;
    if (lines_left == 0)
      return;
    if (has_limiter(region.bound)) {
      add_line(model::path_text(region), *region.bound);
      continue;
    }
    for (const model::KernelMetrics& kernel : region.kernels) {
      if (lines_left == 0 || !has_limiter(kernel.bound))
        continue;
      if (!listed.insert(kernel.name).second)
        continue;
      add_line(model::path_text(region) + ", kernel " + kernel.name, *kernel.bound);
    }
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

/// A note below the table of regions if a share above 100 % needs an explanation.
void explain_large_shares(Section& section, const model::Report& report) {
  const bool exceeds_run = std::ranges::any_of(
      report.regions, [](const model::Region& region) { return region.wall.share > 1.0005; });
  if (!exceeds_run || report.processes.size() < 2)
    return;
  const std::string duration = base::format_ns(report.run.duration_ns);
  const std::string text =
      "(share: of the run's " + duration + "; concurrent threads and processes add up to more)";
  section.add({.text = text, .tone = base::Tone::kDim});
}

void add_kernels(Document& page, const model::Report& report, std::size_t top) {
  KernelGrids kernels = kernel_grids(report, top);
  add_grid(page, "Kernels", std::move(kernels.kernels));
  add_grid(page, "Metrics of kernels", std::move(kernels.metrics));
  add_grid(page, "Why kernels wait", stall_grid(report, top));
  add_grid(page, "Operators", operator_grid(report, top));
}

/// What each column means and how it is computed.
void add_column_formulas(Document& page, const std::vector<ColumnView>& columns) {
  Section& section = page.begin("Columns");
  for (const ColumnView& column : columns) {
    const model::Measure* measure = model::find_measure(column.tag);
    if (measure == nullptr)
      continue;
    section.add({.text = fmt::format("{} ({}, from {}): {}",
                                     measure->title,
                                     measure->tag,
                                     measure->source,
                                     measure->formula),
                 .shape = Line::kItem});
  }
}

}  // namespace

std::vector<std::string> run_facts(const model::Report& report) {
  const model::RunInfo& run = report.run;
  std::vector<std::string> facts;
  if (run.duration_ns > 0)
    facts.push_back(duration_text(run));
  add_usage(run, facts);
  if (run.signal)
    facts.push_back(fmt::format("ended by signal {}", *run.signal));
  else if (run.exit_code && *run.exit_code != 0)
    facts.push_back(fmt::format("exit code {}", *run.exit_code));
  if (report.processes.size() > 1)
    facts.push_back(base::counted(report.processes.size(), "process"));
  for (const std::string& device : device_texts(report))
    facts.push_back(device);
  if (!run.id.empty())
    facts.push_back("run " + run.id);
  return facts;
}

base::Result<Document> report_document(const model::Report& report, const Style& style) {
  constexpr std::size_t kCommunicationRows = 8;
  if (!style.cpu.empty())
    return cpu_page(report, style);
  std::vector<ColumnView> columns;
  auto tables = TRY(region_sections(report, style, columns));
  Document page;
  page.sections.push_back(head(report, "Region report"));
  page.sections.push_back(verdict_section(report, style));
  page.sections.push_back(what_if_section(report));
  if (tables.empty())
    page.begin("Regions").add({.text = "no ranges"});
  for (Section& table : tables)
    page.sections.push_back(std::move(table));
  explain_large_shares(page.sections.back(), report);
  add_memory(page, report);
  page.sections.push_back(own_function_section(report, style));
  page.sections.push_back(program_functions(report, style));
  page.sections.push_back(wait_section(report, style));
  page.sections.push_back(process_section(report, style));
  const std::size_t rank_rows = style.all ? report.ranks.size() : kCommunicationRows;
  page.sections.push_back(rank_section(report, rank_rows));
  if (style.per_rank)
    page.sections.push_back(rank_function_section(report, rank_rows));
  const std::size_t communication_rows = std::min(kCommunicationRows, style.top_kernels);
  for (Section& section : communication_sections(report, communication_rows))
    page.sections.push_back(std::move(section));
  if (style.top_kernels > 0)
    add_kernels(page, report, style.top_kernels);
  if (style.explain)
    add_column_formulas(page, columns);
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
  std::vector<ColumnView> columns;
  if (auto tables = region_sections(report, style, columns); tables && !tables->empty()) {
    Section& regions = tables->front();
    regions.title = "Time by range";
    regions.blocks.insert(regions.blocks.begin(), Markup{"", "summary.svg", "Time by range"});
    page.sections.push_back(std::move(regions));
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
  const auto kernel_table = [](const char* title) {
    return Grid({{title, false, true}, {"calls"}, {"total"}, {"mean"}, {"share"}});
  };
  const auto add_row = [](Grid& grid, const std::string& name, const model::KernelRow& row) {
    grid.add({{name},
              {base::format_count(row.calls)},
              {base::format_ns(row.total_ns)},
              {base::format_ns(row.duration_ns.mean)},
              {base::format_share(row.share)}});
  };
  Grid kernels = kernel_table("kernel");
  for (const model::KernelRow& row : report.kernels)
    add_row(kernels, text_or(row.name, row.short_name), row);
  if (report.kernels.empty())
    page.begin("Kernels").add({.text = "No kernel was recorded by a stage with a timeline."});
  add_grid(page, "Kernels", std::move(kernels));
  add_grid(page, "Kernels by kind", family_grid(report));

  Grid by_region = kernel_table("kernel of the region");
  for (const model::Region& region : report.regions) {
    if (!is_aggregate(region) || !region.gpu || region.gpu->top_kernels.empty())
      continue;
    by_region.add({{model::path_text(region)}, {}, {}, {}, {}});
    for (const model::KernelRow& row : region.gpu->top_kernels) {
      add_row(by_region, text_or(row.short_name, row.name), row);
      by_region.rows.back().front().depth = 1;
    }
  }
  add_grid(page, "Kernels by region", std::move(by_region));
  return page;
}

std::string summary_figure(const model::Report& report) {
  const bool by_gpu_time = report.total && report.total->busy_ns > 0;
  const auto self_ns = [&](const model::Region& region) -> double {
    if (!by_gpu_time)
      return region.wall.exclusive_ns;
    if (!region.gpu)
      return 0;
    return region.gpu->exclusive_busy_ns;
  };
  std::vector<std::pair<std::string, double>> bars;
  for (const model::Region& region : report.regions) {
    if (is_aggregate(region) && self_ns(region) > 0)
      bars.emplace_back(model::path_text(region), self_ns(region));
  }
  std::ranges::stable_sort(bars, std::ranges::greater(), &std::pair<std::string, double>::second);
  if (bars.size() > kSummaryRows)
    bars.resize(kSummaryRows);
  const std::string time = by_gpu_time ? "GPU time" : "Time";
  return bars_figure(time + " of each range, without ranges inside it", bars);
}

}  // namespace rangescope::report
