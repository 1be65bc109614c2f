#include "report/formats/json/json.hpp"

#include <span>
#include <string_view>

#include "model/advice.hpp"
#include "model/measure.hpp"
#include "report/document/findings.hpp"
#include "report/document/json_parts.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/view.hpp"
#include "report/formats/json/cpu.hpp"
#include "report/formats/json/job.hpp"

namespace rangescope::report {
namespace {

using model::GpuWork;
using model::Region;

constexpr std::string_view kSchema = "rangescope.report/1";

void pairs(JsonWriter& json, std::string_view name, const std::map<std::string, std::string>& map) {
  json.open_object(name);
  for (const auto& [key, value] : map) json.field(key, value);
  json.close();
}

void spread(JsonWriter& json, std::string_view name, const model::Spread& value) {
  json.open_line_object(name);
  json.field("min", value.min);
  json.field("median", value.median);
  json.field("p95", value.p95);
  json.field("max", value.max);
  json.field("mean", value.mean);
  json.field("stddev", value.stddev);
  json.close();
}

// Every measure whose tag begins with `prefix`, a dot in the rest opening an object: the tags of model/measure.hpp are
// the paths of this file.
void measures(JsonWriter& json, const Region& region, std::string_view prefix) {
  std::string_view group;
  for (const model::Measure& measure : model::measures()) {
    if (!measure.tag.starts_with(prefix)) continue;
    std::string_view name = measure.tag.substr(prefix.size());
    const auto dot = name.find('.');
    const std::string_view wanted = dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
    const auto value = measure.get(region);
    if (wanted != group) {
      if (!group.empty()) json.close();
      group = wanted;
      if (!group.empty()) {
        json.open_line_object(group);
      }
    }
    if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
    value ? json.field(name, *value) : json.null_field(name);
  }
  if (!group.empty()) json.close();
}

void dimensions(JsonWriter& json, std::string_view name, const std::array<std::uint32_t, 3>& value) {
  json.open_line_array(name);
  for (const std::uint32_t n : value) json.number(std::int64_t{n});
  json.close();
}

void metrics(JsonWriter& json, const std::map<std::string, model::Metric>& map) {
  json.open_object("metrics");
  for (const auto& [name, metric] : map) {
    json.open_line_object(name);
    const bool there = metric.absent.empty();
    there ? json.field("value", metric.value) : json.null_field("value");
    json.field("unit", metric.unit);
    there ? json.field("min", metric.min) : json.null_field("min");
    there ? json.field("max", metric.max) : json.null_field("max");
    json.field("rounds", metric.rounds);
    json.field("source", metric.source);
    if (!there) json.field("absent", metric.absent);
    json.close();
  }
  json.close();
}

void kernel_rows(JsonWriter& json, std::string_view name, const std::vector<model::KernelRow>& rows) {
  json.line_objects(name, rows, [&](const model::KernelRow& row) {
    json.field("name", row.name);
    json.field("short_name", row.short_name);
    json.field("label", row.label);
    json.field("calls", row.calls);
    json.field("total_ns", row.total_ns);
    spread(json, "duration_ns", row.duration_ns);
    json.field("share", row.share);
    dimensions(json, "grid", row.shape.grid);
    dimensions(json, "block", row.shape.block);
    dimensions(json, "cluster", row.shape.cluster);
    json.field("registers_per_thread", row.shape.registers_per_thread);
    json.field("static_shared_bytes", row.shape.static_shared_bytes);
    json.field("dynamic_shared_bytes", row.shape.dynamic_shared_bytes);
    json.field("shapes", row.shapes);
    json.field("nccl", row.nccl);
    if (!row.metrics.empty()) metrics(json, row.metrics);
  });
}

void gpu(JsonWriter& json, std::string_view name, const base::Held<GpuWork>& work, const Region& region) {
  if (!work) return json.null_field(name);
  json.open_object(name);
  json.field("partial", work->partial);
  json.field("recorded_occurrences", work->recorded_occurrences);
  measures(json, region, "gpu.");
  spread(json, "kernel_ns_per_occurrence", work->kernel_ns_per_occurrence);
  spread(json, "busy_ns_per_occurrence", work->busy_ns_per_occurrence);
  json.open_array("copies_by_kind");
  for (const model::CopyRow& row : work->copies_by_kind) write_copy_row(json, row);
  json.close();
  kernel_rows(json, "top_kernels", work->top_kernels);
  json.close();
}

// Work that is no region's: it goes through the same measures.
void gpu(JsonWriter& json, std::string_view name, const base::Held<GpuWork>& work) {
  Region holder;
  holder.gpu = work;
  gpu(json, name, work, holder);
}

// Nothing where nothing was sampled.
void sampled(JsonWriter& json, const std::vector<model::SampledDevice>& list) {
  if (list.empty()) return;
  json.objects("sampled", list, [&](const model::SampledDevice& device) {
    json.field("source", device.source);
    json.field("uuid", device.uuid);
    json.field("name", device.name);
    json.field("interval_ns", device.interval_ns);
    json.field("samples", device.samples);
    json.field("sampled_ns", device.sampled_ns);
    json.field("gaps_ns", device.gaps_ns);
    json.field("busy_ns", device.busy_ns);
    json.field("other_ns", device.other_ns);
    json.field("clock", device.clock);
    json.line_objects("sums", device.sums, [&](const model::SampledSum& sum) {
      json.field("metric", sum.metric);
      json.field("unit", sum.share ? std::string("ns at full load") : sum.unit);
      json.field("total", sum.total);
      json.field("in_ranges", sum.in_ranges);
      json.field("outside", sum.outside);
      json.field("idle", sum.idle);
    });
  });
}

void bound(JsonWriter& json, const base::Held<model::Bound>& value) {
  if (!value) return json.null_field("bound");
  json.key("bound");
  write_bound(json, *value);
}

void utilization(JsonWriter& json, const base::Held<model::Utilization>& value) {
  if (!value) return json.null_field("utilization");
  const auto number = [&json](std::string_view name, const std::optional<double>& of) {
    of ? json.field(name, *of) : json.null_field(name);
  };
  json.open_line_object("utilization");
  json.field("busy_ns", value->busy_ns);
  number("executed", value->executed);
  number("useful", value->useful);
  number("useful_flop", value->useful_flop);
  if (value->useful_bytes) json.field("useful_bytes", *value->useful_bytes);
  if (value->bandwidth) json.field("bandwidth", *value->bandwidth);
  if (value->useful_tokens) json.field("useful_tokens", *value->useful_tokens);
  json.field("useful_wall_ns", value->useful_wall_ns);
  json.field("formula", value->formula);
  json.close();
}

void roofline(JsonWriter& json, const std::vector<model::RooflinePoint>& points) {
  json.open_array("roofline");
  for (const model::RooflinePoint& point : points) write_roofline_point(json, point, "roof_flop_per_s");
  json.close();
}

void counted_kernels(JsonWriter& json, std::string_view name, const std::vector<model::KernelMetrics>& kernels) {
  json.objects(name, kernels, [&](const model::KernelMetrics& kernel) {
    json.field("name", kernel.name);
    json.field("ordinal", kernel.ordinal);
    metrics(json, kernel.metrics);
    bound(json, kernel.bound);
  });
}

void operators(JsonWriter& json, std::string_view name, const std::vector<model::OperatorRow>& rows, bool shapes) {
  json.line_objects(name, rows, [&](const model::OperatorRow& row) {
    json.field("name", row.name);
    if (shapes) json.field("shapes", row.shapes);
    json.field("calls", row.calls);
    json.field("cpu_ns", row.cpu_ns);
    json.field("exclusive_cpu_ns", row.exclusive_cpu_ns);
    json.field("gpu_ns", row.gpu_ns);
    json.field("exclusive_gpu_ns", row.exclusive_gpu_ns);
  });
}

void samples(JsonWriter& json, const std::vector<model::OccurrenceSample>& list) {
  json.open_line_array("samples");
  for (const model::OccurrenceSample& sample : list) {
    json.open_line_array();
    json.number(sample.at_ns);
    json.number(sample.wall_ns);
    json.number(sample.busy_ns);
    json.close();
  }
  json.close();
}

void steady(JsonWriter& json, const Region& region) {
  if (!region.steady) return json.null_field("steady");
  json.open_object("steady");
  json.field("occurrences", region.steady->occurrences);
  json.field("left_out", region.steady->left_out);
  json.field("left_out_ns", region.steady->left_out_ns);
  spread(json, "wall_ns", region.steady->wall_ns);
  region.steady->busy_share ? json.field("gpu_busy_share", *region.steady->busy_share)
                            : json.null_field("gpu_busy_share");
  json.close();
}

void across(JsonWriter& json, const model::Report& report, const Region& region) {
  if (!region.across) return json.null_field("across");
  const model::Across& value = *region.across;
  json.open_line_object("across");
  json.field("of", value.of_threads ? "threads" : "processes");
  json.field("parts", value.parts);
  json.field("min_ns", value.min_ns);
  json.field("mean_ns", value.mean_ns);
  json.field("max_ns", value.max_ns);
  json.field("imbalance", value.imbalance);
  const bool process = !value.of_threads && value.slowest < report.processes.size();
  json.field("slowest", process ? report.processes[value.slowest].pid : value.slowest);
  json.close();
}

void over_ranks(JsonWriter& json, const Region& region) {
  if (!region.ranks) return;
  json.open_line_object("ranks");
  json.field("count", region.ranks->count);
  json.field("mean_ns", region.ranks->mean_ns);
  json.field("min_ns", region.ranks->min_ns);
  json.field("max_ns", region.ranks->max_ns);
  json.field("stddev_ns", region.ranks->stddev_ns);
  json.field("imbalance", region.ranks->imbalance);
  json.field("slowest", region.ranks->slowest);
  json.field("slowest_in", region.ranks->slowest_in);
  json.field("compared", region.ranks->compared);
  json.close();
}

void communication(JsonWriter& json, const Region& region) {
  if (!region.communication) return;
  const model::Communication& of = *region.communication;
  json.open_line_object("communication");
  json.field("calls", of.calls);
  json.field("time_ns", of.time_ns);
  json.field("transfer_ns", of.transfer_ns);
  json.field("wait_ns", of.wait_ns);
  json.field("overlap_ns", of.overlap_ns);
  json.open_line_array("held_up_by");
  for (const auto& cause : of.held_up_by) {
    json.open_line_object();
    json.field("rank", cause.rank);
    json.field("calls", cause.calls);
    json.field("ns", cause.ns);
    json.close();
  }
  json.close();
  json.close();
}

void region_object(JsonWriter& json, const model::Report& report, const Region& region) {
  json.open_object();
  (void)json.take_escaped();
  json.field("id", region.id);
  region.parent == model::kNone ? json.null_field("parent") : json.field("parent", region.parent);
  json.field("depth", region.depth);
  json.texts("path", region.path);
  json.field("domain", region.domain);
  json.field("name_escaped", json.take_escaped());
  json.field("kind", kind_name(region.kind));
  const bool known = region.process && *region.process < report.processes.size();
  known ? json.field("process", report.processes[*region.process].pid) : json.null_field("process");
  region.process ? json.field("process_index", *region.process) : json.null_field("process_index");
  region.thread ? json.field("thread", *region.thread) : json.null_field("thread");
  for (const model::Measure& measure : model::measures()) {
    if (measure.tag.find('.') != std::string_view::npos) continue;
    const auto value = measure.get(region);
    value ? json.field(measure.tag, *value) : json.null_field(measure.tag);
  }
  json.open_line_object("wall_ns");
  measures(json, region, "wall_ns.");
  json.close();
  if (region.wall.unlisted > 0) {
    json.open_line_object("unlisted");
    json.field("occurrences", region.wall.unlisted);
    json.field("quantile_error", region.wall.quantile_error);
    json.close();
  }
  steady(json, region);
  across(json, report, region);
  over_ranks(json, region);
  communication(json, region);
  gpu(json, "gpu", region.gpu, region);
  write_json_cpu(json, "cpu", region.cpu);
  metrics(json, region.metrics);
  counted_kernels(json, "kernels", region.kernels);
  roofline(json, region.roofline);
  bound(json, region.bound);
  utilization(json, region.utilization);
  samples(json, region.samples);
  json.texts("notes", region.notes);
  json.close();
}

void run_object(JsonWriter& json, const model::RunInfo& run) {
  json.open_object("run");
  json.field("id", run.id);
  optional_text(json, "tool", run.tool);
  json.texts("command", run.command);
  optional_text(json, "cwd", run.cwd);
  run.start_unix_ns == 0 ? json.null_field("start_unix_ns") : json.field("start_unix_ns", run.start_unix_ns);
  json.field("duration_ns", run.duration_ns);
  run.exit_code ? json.field("exit_code", std::int64_t{*run.exit_code}) : json.null_field("exit_code");
  run.signal ? json.field("signal", std::int64_t{*run.signal}) : json.null_field("signal");
  optional_text(json, "host", run.host);
  json.texts("sources", run.sources);
  pairs(json, "environment", run.environment);
  json.close();
}

void processes(JsonWriter& json, const std::vector<model::ReportProcess>& list) {
  json.line_objects("processes", list, [&](const model::ReportProcess& process) {
    json.field("pid", process.pid);
    json.field("parent_pid", process.parent_pid);
    json.field("name", process.name);
    json.field("start_ns", process.start_ns);
    json.field("end_ns", process.end_ns);
    json.field("ranges", process.ranges);
    json.field("kernels", process.kernels);
    process.rank ? json.field("rank", *process.rank) : json.null_field("rank");
    if (process.range_pair_ns > 0) {
      json.open_line_object("profiler");
      json.field("range_own_ns", process.range_own_ns);
      json.field("range_pair_ns", process.range_pair_ns);
      json.field("source", "measured in the process as it began: the least that an empty range took");
      json.close();
    }
  });
}

void devices(JsonWriter& json, const model::Report& report) {
  json.open_array("devices");
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const model::Device& device = report.devices[i];
    json.open_line_object();
    json.field("name", i < report.device_names.size() ? report.device_names[i] : std::string());
    if (i < report.device_uuids.size() && !report.device_uuids[i].empty()) json.field("uuid", report.device_uuids[i]);
    json.field("ordinal", device.ordinal);
    device.process < report.processes.size() ? json.field("process", report.processes[device.process].pid)
                                             : json.null_field("process");
    json.field("compute_major", device.compute_major);
    json.field("compute_minor", device.compute_minor);
    json.field("sm_count", device.sm_count);
    json.field("memory_bytes", static_cast<std::int64_t>(device.memory_bytes));
    json.field("l2_bytes", static_cast<std::int64_t>(device.l2_bytes));
    json.field("sm_clock_hz", device.sm_clock_hz);
    json.field("memory_bytes_per_s", device.memory_bytes_per_s);
    json.field("mig", device.mig);
    json.close();
  }
  json.close();
}

void losses(JsonWriter& json, const std::vector<model::Loss>& list) {
  json.line_objects("losses", list, [&](const model::Loss& loss) {
    json.field("kind", loss.kind.id());
    json.field("severity", model::severity_name(loss.severity));
    json.field("count", static_cast<std::int64_t>(loss.count));
    json.field("detail", loss.detail);
  });
}

// Tag, unit, source and formula of every number, so that the file explains itself.
void dictionary(JsonWriter& json) {
  json.open_object("measures");
  for (const model::Measure& measure : model::measures()) {
    json.open_line_object(measure.tag);
    json.field("unit", model::unit_name(measure.unit));
    json.field("source", measure.source);
    json.field("formula", measure.formula);
    json.close();
  }
  json.close();
}

void verdicts(JsonWriter& json, const model::Report& report, std::span<const model::Verdict> list) {
  json.line_objects("verdict", list, [&](const model::Verdict& verdict) {
    json.field("kind", verdict.kind);
    json.field("severity", model::weight_name(verdict.severity));
    json.field("path", verdict.path);
    verdict.region ? json.field("region", *verdict.region) : json.null_field("region");
    const bool known = verdict.process && *verdict.process < report.processes.size();
    known ? json.field("process", report.processes[*verdict.process].pid) : json.null_field("process");
    json.field("text", verdict.text);
    optional_text(json, "advice", model::advice_for(verdict));
    verdict.saves_ns ? json.field("saves_ns", *verdict.saves_ns) : json.null_field("saves_ns");
    verdict.saves_share ? json.field("saves_share", *verdict.saves_share) : json.null_field("saves_share");
    json.open_line_object("evidence");
    for (const auto& [name, value] : verdict.evidence) json.field(name, value);
    json.close();
    optional_text(json, "next", verdict.next);
  });
}

void outside(JsonWriter& json, const std::optional<model::Outside>& value) {
  if (!value) return json.null_field("outside");
  json.open_line_object("outside");
  json.field("wall_ns", value->wall_ns);
  json.field("before_ns", value->before_ns);
  json.field("between_ns", value->between_ns);
  json.field("after_ns", value->after_ns);
  json.field("profiler_ns", value->profiler_ns);
  if (value->late_ns > 0) json.field("late_ns", value->late_ns);
  json.close();
}

void kernel_counters(JsonWriter& json, const std::vector<model::KernelCounters>& list) {
  json.objects("kernel_counters", list, [&](const model::KernelCounters& kernel) {
    json.field("name", kernel.name);
    metrics(json, kernel.metrics);
    bound(json, kernel.bound);
    roofline(json, kernel.roofline);
  });
}

void families(JsonWriter& json, const std::vector<model::KernelFamily>& list) {
  json.line_objects("families", list, [&](const model::KernelFamily& family) {
    json.field("name", family.name);
    json.field("kernels", family.kernels);
    json.field("calls", family.calls);
    json.field("total_ns", family.total_ns);
    json.field("share", family.share);
  });
}

class Json final : public Exporter {
 public:
  [[nodiscard]] std::string_view name() const override { return "json"; }
  [[nodiscard]] std::string_view extension() const override { return "json"; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session*, const Style&,
                                         Sink& sink) const override {
    JsonWriter json(sink);
    json.open_object();
    json.field("schema", kSchema);
    verdicts(json, report, report.verdict);
    run_object(json, report.run);
    processes(json, report.processes);
    write_json_job(report, json);
    devices(json, report);
    json.open_array("regions");
    for (const Region& region : report.regions) region_object(json, report, region);
    json.close();
    outside(json, report.outside);
    gpu(json, "total", report.total);
    gpu(json, "unattributed", report.unattributed);
    write_json_cpu(json, "cpu_outside", report.cpu_outside);
    kernel_rows(json, "kernels", report.kernels);
    if (!report.families.empty()) families(json, report.families);
    counted_kernels(json, "unattributed_results", report.unattributed_results);
    kernel_counters(json, report.kernel_counters);
    if (!report.operators.empty()) operators(json, "operators", report.operators, false);
    if (!report.operators_by_shape.empty()) operators(json, "operators_by_shape", report.operators_by_shape, true);
    sampled(json, report.sampled);
    losses(json, report.losses);
    write_findings(json, report.findings);
    json.texts("notes", report.notes);
    dictionary(json);
    json.close();
    json.finish();
    return {};
  }
};

// One JSON object a line, for streams and log stores: {"type": "run" | "verdict" | "process" | "region" | "total" |
// "kernel" | "result" | "operator" | "loss" | "finding", ...}. What is in them is what the JSON report has at that
// place.
class JsonLines final : public Exporter {
 public:
  [[nodiscard]] std::string_view name() const override { return "jsonl"; }
  [[nodiscard]] std::string_view extension() const override { return "jsonl"; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session*, const Style&,
                                         Sink& sink) const override {
    JsonWriter json(sink);
    const auto line = [&json](const char* type, const auto& fill) {
      json.open_line_object();
      json.field("type", type);
      fill();
      json.close();
      json.finish();
    };
    line("run", [&] {
      json.field("schema", kSchema);
      run_object(json, report.run);
      devices(json, report);
    });
    for (const model::Verdict& verdict : report.verdict)
      line("verdict", [&] { verdicts(json, report, {&verdict, 1}); });
    for (const model::ReportProcess& process : report.processes) line("process", [&] { processes(json, {process}); });
    for (const Region& region : report.regions) {
      line("region", [&] {
        json.key("region");
        region_object(json, report, region);
      });
    }
    line("total", [&] {
      gpu(json, "total", report.total);
      gpu(json, "unattributed", report.unattributed);
    });
    for (const model::KernelRow& row : report.kernels) line("kernel", [&] { kernel_rows(json, "kernels", {row}); });
    for (const model::KernelMetrics& result : report.unattributed_results)
      line("result", [&] { counted_kernels(json, "unattributed_results", {result}); });
    for (const model::OperatorRow& row : report.operators)
      line("operator", [&] { operators(json, "operators", {row}, false); });
    for (const model::Loss& loss : report.losses) line("loss", [&] { losses(json, {loss}); });
    for (const model::Finding& finding : report.findings) line("finding", [&] { write_findings(json, {&finding, 1}); });
    return {};
  }
};

}  // namespace

std::unique_ptr<Exporter> make_jsonl() {
  return std::make_unique<JsonLines>();
}

std::unique_ptr<Exporter> make_json() {
  return std::make_unique<Json>();
}

}  // namespace rangescope::report
