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

constexpr std::size_t kMostProgramRows = 30;

// Utilization is an object of its own, with its formula.
bool has_its_own_place(const model::Measure& measure) {
  return measure.tag.starts_with("utilization.");
}

bool is_sum(const model::Measure& measure) {
  return measure.tag.starts_with("gpu.") && model::adds_up(measure);
}

/// Of how many occurrences the sums of GPU work are, where the timeline was paused during others; 0
/// otherwise.
std::int64_t counted_of(const Region& region) {
  if (!region.gpu || !region.gpu->partial || region.occurrences <= 0) return 0;
  return region.gpu->recorded_occurrences < region.occurrences ? region.gpu->recorded_occurrences
                                                               : 0;
}

void values(JsonWriter& json, std::string_view name, const Region& region) {
  const std::int64_t counted = counted_of(region);
  json.open_line_array(name);
  for (const model::Measure& measure : model::measures()) {
    if (has_its_own_place(measure)) continue;
    auto value = measure.get(region);
    // As in the terminal: sums of part of the occurrences are those of one; outside ranges part of
    // it is meaningless.
    if (value && measure.tag.starts_with("gpu.") && region.gpu && region.gpu->partial) {
      if (region.occurrences <= 0)
        value.reset();
      else if (counted > 0 && is_sum(measure))
        *value /= static_cast<double>(counted);
    }
    json.value(value);
  }
  json.close();
}

/// Texts of a kernel's counters: the columns of its table behind those of every kernel.
std::vector<std::string> counters_of(const std::vector<GridCell>& row) {
  std::vector<std::string> texts;
  for (std::size_t i = kKernelColumns; i < row.size(); ++i) texts.push_back(row[i].text);
  return texts;
}

/// `counted`: the table of the same rows with what counters say of each.
void page_kernel_rows(JsonWriter& json, const model::Report& report, std::string_view name,
                      const std::vector<model::KernelRow>& rows, const Grid* counted = nullptr) {
  json.line_objects(name, rows, [&](const model::KernelRow& row) {
    json.fields("name", row.name, "short", row.label.empty() ? row.short_name : row.label, "calls",
                row.calls, "total_ns", row.total_ns, "median_ns", row.duration_ns.median, "max_ns",
                row.duration_ns.max, "share", row.share, "grid", row.shape.grid, "block",
                row.shape.block, "registers", row.shape.registers_per_thread, "shared",
                std::int64_t{row.shape.static_shared_bytes} + row.shape.dynamic_shared_bytes,
                "shapes", row.shapes);
    if (counted != nullptr && counted->columns.size() > kKernelColumns)
      json.field("counters",
                 counters_of(counted->rows[static_cast<std::size_t>(&row - rows.data())]));
    if (!row.stalls) return;
    json.open_line_object("stalls");
    json.fields("samples", row.stalls->samples, "saves_ns", row.stalls->saves_ns);
    std::vector<model::StallShare> reasons = row.stalls->reasons;
    std::erase_if(reasons,
                  [](const model::StallShare& each) { return !model::is_stall(each.reason); });
    json.line_objects("reasons", reasons, [&](const model::StallShare& each) {
      json.fields("reason", each.reason, "share", each.share);
    });
    json.line_objects("lines", row.stalls->lines, [&](const model::StallLine& line) {
      json.fields("at", model::place_text(line), "share", line.share, "reason", line.reason,
                  "reason_share", line.reason_share);
      if (const std::string text = source_text(line, report.run.start_unix_ns); !text.empty())
        json.field("text", text);
    });
    json.close();
  });
}

void page_region_object(JsonWriter& json, const model::Report& report, const Region& region) {
  json.fields("id", region.id, "parent", indexed(region.parent), "depth", region.depth, "path",
              region.path, "domain", region.domain, "kind", kind_name(region.kind));
  if (region.module) json.field("module", true);
  if (region.process) json.field("process", region.process);
  if (const auto pid = pid_of(report, region.process)) json.field("pid", pid);
  if (region.thread) json.field("thread", region.thread);
  values(json, "v", region);
  if (counted_of(region) > 0) json.field("each", true);
  if (region.gpu) {
    page_kernel_rows(json, report, "top", region.gpu->top_kernels);
    write_copies(json, "copies", region.gpu->copies_by_kind);
  }
  if (!region.metrics.empty()) write_metrics(json, region.metrics);
  if (!region.kernels.empty())
    json.line_objects("counted", region.kernels, [&](const model::KernelMetrics& kernel) {
      json.fields("name", kernel.name, "ordinal", kernel.ordinal);
      write_metrics(json, kernel.metrics);
      write_bound(json, kernel.bound);
    });
  if (!region.roofline.empty()) write_roofline(json, region.roofline);
  if (region.bound) write_bound(json, region.bound);
  if (region.utilization) write_utilization(json, region.utilization);
  if (!region.samples.empty()) {
    json.open_line_array("samples");
    for (const model::OccurrenceSample& sample : region.samples)
      for (const double value : {sample.at_ns, sample.wall_ns, sample.busy_ns}) json.number(value);
    json.close();
  }
  if (!region.notes.empty()) json.field("notes", region.notes);
}

/// Kernels with counters, for the scatter under the roofs and the spread of each metric.
void page_kernel_points(JsonWriter& json, const model::Report& report) {
  if (report.kernel_counters.empty()) return;
  json.line_objects(
      "kernel_points", report.kernel_counters, [&](const model::KernelCounters& kernel) {
        const auto row = std::ranges::find(report.kernels, kernel.name, &model::KernelRow::name);
        const bool has_row = row != report.kernels.end();
        json.field("name", has_row ? row->label : kernel.name);
        json.field("share", has_row ? std::optional(row->share) : std::nullopt);
        if (!kernel.roofline.empty()) write_roofline(json, kernel.roofline);
        write_metrics(json, kernel.metrics);
      });
}

// Where rows combine several regions: siblings whose names differ by a number only, and chains.
void page_rows(JsonWriter& json, const model::Report& report) {
  if (!has_folded_rows(report)) return;
  json.line_objects("rows", shown_rows(report), [&](const ShownRow& shown) {
    const model::TableRow& row = *shown.row;
    json.fields("parent", indexed(shown.parent), "depth", shown.depth, "siblings", row.siblings,
                "members", row.members);
    if (!shown.joined.empty()) {
      std::vector<std::uint32_t> joined;
      for (const model::TableRow* outer : shown.joined)
        joined.insert(joined.end(), outer->members.begin(), outer->members.end());
      json.fields("label", shown.label, "joined", joined);
    }
    if (!row.merged) return;
    json.open_object("region");
    page_region_object(json, report, *row.merged);
    json.close();
  });
}

// Work that is no region's goes through the same measures.
void work(JsonWriter& json, std::string_view name, const base::Held<model::GpuWork>& gpu) {
  if (!gpu) return json.null_field(name);
  Region holder;
  holder.gpu = gpu;
  values(json, name, holder);
}

void page_prediction(JsonWriter& json, const model::PredictedTime& time) {
  json.fields("before", time.now_ns, "after", time.after_ns, "low", time.after_low_ns);
  json.fields("high", time.after_high_ns, "at_most", time.is_bound);
}

/// Of a cure the time of its range, with the interval that its saving leaves.
void page_outcome(JsonWriter& json, const model::Verdict& verdict) {
  if (!verdict.after || verdict.cure.empty()) return;
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
  if (!value) return;
  json.open_object("what_if");
  json.line_objects("changes", value->changes, [&](const model::SupposedChange& change) {
    json.fields("change", change.written, "of", change.subject);
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
  std::set<std::string_view> told;
  json.line_objects("verdict", report.verdict, [&](const model::Verdict& verdict) {
    // Each command once, and none that makes the page that is being read.
    const bool again = verdict.next_is_page || !told.insert(verdict.next).second;
    const std::string advice = model::advice_for(verdict);
    json.fields("kind", verdict.kind, "severity", model::weight_name(verdict.severity));
    json.fields("path", verdict.path, "region", verdict.region, "text", verdict.text);
    json.fields("try", advice, "saves", saving_text(report, verdict));
    if (verdict.saves_share) json.field("saves_share", *verdict.saves_share);
    json.field("next", again ? std::string() : verdict.next);
    page_outcome(json, verdict);
  });
}

void page_measures(JsonWriter& json) {
  json.open_line_array("measures");
  for (const model::Measure& measure : model::measures()) {
    if (has_its_own_place(measure)) continue;
    json.open_line_object();
    json.fields("tag", measure.tag, "title", measure.title, "unit", model::unit_name(measure.unit),
                "source", measure.source, "formula", measure.formula);
    if (is_sum(measure)) json.field("sum", true);
    json.close();
  }
  json.close();
}

/// Of a program without ranges: its functions, and what its threads wait for.
std::vector<Section> program_tables(const model::Report& report) {
  Style style;
  style.top = kMostProgramRows;
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
  if (!report.run.host.empty()) facts.push_back(report.run.host);
  json.field("facts", base::join(facts, ", "));
  page_measures(json);
  write_processes(json, report.processes);
  json.field("gpus", device_texts(report));
  write_devices(json, report);
  json.line_objects("regions", report.regions,
                    [&](const Region& region) { page_region_object(json, report, region); });
  page_rows(json, report);
  const Grid counted = kernel_grids(report, report.kernels.size()).kernels;
  json.open_line_array("counter_heads");
  for (std::size_t i = kKernelColumns; i < counted.columns.size(); ++i)
    json.text(counted.columns[i].title);
  json.close();
  page_kernel_rows(json, report, "kernels", report.kernels, &counted);
  page_kernel_points(json, report);
  work(json, "total", report.total);
  work(json, "unattributed", report.unattributed);
  json.field("outside_ns", report.outside ? std::optional(report.outside->wall_ns) : std::nullopt);
  write_losses(json, report.losses);
  write_findings(json, report.findings);
  json.field("notes", report.notes);
  write_memory(json, report);
  write_html_tables(program_tables(report), json);
  json.key("timeline");
  session != nullptr ? write_html_timeline(report, *session, json) : json.null();
  json.key("job");
  report.ranks.size() > 1 ? write_html_job(report, json) : json.null();
  json.key("cpu");
  session != nullptr ? write_html_cpu(report, *session, json) : json.null();
  json.close();
}

base::Result<void> export_html(const model::Report& report, const model::Session* session,
                               const Style&, Sink& sink) {
  const std::string_view page = html_template();
  const auto place = page.find(kDataPlace);
  if (place == std::string_view::npos)
    return base::fail(base::Code::kInternal, "the embedded page has no place for the data",
                      "src/report/formats/html/template.html", "Build it again: ./dev web");
  sink.write(page.substr(0, place));
  JsonWriter json(sink, true);
  write_html_data(report, session, json);
  json.finish();
  sink.write(page.substr(place + kDataPlace.size()));
  return {};
}

}  // namespace rangescope::report
