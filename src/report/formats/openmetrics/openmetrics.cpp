// OpenMetrics 1.0 text format:
//
//   # TYPE rangescope_wall_inclusive_seconds gauge
//   # UNIT rangescope_wall_inclusive_seconds seconds
//   # HELP rangescope_wall_inclusive_seconds sum of end - start over occurrences
//   rangescope_wall_inclusive_seconds{path="decode >
//   layer0",domain="",kind="push_pop",process="",thread=""} 0.75 # EOF
//
// A family's samples are adjacent, so the report is walked once a family. Its base units are
// seconds, bytes and ratios: nanoseconds are written as seconds, the only conversion. Absent values
// have no sample. Hardware metrics form one family, rangescope_metric, with their own name and unit
// as labels: their names are no valid family names.
#include "report/formats.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

/// Escaped for the value of a label.
std::string label_value(std::string_view text) {
  std::string escaped;
  for (const char c : base::printable(text)) {
    if (c == '\\' || c == '"')
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string family_of(const model::Measure& measure) {
  std::string name = "rangescope_" + base::replace_all(measure.tag, ".", "_");
  switch (measure.unit) {
    case model::Unit::kNs: return base::replace_all(name, "_ns", "") + "_seconds";
    case model::Unit::kBytes:
      if (name.ends_with("_bytes"))
        return name;
      return name + "_bytes";
    case model::Unit::kShare: return base::replace_all(name, "_ns", "") + "_ratio";
    case model::Unit::kCount: return name;
  }
  return name;
}

std::string_view unit_of(model::Unit unit) {
  switch (unit) {
    case model::Unit::kNs: return "seconds";
    case model::Unit::kBytes: return "bytes";
    case model::Unit::kShare: return "ratio";
    case model::Unit::kCount: return "";
  }
  return "";
}

std::string labels(const model::Report& report, const model::Region& region) {
  std::string path;
  for (const std::string& name : region.path) {
    if (!path.empty())
      path += " > ";
    path += name;
  }
  std::string process, thread;
  if (const auto pid = pid_of(report, region.process))
    process = std::to_string(*pid);
  if (region.thread)
    thread = std::to_string(*region.thread);
  return fmt::format(R"(path="{}",domain="{}",kind="{}",process="{}",thread="{}")",
                     label_value(path),
                     label_value(region.domain),
                     model::range_kind_key(region.kind),
                     process,
                     thread);
}

/// The upper bound of a bin in seconds, in OpenMetrics' form: "0.001", "10.0", "+Inf".
std::string bound_text(std::size_t bin) {
  if (bin == model::kLengthBounds.size())
    return "+Inf";
  std::string text = fmt::format("{}", static_cast<double>(model::kLengthBounds.at(bin)) / 1e9);
  const bool is_whole = text.find_first_of(".e") == std::string::npos;
  if (is_whole)
    text += ".0";
  return text;
}

/// A histogram of the instances' durations. Bins are cumulative, as OpenMetrics wants them.
void duration_family(const model::Report& report, Sink& sink) {
  constexpr std::string_view kFamily = "rangescope_wall_duration_seconds";
  std::string samples;
  for (const model::Region& region : report.regions) {
    if (region.wall.histogram.size() != model::kLengthBounds.size() + 1)
      continue;
    const std::string region_labels = labels(report, region);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < region.wall.histogram.size(); ++i) {
      count += region.wall.histogram[i];
      samples += fmt::format(
          "{}_bucket{{{},le=\"{}\"}} {}\n", kFamily, region_labels, bound_text(i), count);
    }
    // With the profiler's own time, as in the bins: its estimate changes from run to run.
    samples += fmt::format("{0}_count{{{1}}} {2}\n{0}_sum{{{1}}} {3}\n",
                           kFamily,
                           region_labels,
                           count,
                           (region.wall.inclusive_ns + region.wall.profiler_ns) / 1e9);
  }
  if (samples.empty())
    return;
  sink.write(fmt::format("# TYPE {0} histogram\n# UNIT {0} seconds\n", kFamily));
  sink.write(fmt::format("# HELP {} end - start of each instance\n", kFamily));
  sink.write(samples);
}

void verdict_family(const model::Report& report, Sink& sink) {
  constexpr std::string_view kFamily = "rangescope_verdict_saves_seconds";
  std::string samples;
  for (const model::Verdict& verdict : report.verdict) {
    if (!verdict.saves_ns)
      continue;
    samples += fmt::format("{}{{kind=\"{}\",severity=\"{}\",path=\"{}\"}} {}\n",
                           kFamily,
                           verdict.kind,
                           model::weight_name(verdict.severity),
                           label_value(verdict.path),
                           *verdict.saves_ns / 1e9);
  }
  if (samples.empty())
    return;
  sink.write(fmt::format(
      "# TYPE {0} gauge\n# UNIT {0} seconds\n# HELP {0} what the run could save at most\n",
      kFamily));
  sink.write(samples);
}

void metric_family(const model::Report& report, Sink& sink) {
  bool has_header = false;
  for (const model::Region& region : report.regions) {
    for (const auto& [name, metric] : region.metrics) {
      if (!metric.absent.empty() || !std::isfinite(metric.value))
        continue;
      if (!has_header)
        sink.write(
            "# TYPE rangescope_metric gauge\n# HELP rangescope_metric hardware metrics, in base "
            "units\n");
      has_header = true;
      sink.write(fmt::format("rangescope_metric{{metric=\"{}\",unit=\"{}\",{}}} {}\n",
                             label_value(name),
                             label_value(metric.unit),
                             labels(report, region),
                             metric.value));
    }
  }
}

}  // namespace

base::Result<void> export_openmetrics(const model::Report& report,
                                      const model::Session*,
                                      const Style&,
                                      Sink& sink) {
  duration_family(report, sink);
  verdict_family(report, sink);
  for (const model::Measure& measure : model::measures()) {
    const std::string family = family_of(measure);
    std::string samples;
    for (const model::Region& region : report.regions) {
      const auto value = measure.get(region);
      if (!value || !std::isfinite(*value))
        continue;
      double shown = *value;
      if (measure.unit == model::Unit::kNs)
        shown /= 1e9;
      samples += fmt::format("{}{{{}}} {}\n", family, labels(report, region), shown);
    }
    if (samples.empty())
      continue;
    sink.write(fmt::format("# TYPE {} gauge\n", family));
    if (!unit_of(measure.unit).empty())
      sink.write(fmt::format("# UNIT {} {}\n", family, unit_of(measure.unit)));
    sink.write(fmt::format("# HELP {} {}\n", family, label_value(measure.formula)));
    sink.write(samples);
  }
  metric_family(report, sink);
  if (!report.losses.empty()) {
    sink.write(
        "# TYPE rangescope_loss gauge\n# HELP rangescope_loss data missing from the capture\n");
    for (const model::Loss& loss : report.losses)
      sink.write(fmt::format("rangescope_loss{{kind=\"{}\",severity=\"{}\"}} {}\n",
                             label_value(loss.kind.id()),
                             model::severity_name(loss.severity),
                             loss.count));
  }
  sink.write("# EOF\n");
  return {};
}

}  // namespace rangescope::report
