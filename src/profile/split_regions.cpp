#include "profile/split_regions.hpp"

#include <fmt/format.h>

#include "analyze/tree/groups.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/measure.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/document.hpp"
#include "report/document/json_writer.hpp"
#include "report/sink.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutside = "(outside all ranges)";

std::string title_of(const model::Report& report, const model::Region& region) {
  std::string title = model::path_text(region);
  if (region.kind == model::RangeKind::kStartEnd)
    title += " (start/end)";
  if (region.process && *region.process < report.processes.size())
    title += fmt::format(" (process {})", report.processes[*region.process].pid);
  if (region.thread)
    title += fmt::format(" (thread {})", *region.thread);
  return title;
}

std::string subject(const model::Session& session, const model::Measurement& result) {
  if (result.scope == model::MeasuredScope::kRange)
    return "(range)";
  if (result.scope == model::MeasuredScope::kGraph)
    return "(graph)";
  if (result.kernel_name < session.kernel_names.size())
    return std::string(
        session.strings.view(analyze::shown_name(session.kernel_names[result.kernel_name])));
  return "(command list)";
}

/// The part of a report that is one region and what lies below it.
model::Report part_of(const model::Report& whole, const model::Region* region) {
  model::Report part;
  part.run = whole.run;
  part.processes = whole.processes;
  part.devices = whole.devices;
  part.device_names = whole.device_names;
  part.device_uuids = whole.device_uuids;
  part.losses = whole.losses;
  part.notes = whole.notes;
  if (region == nullptr) {
    part.unattributed = whole.unattributed;
    return part;
  }
  const std::uint32_t base = region->id;
  for (std::size_t i = base; i < whole.regions.size(); ++i) {
    if (i > base && whole.regions[i].depth <= region->depth)
      break;
    model::Region& copy = part.regions.emplace_back(whole.regions[i]);
    copy.id -= base;
    copy.parent = i == base ? model::kNone : copy.parent - base;
    copy.depth -= region->depth;
  }
  if (region->gpu)
    part.kernels = region->gpu->top_kernels;
  return part;
}

class Splitter {
 public:
  explicit Splitter(const Analyzed& analyzed) : analyzed_(analyzed), session_(analyzed.session) {}

  base::Result<std::size_t> run(const fs::path& out, bool measured_only) {
    for (const model::Region& region : analyzed_.report.regions) {
      if (measured_only && region.results.empty())
        continue;
      TRY(write(out, title_of(analyzed_.report, region), &region, region.results));
    }
    std::vector<std::uint32_t> outside;
    for (std::uint32_t i = 0; i < session_.measurements.size(); ++i)
      if (session_.measurements[i].ranges.empty())
        outside.push_back(i);
    if (!outside.empty())
      TRY(write(out, std::string(kOutside), nullptr, outside));
    TRY(list(out));
    return written_.size();
  }

 private:
  struct Written {
    std::string title, folder;
    const model::Region* region;  ///< null: what lies outside every range
    std::size_t results;
  };

  /// llm-perf-opt's name of the folder: the range's name, which holds its levels (A::A1), with a
  /// `_` for every character that is no letter, digit, `.`, `_` or `-`.
  static std::string alias_of(const Written& written) {
    if (written.region == nullptr)
      return {};
    const std::vector<std::string>& path = written.region->path;
    std::string name = path.back();
    if (name.find("::") == std::string::npos)
      name = base::join(path, "::");
    for (char& c : name)
      if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-'))
        c = '_';
    return name;
  }

  /// What report.md lists of a region; "-" for what is not known.
  struct Cells {
    std::string bound = "-", kernel_time = "-", measured_each = "-", kernels = "-",
                occurrences = "-";
  };
  static Cells cells_of(const model::Region& region) {
    Cells cells;
    if (region.bound)
      cells.bound = region.bound->kind;
    const auto measured = region.metrics.find("gpu__time_duration.sum");
    if (measured != region.metrics.end() && measured->second.absent.empty())
      cells.measured_each = base::format_ns(measured->second.value);  // the mean of one occurrence
    if (const auto kernel_ns = model::find_measure("gpu.kernel_ns")->get(region))
      cells.kernel_time = base::format_ns(*kernel_ns);
    if (region.gpu)
      cells.kernels = base::format_count(region.gpu->kernels);
    if (region.occurrences >= 0)
      cells.occurrences = base::format_count(region.occurrences);
    return cells;
  }
  static void write_values(const model::Region& region, report::JsonWriter& json) {
    json.field("path", region.path);
    json.field("domain", region.domain);
    json.open_object("values");
    for (const model::Measure& measure : model::measures())
      if (const auto value = measure.get(region))
        json.field(measure.tag, *value);
    for (const auto& [name, metric] : region.metrics)
      if (metric.absent.empty() && !model::find_measure(name))
        json.field(name, metric.value);
    json.close();
  }

  /// The lists of all folders: report.json and report.md.
  [[nodiscard]] base::Result<void> list(const fs::path& out) const {
    if (written_.empty())
      return {};
    report::StringSink text;
    report::JsonWriter json(text);
    json.open_object();
    json.field("schema", "rangescope.regions/1");
    json.open_array("regions");
    std::string table =
        "# Regions\n\n| region | folder | results | instances | kernels | kernel time | measured "
        "each | bound |\n"
        "|---|---|---:|---:|---:|---:|---:|---|\n";
    for (const Written& written : written_) {
      json.open_object();
      json.field("region", written.title);
      json.field("folder", written.folder);
      json.field("alias", alias_of(written));
      json.field("results", static_cast<std::int64_t>(written.results));
      Cells cells;
      if (written.region != nullptr) {
        write_values(*written.region, json);
        cells = cells_of(*written.region);
      }
      json.field("bound", cells.bound);
      json.close();
      table += "| " + report::md_escaped(written.title) + " | [" + written.folder + "](" +
               written.folder + "/sections.txt) | " + std::to_string(written.results) + " | " +
               cells.occurrences + " | " + cells.kernels + " | " + cells.kernel_time + " | " +
               cells.measured_each + " | " + report::md_escaped(cells.bound) + " |\n";
    }
    json.close();
    json.close();
    json.finish();
    TRY(base::write_file(out / "report.json", text.text()));
    return base::write_file(out / "report.md", table);
  }

  base::Result<void> write(const fs::path& out,
                           const std::string& title,
                           const model::Region* region,
                           const std::vector<std::uint32_t>& results) {
    // report.json and report.md are next to the folders.
    const std::string distinct = title.starts_with("report.") ? title + " " : title;
    const fs::path folder = out / base::sanitize_component(distinct);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      return base::fail(
          base::Code::kIo, "cannot make the folder: " + error.message(), folder.string());
    const model::Report part = part_of(analyzed_.report, region);
    const auto json = report::find_exporter("json"),
               table = report::find_exporter(report::kDefaultFormat);
    if (!json || !table)
      return base::fail(base::Code::kInternal, "no exporter");
    report::FileSink sink(folder / "report.json");
    TRY((*json)->write(part, nullptr, {}, sink));
    TRY(sink.finish());
    TRY(base::write_file(folder / "metrics.csv", metrics(region, results)));
    report::StringSink text;
    text.write("Region: " + base::printable(title) + "\n\n");
    if (region != nullptr) {
      report::Style style;
      style.width = 0;
      style.explain = true;
      TRY((*table)->write(part, nullptr, style, text));
    }
    list_results(results, text);
    written_.push_back({title, folder.filename().string(), region, results.size()});
    return base::write_file(folder / "sections.txt", text.text());
  }

  [[nodiscard]] std::string metrics(const model::Region* region,
                                    const std::vector<std::uint32_t>& results) const {
    std::string rows = "result,what,occurrence,metric,unit,value\n";
    if (region != nullptr) {
      const auto add_row = [&](std::string_view metric, std::string_view unit, double value) {
        rows += fmt::format(
            ",(region),,{},{},{}\n", report::csv_field(metric), report::csv_field(unit), value);
      };
      for (const model::Measure& measure : model::measures())
        if (const auto value = measure.get(*region))
          add_row(measure.tag, model::unit_name(measure.unit), *value);
      for (const auto& [name, metric] : region->metrics)
        if (metric.absent.empty())
          add_row(name, metric.unit, metric.value);
    }
    for (const std::uint32_t index : results) {
      const model::Measurement& result = session_.measurements[index];
      const std::string measured = report::csv_field(subject(session_, result));
      std::string occurrence;
      if (result.occurrence != model::kNone)
        occurrence = std::to_string(result.occurrence);
      for (const model::MetricValue& value : result.values) {
        if (value.metric >= session_.metrics.size())
          continue;
        const model::MetricDef& metric = session_.metrics[value.metric];
        rows += fmt::format("{},{},{},{},{},{}\n",
                            index,
                            measured,
                            occurrence,
                            report::csv_field(metric.name),
                            report::csv_field(metric.unit),
                            value.value);
      }
    }
    return rows;
  }

  /// The values of each result, in base units.
  void list_results(const std::vector<std::uint32_t>& results, report::Sink& out) const {
    for (const std::uint32_t index : results) {
      const model::Measurement& result = session_.measurements[index];
      out.write("\n" + base::printable(subject(session_, result)) + "\n");
      for (const model::MetricValue& value : result.values) {
        if (value.metric >= session_.metrics.size())
          continue;
        const model::MetricDef& metric = session_.metrics[value.metric];
        std::string line = fmt::format("  {:<60} {}", metric.name, value.value);
        if (!metric.unit.empty())
          line += " " + metric.unit;
        out.write(line + "\n");
      }
    }
  }

  const Analyzed& analyzed_;
  const model::Session& session_;
  std::vector<Written> written_;
};

}  // namespace

base::Result<std::size_t> split_regions(const fs::path& out,
                                        const Analyzed& analyzed,
                                        bool measured_only) {
  return Splitter(analyzed).run(out, measured_only);
}

}  // namespace rangescope::profile
