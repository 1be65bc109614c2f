#include "report/formats/html/data.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "model/advice.hpp"
#include "model/measure.hpp"
#include "report/document/cpu_page.hpp"
#include "report/document/findings.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/memory/memory_page.hpp"
#include "report/document/region_table.hpp"
#include "report/document/report_document.hpp"
#include "report/document/shown_rows.hpp"
#include "report/document/source_text.hpp"
#include "report/document/view.hpp"
#include "report/document/web_pages.hpp"
#include "report/formats.hpp"

namespace rangescope::report {
namespace {

using model::Region;

constexpr std::size_t kMaxProgramRows = 30;

// Utilization is a separate object, with its formula.
bool is_separate(const model::Measure& measure) {
  return measure.tag.starts_with("utilization.");
}

bool is_sum(const model::Measure& measure) {
  return measure.tag.starts_with("gpu.") && model::adds_up(measure);
}

/// The number of instances whose GPU work was recorded, if the timeline was paused during others; 0
/// otherwise.
std::int64_t partly_recorded(const Region& region) {
  if (!region.gpu || !region.gpu->partial || region.occurrences <= 0)
    return 0;
  const std::int64_t recorded = region.gpu->recorded_occurrences;
  if (recorded >= region.occurrences)
    return 0;
  return recorded;
}

/// The measures in the order of "measures". As in the terminal, sums of a part of the instances are
/// per instance; outside ranges such sums mean nothing.
void page_values(JsonWriter& json, std::string_view name, const Region& region) {
  const std::int64_t recorded = partly_recorded(region);
  json.open_line_array(name);
  for (const model::Measure& measure : model::measures()) {
    if (is_separate(measure))
      continue;
    auto value = measure.get(region);
    const bool is_partial = region.gpu && region.gpu->partial && measure.tag.starts_with("gpu.");
    if (value && is_partial) {
      if (region.occurrences <= 0)
        value.reset();
      else if (recorded > 0 && is_sum(measure))
        *value /= static_cast<double>(recorded);
    }
    json.value(value);
  }
  json.close();
}

/// The texts of a kernel's counters: the last columns of its row.
std::vector<std::string> counter_texts(const std::vector<GridCell>& row) {
  std::vector<std::string> texts;
  for (std::size_t i = kKernelColumns; i < row.size(); ++i)
    texts.push_back(row[i].text);
  return texts;
}

void page_stalls(JsonWriter& json, const model::Report& report, const model::Stalls& stalls) {
  json.open_line_object("stalls");
  json.field("samples", stalls.samples);
  json.field("saves_ns", stalls.saves_ns);
  std::vector<model::StallShare> reasons = stalls.reasons;
  std::erase_if(reasons,
                [](const model::StallShare& reason) { return !model::is_stall(reason.reason); });
  json.line_objects("reasons", reasons, [&](const model::StallShare& reason) {
    json.field("reason", reason.reason);
    json.field("share", reason.share);
  });
  json.line_objects("lines", stalls.lines, [&](const model::StallLine& line) {
    json.field("at", model::place_text(line));
    json.field("share", line.share);
    json.field("reason", line.reason);
    json.field("reason_share", line.reason_share);
    const std::string text = source_text(line, report.run.start_unix_ns);
    if (!text.empty())
      json.field("text", text);
  });
  json.close();
}

/// `counters`: a table of the same rows with their counters, or null.
void page_kernel_rows(JsonWriter& json,
                      const model::Report& report,
                      std::string_view name,
                      const std::vector<model::KernelRow>& rows,
                      const Grid* counters = nullptr) {
  const bool has_counters = counters != nullptr && counters->columns.size() > kKernelColumns;
  json.line_objects(name, rows, [&](const model::KernelRow& row) {
    const model::KernelShape& shape = row.shape;
    const std::int64_t shared_bytes =
        std::int64_t{shape.static_shared_bytes} + shape.dynamic_shared_bytes;
    json.field("name", row.name);
    json.field("short", text_or(row.label, row.short_name));
    json.field("calls", row.calls);
    json.field("total_ns", row.total_ns);
    json.field("median_ns", row.duration_ns.median);
    json.field("max_ns", row.duration_ns.max);
    json.field("share", row.share);
    json.field("grid", shape.grid);
    json.field("block", shape.block);
    json.field("registers", shape.registers_per_thread);
    json.field("shared", shared_bytes);
    json.field("shapes", row.shapes);
    const auto index = static_cast<std::size_t>(&row - rows.data());
    if (has_counters)
      json.field("counters", counter_texts(counters->rows[index]));
    if (row.stalls)
      page_stalls(json, report, *row.stalls);
  });
}

void page_region_object(JsonWriter& json, const model::Report& report, const Region& region) {
  json.field("id", region.id);
  json.field("parent", indexed(region.parent));
  json.field("depth", region.depth);
  json.field("path", region.path);
  json.field("domain", region.domain);
  json.field("kind", model::range_kind_key(region.kind));
  if (region.module)
    json.field("module", true);
  if (region.process)
    json.field("process", region.process);
  if (const auto pid = pid_of(report, region.process))
    json.field("pid", pid);
  if (region.thread)
    json.field("thread", region.thread);
  page_values(json, "v", region);
  if (partly_recorded(region) > 0)
    json.field("each", true);
  if (region.gpu) {
    page_kernel_rows(json, report, "top", region.gpu->top_kernels);
    write_copies(json, "copies", region.gpu->copies_by_kind);
  }
  if (!region.metrics.empty())
    write_metrics(json, region.metrics);
  if (!region.kernels.empty())
    json.line_objects("counted", region.kernels, [&](const model::KernelMetrics& kernel) {
      json.field("name", kernel.name);
      json.field("ordinal", kernel.ordinal);
      write_metrics(json, kernel.metrics);
      write_bound(json, kernel.bound);
    });
  if (!region.roofline.empty())
    write_roofline(json, region.roofline);
  if (region.bound)
    write_bound(json, region.bound);
  if (region.utilization)
    write_utilization(json, region.utilization);
  if (!region.samples.empty()) {
    json.open_line_array("samples");
    for (const model::OccurrenceSample& sample : region.samples)
      for (const double value : {sample.at_ns, sample.wall_ns, sample.busy_ns})
        json.number(value);
    json.close();
  }
  if (!region.notes.empty())
    json.field("notes", region.notes);
}

/// Kernels with counters, for the scatter under the roofs and the spread of each metric.
void page_kernel_points(JsonWriter& json, const model::Report& report) {
  if (report.kernel_counters.empty())
    return;
  json.line_objects(
      "kernel_points", report.kernel_counters, [&](const model::KernelCounters& kernel) {
        const auto row = std::ranges::find(report.kernels, kernel.name, &model::KernelRow::name);
        if (row != report.kernels.end()) {
          json.field("name", row->label);
          json.field("share", row->share);
        } else {
          json.field("name", kernel.name);
          json.null_field("share");
        }
        if (!kernel.roofline.empty())
          write_roofline(json, kernel.roofline);
        write_metrics(json, kernel.metrics);
      });
}

// Rows that combine several regions: siblings whose names differ only by a number, and chains.
void page_rows(JsonWriter& json, const model::Report& report) {
  if (!has_folded_rows(report))
    return;
  json.line_objects("rows", shown_rows(report), [&](const ShownRow& shown) {
    const model::TableRow& row = *shown.row;
    json.field("parent", indexed(shown.parent));
    json.field("depth", shown.depth);
    json.field("siblings", row.siblings);
    json.field("members", row.members);
    if (!shown.joined.empty()) {
      std::vector<std::uint32_t> joined;
      for (const model::TableRow* outer : shown.joined)
        joined.insert(joined.end(), outer->members.begin(), outer->members.end());
      json.field("label", shown.label);
      json.field("joined", joined);
    }
    if (!row.merged)
      return;
    json.open_object("region");
    page_region_object(json, report, *row.merged);
    json.close();
  });
}

// GPU work that belongs to no region: a region around it gives it the same measures.
void page_work(JsonWriter& json, std::string_view name, const base::Held<model::GpuWork>& gpu) {
  if (!gpu)
    return json.null_field(name);
  Region region;
  region.gpu = gpu;
  page_values(json, name, region);
}

void page_prediction(JsonWriter& json, const model::PredictedTime& time) {
  json.field("before", time.now_ns);
  json.field("after", time.after_ns);
  json.field("low", time.after_low_ns);
  json.field("high", time.after_high_ns);
  json.field("at_most", time.is_bound);
}

/// The time of the range after a cure, with its interval.
void page_outcome(JsonWriter& json, const model::Verdict& verdict) {
  if (!verdict.after || verdict.cure.empty())
    return;
  const model::Outcome& outcome = *verdict.after;
  const double saves_ns = outcome.before_ns - outcome.after_ns;
  // What the run saves, with its interval, is less than the sum over the ranks or threads.
  const double of_run_ns = verdict.saves_ns.value_or(saves_ns);
  const double scale = of_run_ns > 0 ? saves_ns / of_run_ns : 1;
  model::PredictedTime time;
  time.now_ns = outcome.before_ns;
  time.after_ns = outcome.after_ns;
  time.after_low_ns = outcome.before_ns - scale * verdict.saves_high_ns.value_or(of_run_ns);
  time.after_high_ns = outcome.before_ns - scale * verdict.saves_low_ns.value_or(of_run_ns);
  time.is_bound = outcome.is_bound;
  json.open_line_object("predicted");
  page_prediction(json, time);
  json.close();
}

void page_what_if(JsonWriter& json, const base::Held<model::WhatIf>& value) {
  if (!value)
    return;
  json.open_object("what_if");
  json.line_objects("changes", value->changes, [&](const model::SupposedChange& change) {
    json.field("change", change.written);
    json.field("of", change.subject);
  });
  json.open_line_object("run");
  page_prediction(json, value->run);
  json.close();
  json.line_objects("regions", value->regions, [&](const model::PredictedRegion& predicted) {
    json.field("region", predicted.region);
    page_prediction(json, predicted.time);
  });
  json.close();
}

void page_verdicts(JsonWriter& json, const model::Report& report) {
  std::set<std::string_view> commands;
  json.line_objects("verdict", report.verdict, [&](const model::Verdict& verdict) {
    // Each command once, and not the one that writes this page.
    const bool is_omitted = verdict.next_is_page || !commands.insert(verdict.next).second;
    const std::string advice = model::advice_for(verdict);
    json.field("kind", verdict.kind);
    json.field("severity", model::weight_name(verdict.severity));
    json.field("path", verdict.path);
    json.field("region", verdict.region);
    json.field("text", verdict.text);
    json.field("try", advice);
    json.field("saves", saving_text(report, verdict));
    if (verdict.saves_share)
      json.field("saves_share", *verdict.saves_share);
    std::string next;
    if (!is_omitted)
      next = verdict.next;
    json.field("next", next);
    page_outcome(json, verdict);
  });
}

void page_measures(JsonWriter& json) {
  json.open_line_array("measures");
  for (const model::Measure& measure : model::measures()) {
    if (is_separate(measure))
      continue;
    json.open_line_object();
    json.field("tag", measure.tag);
    json.field("title", measure.title);
    json.field("unit", model::unit_name(measure.unit));
    json.field("source", measure.source);
    json.field("formula", measure.formula);
    if (is_sum(measure))
      json.field("sum", true);
    json.close();
  }
  json.close();
}

/// For a program without ranges: its functions, and what its threads wait for.
std::vector<Section> program_tables(const model::Report& report) {
  Style style;
  style.top = kMaxProgramRows;
  std::vector<Section> sections = {own_function_section(report, style),
                                   wait_section(report, style)};
  std::erase_if(sections, [](const Section& section) { return section.blocks.empty(); });
  return sections;
}

}  // namespace

void write_html_data(const model::Report& report, const model::Session* session, JsonWriter& json) {
  json.open_line_object();
  json.field("schema", "rangescope.html/1");
  page_verdicts(json, report);
  page_what_if(json, report.what_if);
  write_run(json, report.run);
  json.field("command", base::shell_quote(report.run.command));
  std::vector<std::string> facts = run_facts(report);
  if (!report.run.host.empty())
    facts.push_back(report.run.host);
  json.field("facts", base::join(facts, ", "));
  page_measures(json);
  write_processes(json, "processes", report.processes);
  json.field("gpus", device_texts(report));
  write_devices(json, report);
  json.line_objects("regions", report.regions, [&](const Region& region) {
    page_region_object(json, report, region);
  });
  page_rows(json, report);
  const Grid counters = kernel_grids(report, report.kernels.size()).kernels;
  json.open_line_array("counter_heads");
  for (std::size_t i = kKernelColumns; i < counters.columns.size(); ++i)
    json.text(counters.columns[i].title);
  json.close();
  page_kernel_rows(json, report, "kernels", report.kernels, &counters);
  page_kernel_points(json, report);
  page_work(json, "total", report.total);
  page_work(json, "unattributed", report.unattributed);
  std::optional<double> outside_ns;
  if (report.outside)
    outside_ns = report.outside->wall_ns;
  json.field("outside_ns", outside_ns);
  write_losses(json, report.losses);
  write_findings(json, report.findings);
  json.field("notes", report.notes);
  write_memory(json, report);
  write_html_tables(program_tables(report), json);
  json.key("timeline");
  if (session != nullptr)
    write_html_timeline(report, *session, json);
  else
    json.null();
  json.key("job");
  if (report.ranks.size() > 1)
    write_html_job(report, json);
  else
    json.null();
  json.key("cpu");
  if (session != nullptr)
    write_html_cpu(report, *session, json);
  else
    json.null();
  json.close();
}

base::Result<void> export_html(const model::Report& report,
                               const model::Session* session,
                               const Style&,
                               Sink& sink) {
  const std::string_view page = html_template();
  const auto place = page.find(kDataPlace);
  if (place == std::string_view::npos)
    return base::fail(base::Code::kInternal,
                      "the embedded page has no place for the data",
                      "src/report/formats/html/template.html",
                      "Build it again: ./dev web");
  sink.write(page.substr(0, place));
  JsonWriter json(sink, true);
  write_html_data(report, session, json);
  json.finish();
  sink.write(page.substr(place + kDataPlace.size()));
  return {};
}

}  // namespace rangescope::report
