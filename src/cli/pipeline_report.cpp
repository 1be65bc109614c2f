// The reports of a pipeline: one consolidated report of the timeline with what ncu measured, the two Markdown pages,
// and a folder for each region that ncu measured.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "analyze/analyze.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/pipeline.hpp"
#include "cli/present.hpp"
#include "cli/summary.hpp"
#include "model/range_expression.hpp"
#include "read/join.hpp"
#include "report/sink.hpp"
#include "runs/manifest.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string csv(std::string_view text) {
  const std::string shown = base::printable(text);
  return "\"" + base::replace_all(shown, "\"", "\"\"") + "\"";
}

/// "decode > layer0" of the ranges that were open in the domain of the innermost one; "" outside all ranges.
struct Place {
  std::string domain;
  std::vector<std::string> path;
  model::RangeKind kind = model::RangeKind::kPushPop;
  auto operator<=>(const Place&) const = default;
};

Place place_of(const model::Session& session, const model::Measurement& one) {
  Place place;
  if (one.ranges.empty()) return place;
  const model::OpenRange& last = one.ranges.back();
  place.kind = last.kind;
  place.domain = session.strings.view(session.domains[last.domain].name);
  if (last.kind == model::RangeKind::kStartEnd) {
    place.path = {std::string(session.strings.view(last.name))};
    return place;
  }
  for (const model::OpenRange& range : one.ranges)
    if (range.domain == last.domain && range.kind == model::RangeKind::kPushPop)
      place.path.emplace_back(session.strings.view(range.name));
  return place;
}

std::string title(const Place& place) {
  if (place.path.empty()) return "(outside all ranges)";
  return (place.domain.empty() ? "" : place.domain + "@") + base::join(place.path, " > ");
}

std::string subject(const model::Session& session, const model::Measurement& one) {
  if (one.scope == model::MeasuredScope::kRange) return "(range)";
  if (one.scope == model::MeasuredScope::kGraph) return "(graph)";
  if (one.kernel_name < session.kernel_names.size()) {
    const auto& name = session.kernel_names[one.kernel_name];
    return std::string(session.strings.view(name.demangled ? name.demangled : name.short_name));
  }
  return "(command list)";
}

/// sections.txt, metrics.csv and report.json of one region.
base::Result<void> write_region(const fs::path& folder, const model::Session& session, const Place& place,
                                const std::vector<std::size_t>& measured, const analyze::Options& plain) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::Code::kIo, "cannot make the folder: " + error.message(), folder.string());
  std::string rows = "result,what,occurrence,metric,unit,value\n",
              text =
                  "Region: " + base::printable(title(place)) + "\nResults: " + std::to_string(measured.size()) + "\n";
  for (const std::size_t index : measured) {
    const model::Measurement& one = session.measurements[index];
    const std::string what = subject(session, one);
    text += "\n" + base::printable(what) + "\n";
    for (const model::MetricValue& value : one.values) {
      if (value.metric >= session.metrics.size()) continue;
      const model::MetricDef& metric = session.metrics[value.metric];
      rows += std::to_string(index) + "," + csv(what) + "," +
              (one.occurrence == model::kNone ? "" : std::to_string(one.occurrence)) + "," + csv(metric.name) + "," +
              csv(metric.unit) + "," + number(value.value) + "\n";
      text += "  " + metric.name + std::string(metric.name.size() < 60 ? 60 - metric.name.size() : 1, ' ') + " " +
              number(value.value) + (metric.unit.empty() ? "" : " " + metric.unit) + "\n";
    }
  }
  if (auto written = base::write_file(folder / "metrics.csv", rows); !written) return written;
  if (auto written = base::write_file(folder / "sections.txt", text); !written) return written;
  analyze::Options options = plain;
  options.exclude.clear();
  options.include.clear();
  if (!place.path.empty()) options.include = {model::expression_of(place.domain, place.path, place.kind)};
  auto report = analyze::analyze(session, options);
  if (!report) return {};  // the session has no region of it; the tables above stand for themselves
  auto exporter = report::find_exporter("json");
  if (!exporter) return base::fail(std::move(exporter));
  report::FileSink sink(folder / "report.json");
  if (auto written = (*exporter)->write(*report, nullptr, {}, sink); !written) return written;
  return sink.finish();
}

}  // namespace

base::Result<void> Pipeline::reports() {
  if (captured_.empty() && !timeline()) return {};  // conclude() says why
  if (ncu_session_) {
    std::map<Place, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < ncu_session_->measurements.size(); ++i)
      places[place_of(*ncu_session_, ncu_session_->measurements[i])].push_back(i);
    for (const auto& [place, measured] : places)
      if (auto written = write_region(run_ / "ncu" / "regions" / base::sanitize_component(title(place)), *ncu_session_,
                                      place, measured, args_.analysis);
          !written)
        return written;
  }
  std::vector<model::Session> parts;
  if (const model::Session* seen = timeline()) parts.push_back(std::move(const_cast<model::Session&>(*seen)));
  if (ncu_session_) parts.push_back(std::move(*ncu_session_));
  if (parts.empty()) return {};
  model::Session session = parts.size() == 1 ? std::move(parts.front()) : read::join(std::move(parts));
  auto report = analyze::analyze(session, args_.analysis);
  if (!report) return base::fail(std::move(report));
  model::RunInfo info = runs::run_info(run_);
  info.duration_ns = static_cast<double>(session.end_ns - session.begin_ns);
  if (info.tool.empty()) info.tool = tool_version();
  for (const model::Source& source : session.sources)
    info.sources.push_back(source.format + (source.tool.empty() ? "" : ": " + source.tool));
  report->run = std::move(info);
  for (const std::string& text : notes_) report->notes.push_back(text);
  for (const runs::Stage& stage : runner_->stages()) {
    if (stage.outcome != "empty" && stage.outcome != "failed") continue;
    // Rungs that failed on the way to one that worked are notes; a stage that has nothing at all is a loss.
    const bool missing = std::find(captured_.begin(), captured_.end(), stage.stage) == captured_.end();
    const std::string text = stage.stage + (stage.step.empty() ? "" : ", " + stage.step) + ": " + stage.message;
    if (missing && stage.stage != "look")
      report->losses.push_back({"stage_" + stage.outcome, model::Severity::kWarning, 1,
                                text + (stage.cure.empty() ? "" : " " + stage.cure)});
    else
      report->notes.push_back(text);
  }
  if (auto written = base::write_file(run_ / "kernels.md", kernels_page(*report)); !written) return written;
  if (auto written = base::write_file(run_ / "stakeholder_summary.md", stakeholder_page(*report)); !written)
    return written;
  const Analyzed analyzed{std::move(session), std::move(*report)};
  for (const auto& [format, name] : {std::pair{"json", "report.json"}, {"md", "report.md"}}) {
    ReportChoice kept;
    kept.format = format;
    kept.to = (run_ / name).string();
    if (auto written = write_report(analyzed, kept, -1); !written) return written;
  }
  if (!args_.choice.to.empty() || !is_quiet())
    if (auto written =
            write_report(analyzed, args_.choice, ::isatty(STDOUT_FILENO) != 0 ? STDOUT_FILENO : STDERR_FILENO);
        !written)
      return written;
  if (args_.strict && has_loss(analyzed.report))
    return base::fail(base::Code::kDataLoss, "data was lost", run_.string(),
                      "Without --strict losses are reported only");
  return {};
}

}  // namespace rangescope::cli
