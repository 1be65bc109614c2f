#include "report/formats/html/data.hpp"

#include <set>
#include <string_view>

#include "base/text.hpp"
#include "model/advice.hpp"
#include "model/measure.hpp"
#include "report/document/json_parts.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/region_table.hpp"
#include "report/document/verdict_text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::Region;

void texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& list) {
  json.open_line_array(name);
  for (const std::string& text : list) json.text(base::printable(text));
  json.close();
}

// Utilization is an object of its own, with its formula.
bool has_its_own_place(const model::Measure& measure) {
  return measure.tag.starts_with("utilization.");
}

bool is_sum(const model::Measure& measure) {
  return measure.tag.starts_with("gpu.") && model::adds_up(measure);
}

/// Of how many occurrences the sums of GPU work are, where the timeline was paused during others; 0 otherwise.
std::int64_t counted_of(const Region& region) {
  if (!region.gpu || !region.gpu->partial || region.occurrences <= 0) return 0;
  return region.gpu->recorded_occurrences < region.occurrences ? region.gpu->recorded_occurrences : 0;
}

void values(JsonWriter& json, std::string_view name, const Region& region) {
  const std::int64_t counted = counted_of(region);
  json.open_line_array(name);
  for (const model::Measure& measure : model::measures()) {
    if (has_its_own_place(measure)) continue;
    auto value = measure.get(region);
    // As in the terminal: sums of part of the occurrences are those of one; outside ranges part of it says nothing.
    if (value && measure.tag.starts_with("gpu.") && region.gpu && region.gpu->partial) {
      if (region.occurrences <= 0)
        value.reset();
      else if (counted > 0 && is_sum(measure))
        *value /= static_cast<double>(counted);
    }
    value ? json.number(*value) : json.null();
  }
  json.close();
}

constexpr std::size_t kPlain = 6;  // columns of a kernel table before its counters

/// `counted`: the table of the same rows with what counters say of each.
void page_kernel_rows(JsonWriter& json, std::string_view name, const std::vector<model::KernelRow>& rows,
                      const KernelTable* counted = nullptr) {
  json.open_line_array(name);
  for (const model::KernelRow& row : rows) {
    json.open_line_object();
    json.field("name", base::printable(row.name));
    json.field("short", base::printable(row.label.empty() ? row.short_name : row.label));
    json.field("calls", row.calls);
    json.field("total_ns", row.total_ns);
    json.field("median_ns", row.duration_ns.median);
    json.field("min_ns", row.duration_ns.min);
    json.field("max_ns", row.duration_ns.max);
    json.field("share", row.share);
    json.open_line_array("grid");
    for (const std::uint32_t n : row.shape.grid) json.number(std::int64_t{n});
    json.close();
    json.open_line_array("block");
    for (const std::uint32_t n : row.shape.block) json.number(std::int64_t{n});
    json.close();
    json.field("registers", row.shape.registers_per_thread);
    json.field("shared", std::int64_t{row.shape.static_shared_bytes} + row.shape.dynamic_shared_bytes);
    json.field("shapes", row.shapes);
    if (counted != nullptr && counted->heads.size() > kPlain)
      texts(json, "counters",
            {counted->rows[static_cast<std::size_t>(&row - rows.data())].begin() + kPlain,
             counted->rows[static_cast<std::size_t>(&row - rows.data())].end()});
    json.close();
  }
  json.close();
}

void page_metrics(JsonWriter& json, const std::map<std::string, model::Metric>& map) {
  if (map.empty()) return;
  json.open_line_array("metrics");
  for (const auto& [name, metric] : map) {
    json.open_line_object();
    json.field("name", base::printable(name));
    json.field("unit", metric.unit);
    json.field("source", metric.source);
    if (metric.absent.empty()) {
      json.field("value", metric.value);
      json.field("min", metric.min);
      json.field("max", metric.max);
      json.field("rounds", metric.rounds);
    } else {
      json.field("absent", metric.absent);
    }
    json.close();
  }
  json.close();
}

void page_bound(JsonWriter& json, const base::Held<model::Bound>& value) {
  if (!value) return;
  json.key("bound");
  write_bound(json, *value);
}

void page_utilization(JsonWriter& json, const base::Held<model::Utilization>& value) {
  if (!value) return;
  json.open_line_object("utilization");
  value->executed ? json.field("executed", *value->executed) : json.null_field("executed");
  value->useful ? json.field("useful", *value->useful) : json.null_field("useful");
  json.field("formula", value->formula);
  json.close();
}

void page_roofline(JsonWriter& json, const std::vector<model::RooflinePoint>& points) {
  if (points.empty()) return;
  json.open_line_array("roofline");
  for (const model::RooflinePoint& point : points) write_roofline_point(json, point, "roof");
  json.close();
}

void page_region_object(JsonWriter& json, const model::Report& report, const Region& region) {
  json.open_line_object();
  json.field("id", region.id);
  region.parent == model::kNone ? json.null_field("parent") : json.field("parent", region.parent);
  json.field("depth", region.depth);
  texts(json, "path", region.path);
  json.field("domain", base::printable(region.domain));
  json.field("kind", kind_name(region.kind));
  if (region.process) {
    json.field("process", *region.process);
    if (*region.process < report.processes.size()) json.field("pid", report.processes[*region.process].pid);
  }
  if (region.thread) json.field("thread", *region.thread);
  values(json, "v", region);
  if (counted_of(region) > 0) json.field("each", true);
  if (region.gpu) {
    page_kernel_rows(json, "top", region.gpu->top_kernels);
    json.open_line_array("copies");
    for (const model::CopyRow& row : region.gpu->copies_by_kind) write_copy_row(json, row);
    json.close();
  }
  page_metrics(json, region.metrics);
  if (!region.kernels.empty()) {
    json.open_line_array("counted");
    for (const model::KernelMetrics& kernel : region.kernels) {
      json.open_line_object();
      json.field("name", base::printable(kernel.name));
      json.field("ordinal", kernel.ordinal);
      page_metrics(json, kernel.metrics);
      page_bound(json, kernel.bound);
      json.close();
    }
    json.close();
  }
  page_roofline(json, region.roofline);
  page_bound(json, region.bound);
  page_utilization(json, region.utilization);
  if (!region.samples.empty()) {
    json.open_line_array("samples");
    for (const model::OccurrenceSample& sample : region.samples) {
      json.number(sample.at_ns);
      json.number(sample.wall_ns);
      json.number(sample.busy_ns);
    }
    json.close();
  }
  if (!region.notes.empty()) texts(json, "notes", region.notes);
  json.close();
}

// Work that is no region's goes through the same measures.
void work(JsonWriter& json, std::string_view name, const base::Held<model::GpuWork>& gpu) {
  if (!gpu) return json.null_field(name);
  Region holder;
  holder.gpu = gpu;
  values(json, name, holder);
}

void page_verdicts(JsonWriter& json, const model::Report& report) {
  json.open_line_array("verdict");
  std::set<std::string_view> told;
  for (const model::Verdict& verdict : report.verdict) {
    // Each command once, and none that makes the page that is being read.
    const bool again = verdict.next_is_page || !told.insert(verdict.next).second;
    json.open_line_object();
    json.field("kind", verdict.kind);
    json.field("severity", model::weight_name(verdict.severity));
    json.field("path", base::printable(verdict.path));
    verdict.region ? json.field("region", *verdict.region) : json.null_field("region");
    json.field("text",
               base::printable(verdict.text +
                               (model::advice_for(verdict).empty() ? "" : ". Try: " + model::advice_for(verdict))));
    json.field("saves", saving_text(report, verdict));
    json.field("next", again ? std::string() : base::printable(verdict.next));
    json.close();
  }
  json.close();
}

void page_run_object(JsonWriter& json, const model::RunInfo& run) {
  json.open_line_object("run");
  json.field("id", base::printable(run.id));
  json.field("tool", run.tool);
  json.field("command", base::printable(base::shell_quote(run.command)));
  json.field("cwd", base::printable(run.cwd));
  run.start_unix_ns == 0 ? json.null_field("start_ms") : json.field("start_ms", run.start_unix_ns / 1'000'000);
  json.field("duration_ns", run.duration_ns);
  run.exit_code ? json.field("exit_code", std::int64_t{*run.exit_code}) : json.null_field("exit_code");
  run.signal ? json.field("signal", std::int64_t{*run.signal}) : json.null_field("signal");
  json.field("host", base::printable(run.host));
  texts(json, "sources", run.sources);
  json.open_line_array("environment");
  for (const auto& [key, value] : run.environment) {
    json.open_line_array();
    json.text(base::printable(key));
    json.text(base::printable(value));
    json.close();
  }
  json.close();
  json.close();
}

void page_dictionary(JsonWriter& json) {
  json.open_line_array("measures");
  for (const model::Measure& measure : model::measures()) {
    if (has_its_own_place(measure)) continue;
    json.open_line_object();
    json.field("tag", measure.tag);
    json.field("title", measure.title);
    json.field("unit", model::unit_name(measure.unit));
    json.field("source", measure.source);
    json.field("formula", measure.formula);
    if (is_sum(measure)) json.field("sum", true);
    json.close();
  }
  json.close();
}

void page_processes(JsonWriter& json, const model::Report& report) {
  json.open_line_array("processes");
  for (const model::ReportProcess& process : report.processes) {
    json.open_line_object();
    json.field("pid", process.pid);
    json.field("name", base::printable(process.name));
    json.field("start_ns", process.start_ns);
    json.field("end_ns", process.end_ns);
    json.field("ranges", process.ranges);
    json.field("kernels", process.kernels);
    if (process.rank) json.field("rank", *process.rank);
    json.close();
  }
  json.close();
  texts(json, "gpus", device_texts(report));
  json.open_line_array("devices");
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const model::Device& device = report.devices[i];
    json.open_line_object();
    json.field("name", i < report.device_names.size() ? base::printable(report.device_names[i]) : std::string());
    json.field("ordinal", device.ordinal);
    json.field("sm_count", device.sm_count);
    json.field("memory_bytes", static_cast<std::int64_t>(device.memory_bytes));
    json.close();
  }
  json.close();
}

void page_losses(JsonWriter& json, const model::Report& report) {
  json.open_line_array("losses");
  for (const model::Loss& loss : report.losses) {
    json.open_line_object();
    json.field("kind", loss.kind.id());
    json.field("severity", model::severity_name(loss.severity));
    json.field("count", static_cast<std::int64_t>(loss.count));
    json.field("detail", base::printable(loss.detail));
    json.close();
  }
  json.close();
  json.open_line_array("findings");
  for (const model::Finding& finding : report.findings) {
    json.open_line_object();
    json.field("id", finding.id);
    json.field("verdict", model::verdict_name(finding.verdict));
    json.field("question", base::printable(finding.question));
    json.field("found", base::printable(finding.found));
    json.field("hint", base::printable(finding.hint));
    texts(json, "commands", finding.commands);
    json.close();
  }
  json.close();
}

}  // namespace

void write_html_data(const model::Report& report, const model::Session* session, JsonWriter& json) {
  json.open_line_object();
  json.field("schema", "rangescope.html/1");
  page_verdicts(json, report);
  page_run_object(json, report.run);
  page_dictionary(json);
  page_processes(json, report);
  json.open_line_array("regions");
  for (const Region& region : report.regions) page_region_object(json, report, region);
  json.close();
  Style every;
  every.top_kernels = report.kernels.size();
  const KernelTable counted = kernel_table(report, every);
  texts(json, "counter_heads", {counted.heads.begin() + kPlain, counted.heads.end()});
  page_kernel_rows(json, "kernels", report.kernels, &counted);
  work(json, "total", report.total);
  work(json, "unattributed", report.unattributed);
  report.outside ? json.field("outside_ns", report.outside->wall_ns) : json.null_field("outside_ns");
  page_losses(json, report);
  texts(json, "notes", report.notes);
  json.key("timeline");
  session != nullptr ? write_html_timeline(report, *session, json) : json.null();
  json.key("job");
  report.ranks.size() > 1 ? write_html_job(report, json) : json.null();
  json.key("cpu");
  session != nullptr ? write_html_cpu(report, *session, json) : json.null();
  json.close();
}

}  // namespace rangescope::report
