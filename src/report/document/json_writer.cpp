#include "report/document/json_writer.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {

static constexpr std::size_t kBuffer = 32 * 1024;

void JsonWriter::put(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() < kBuffer)
    return;
  sink_.write(buffer_);
  buffer_.clear();
}

void JsonWriter::newline() {
  put("\n");
  for (std::size_t i = 0; i < levels_.size(); ++i)
    put("  ");
}

// Writes what precedes a key or an element.
void JsonWriter::separate() {
  if (std::exchange(after_key_, false) || levels_.empty())
    return;
  Level& level = levels_.back();
  if (!std::exchange(level.empty, false))
    put(level.one_line ? ", " : ",");
  if (!level.one_line)
    newline();
}

void JsonWriter::open(char bracket, bool one_line) {
  separate();
  const bool within = !levels_.empty() && levels_.back().one_line;
  put(std::string_view(&bracket, 1));
  levels_.push_back({one_line || within, true, bracket == '{' ? '}' : ']'});
}

void JsonWriter::close() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.one_line)
    newline();
  put(std::string_view(&level.closing, 1));
}

void JsonWriter::key(std::string_view name) {
  separate();
  quoted(name);
  put(": ");
  after_key_ = true;
}

void JsonWriter::quoted(std::string_view value) {
  std::string shown;
  const bool is_utf8 = base::is_utf8(value);
  if (!is_utf8 || page_) {
    shown = base::printable(value);
    value = shown;
  }
  if (!is_utf8)
    escaped_ = true;
  std::string out = "\"";
  for (const char c : value) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
  out = base::printable_json(out);
  constexpr std::pair<std::string_view, std::string_view> kScriptEscapes[] = {
      {"<", "\\u003c"},
      {">", "\\u003e"},
      {"&", "\\u0026"},
      {"\xE2\x80\xA8", "\\u2028"},
      {"\xE2\x80\xA9", "\\u2029"}};
  if (page_) {
    for (const auto& [character, escape] : kScriptEscapes)
      out = base::replace_all(out, character, escape);
  }
  put(out + "\"");
}

void JsonWriter::text(std::string_view value) {
  separate();
  quoted(value);
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value))
    return null();
  separate();
  char text[64];
  // Integers that a double holds exactly are written without exponent and fraction.
  const bool is_exact_integer = std::fabs(value) < 9007199254740992.0 && value == std::floor(value);
  char* end = text + sizeof text;
  if (is_exact_integer)
    end = std::to_chars(text, end, static_cast<std::int64_t>(value)).ptr;
  else
    end = std::to_chars(text, end, value).ptr;
  put(std::string_view(text, static_cast<std::size_t>(end - text)));
}

void JsonWriter::number(std::int64_t value) {
  separate();
  put(std::to_string(value));
}

void JsonWriter::boolean(bool value) {
  separate();
  put(value ? "true" : "false");
}

void JsonWriter::null() {
  separate();
  put("null");
}

bool JsonWriter::take_escaped() {
  return std::exchange(escaped_, false);
}

void JsonWriter::finish() {
  put("\n");
  sink_.write(buffer_);
  buffer_.clear();
}

void write_run(JsonWriter& json, const model::RunInfo& run) {
  json.open_object("run");
  json.field("id", run.id);
  json.field("tool", or_null(run.tool));
  json.field("command", run.command);
  json.field("cwd", or_null(run.cwd));
  json.field("start_unix_ns", or_null(run.start_unix_ns));
  json.field("duration_ns", run.duration_ns);
  json.field("exit_code", run.exit_code);
  json.field("signal", run.signal);
  json.field("host", or_null(run.host));
  json.field("sources", run.sources);
  if (run.usage) {
    const model::ProcessUsage& usage = *run.usage;
    json.open_line_object("usage");
    json.field("user_ns", usage.user_ns);
    json.field("system_ns", usage.system_ns);
    json.field("cpus_used", run.cpus_used());
    json.field("peak_rss_bytes", usage.peak_rss_bytes);
    if (usage.machine) {
      json.field("cpus", usage.machine->cpus);
      json.field("other_cpus_used", usage.machine->busy_with_others);
    }
    json.close();
  }
  if (run.attached_pid)
    json.line_object("attached", "pid", *run.attached_pid, "after_ns", run.attached_after_ns);
  if (!run.windows.empty())
    json.line_objects("windows", run.windows, [&](const model::RunInfo::Window& window) {
      json.field("number", window.number);
      json.field("after_ns", window.after_ns);
      json.field("duration_ns", window.duration_ns);
    });
  json.open_object("environment");
  for (const auto& [key, value] : run.environment)
    json.field(key, value);
  json.close();
  json.close();
}

void write_processes(JsonWriter& json,
                     std::string_view name,
                     const std::vector<model::ReportProcess>& list) {
  json.line_objects(name, list, [&](const model::ReportProcess& process) {
    json.field("pid", process.pid);
    json.field("parent_pid", process.parent_pid);
    json.field("name", process.name);
    json.field("start_ns", process.start_ns);
    json.field("end_ns", process.end_ns);
    json.field("ranges", process.ranges);
    json.field("kernels", process.kernels);
    json.field("rank", process.rank);
    if (process.range_pair_ns > 0) {
      json.open_line_object("profiler");
      json.field("range_own_ns", process.range_own_ns);
      json.field("range_pair_ns", process.range_pair_ns);
      json.field("source", "measured at process start: the shortest time of an empty range");
      json.close();
    }
  });
}

void write_devices(JsonWriter& json, const model::Report& report) {
  json.open_array("devices");
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const model::Device& device = report.devices[i];
    json.open_line_object();
    std::string name;
    if (i < report.device_names.size())
      name = report.device_names[i];
    const bool has_uuid = i < report.device_uuids.size() && !report.device_uuids[i].empty();
    json.field("name", name);
    if (has_uuid)
      json.field("uuid", report.device_uuids[i]);
    json.field("ordinal", device.ordinal);
    json.field("process", pid_of(report, device.process));
    json.field("compute_major", device.compute_major);
    json.field("compute_minor", device.compute_minor);
    json.field("sm_count", device.sm_count);
    json.field("memory_bytes", device.memory_bytes);
    json.field("l2_bytes", device.l2_bytes);
    json.field("sm_clock_hz", device.sm_clock_hz);
    json.field("memory_bytes_per_s", device.memory_bytes_per_s);
    json.field("mig", device.mig);
    json.close();
  }
  json.close();
}

void write_losses(JsonWriter& json, const std::vector<model::Loss>& list) {
  json.line_objects("losses", list, [&](const model::Loss& loss) {
    json.field("kind", loss.kind.id());
    json.field("severity", model::severity_name(loss.severity));
    json.field("count", loss.count);
    json.field("detail", loss.detail);
  });
}

void write_metrics(JsonWriter& json, const std::map<std::string, model::Metric>& map) {
  json.open_object("metrics");
  for (const auto& [name, metric] : map) {
    using Present = std::optional<double>;
    const auto if_present = [is_present = metric.absent.empty()](double value) -> Present {
      if (!is_present)
        return std::nullopt;
      return value;
    };
    json.open_line_object(name);
    json.field("value", if_present(metric.value));
    json.field("unit", metric.unit);
    json.field("min", if_present(metric.min));
    json.field("max", if_present(metric.max));
    json.field("rounds", metric.rounds);
    json.field("source", metric.source);
    if (!metric.absent.empty())
      json.field("absent", metric.absent);
    json.close();
  }
  json.close();
}

void write_copies(JsonWriter& json,
                  std::string_view name,
                  const std::vector<model::CopyRow>& rows) {
  json.line_objects(name, rows, [&](const model::CopyRow& row) {
    json.field("kind", copy_kind_name(row.kind));
    json.field("calls", row.calls);
    json.field("bytes", row.bytes);
    json.field("total_ns", row.total_ns);
  });
}

void write_bound(JsonWriter& json, const base::Held<model::Bound>& bound) {
  if (!bound)
    return json.null_field("bound");
  json.line_object("bound", "kind", bound->kind, "reason", bound->reason);
}

void write_utilization(JsonWriter& json, const base::Held<model::Utilization>& value) {
  if (!value)
    return json.null_field("utilization");
  json.open_line_object("utilization");
  json.field("busy_ns", value->busy_ns);
  json.field("executed", value->executed);
  json.field("useful", value->useful);
  json.field("useful_flop", value->useful_flop);
  if (value->useful_bytes)
    json.field("useful_bytes", value->useful_bytes);
  if (value->bandwidth)
    json.field("bandwidth", value->bandwidth);
  if (value->useful_tokens)
    json.field("useful_tokens", value->useful_tokens);
  json.field("useful_wall_ns", value->useful_wall_ns);
  json.field("formula", value->formula);
  json.close();
}

void write_roofline(JsonWriter& json, const std::vector<model::RooflinePoint>& points) {
  json.line_objects("roofline", points, [&](const model::RooflinePoint& point) {
    json.field("level", point.level);
    json.field("precision", point.precision);
    json.field("flops", point.flops);
    json.field("bytes", point.bytes);
    json.field("intensity", point.intensity);
    json.field("flop_per_s", point.flop_per_s);
    json.field("roof_flop_per_s", point.roof_flop_per_s);
    json.field("peak_flop_per_s", point.peak_flop_per_s);
    json.field("peak_bytes_per_s", point.peak_bytes_per_s);
  });
}

}  // namespace rangescope::report
