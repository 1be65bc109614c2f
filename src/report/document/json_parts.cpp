#include "report/document/json_parts.hpp"

#include "report/document/view.hpp"

namespace rangescope::report {

void write_run(JsonWriter& json, const model::RunInfo& run) {
  json.open_object("run");
  json.fields("id", run.id, "tool", or_null(run.tool), "command", run.command, "cwd", or_null(run.cwd), "start_unix_ns",
              or_null(run.start_unix_ns), "duration_ns", run.duration_ns, "exit_code", run.exit_code, "signal",
              run.signal, "host", or_null(run.host), "sources", run.sources);
  json.open_object("environment");
  for (const auto& [key, value] : run.environment) json.field(key, value);
  json.close();
  json.close();
}

void write_processes(JsonWriter& json, const std::vector<model::ReportProcess>& list) {
  json.line_objects("processes", list, [&](const model::ReportProcess& process) {
    json.fields("pid", process.pid, "parent_pid", process.parent_pid, "name", process.name, "start_ns",
                process.start_ns, "end_ns", process.end_ns, "ranges", process.ranges, "kernels", process.kernels,
                "rank", process.rank);
    if (process.range_pair_ns > 0)
      json.line_object("profiler", "range_own_ns", process.range_own_ns, "range_pair_ns", process.range_pair_ns,
                       "source", "measured in the process as it began: the least that an empty range took");
  });
}

void write_devices(JsonWriter& json, const model::Report& report) {
  json.open_array("devices");
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const model::Device& device = report.devices[i];
    json.open_line_object();
    json.field("name", i < report.device_names.size() ? report.device_names[i] : std::string());
    if (i < report.device_uuids.size() && !report.device_uuids[i].empty()) json.field("uuid", report.device_uuids[i]);
    json.field("ordinal", device.ordinal);
    device.process < report.processes.size() ? json.field("process", report.processes[device.process].pid)
                                             : json.null_field("process");
    json.fields("compute_major", device.compute_major, "compute_minor", device.compute_minor, "sm_count",
                device.sm_count, "memory_bytes", device.memory_bytes, "l2_bytes", device.l2_bytes, "sm_clock_hz",
                device.sm_clock_hz, "memory_bytes_per_s", device.memory_bytes_per_s, "mig", device.mig);
    json.close();
  }
  json.close();
}

void write_losses(JsonWriter& json, const std::vector<model::Loss>& list) {
  json.line_objects("losses", list, [&](const model::Loss& loss) {
    json.fields("kind", loss.kind.id(), "severity", model::severity_name(loss.severity), "count", loss.count, "detail",
                loss.detail);
  });
}

void write_metrics(JsonWriter& json, const std::map<std::string, model::Metric>& map) {
  json.open_object("metrics");
  for (const auto& [name, metric] : map) {
    const auto known = [there = metric.absent.empty()](double value) {
      return there ? std::optional(value) : std::nullopt;
    };
    json.open_line_object(name);
    json.fields("value", known(metric.value), "unit", metric.unit, "min", known(metric.min), "max", known(metric.max),
                "rounds", metric.rounds, "source", metric.source);
    if (!metric.absent.empty()) json.field("absent", metric.absent);
    json.close();
  }
  json.close();
}

void write_copies(JsonWriter& json, std::string_view name, const std::vector<model::CopyRow>& rows) {
  json.line_objects(name, rows, [&](const model::CopyRow& row) {
    json.fields("kind", copy_kind_name(row.kind), "calls", row.calls, "bytes", row.bytes, "total_ns", row.total_ns);
  });
}

void write_bound(JsonWriter& json, const base::Held<model::Bound>& bound) {
  bound ? json.line_object("bound", "kind", bound->kind, "reason", bound->reason) : json.null_field("bound");
}

void write_utilization(JsonWriter& json, const base::Held<model::Utilization>& value) {
  if (!value) return json.null_field("utilization");
  json.open_line_object("utilization");
  json.fields("busy_ns", value->busy_ns, "executed", value->executed, "useful", value->useful, "useful_flop",
              value->useful_flop);
  if (value->useful_bytes) json.field("useful_bytes", value->useful_bytes);
  if (value->bandwidth) json.field("bandwidth", value->bandwidth);
  if (value->useful_tokens) json.field("useful_tokens", value->useful_tokens);
  json.fields("useful_wall_ns", value->useful_wall_ns, "formula", value->formula);
  json.close();
}

void write_roofline(JsonWriter& json, const std::vector<model::RooflinePoint>& points) {
  json.line_objects("roofline", points, [&](const model::RooflinePoint& point) {
    json.fields("level", point.level, "precision", point.precision, "flops", point.flops, "bytes", point.bytes,
                "intensity", point.intensity, "flop_per_s", point.flop_per_s, "roof_flop_per_s", point.roof_flop_per_s,
                "peak_flop_per_s", point.peak_flop_per_s, "peak_bytes_per_s", point.peak_bytes_per_s);
  });
}

}  // namespace rangescope::report
