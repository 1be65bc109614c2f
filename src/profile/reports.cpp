// The reports of a run: one consolidated report of the timeline with what ncu measured, the two
// Markdown pages, and a folder for each region that ncu measured.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <map>

#include "analyze/tally/file.hpp"
#include "analyze/tree/groups.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "collect/nsight/ncu.hpp"
#include "profile/analyzed.hpp"
#include "profile/kernel_figures.hpp"
#include "profile/split_regions.hpp"
#include "profile/stage.hpp"
#include "read/csv.hpp"
#include "read/registry.hpp"
#include "report/document/figures.hpp"
#include "report/document/report_document.hpp"
#include "runs/job/folder.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"

namespace rangescope::profile {
namespace {

// A folder for each kernel that ncu measured, for scripts that expect one kernel a folder:
//
//   OUT/<kernel>/details.csv     the kernel's rows of ncu's own details.csv, where ncu wrote it
//   OUT/<kernel>/durations.svg   how long its calls took on the timeline, where a stage recorded
//                                one
//   OUT/roofline.svg             the regions under the roofs of the GPU
//
// Folders are named after the kernels as the report has them, with what a file name should not hold
// replaced. (Since 2025 ncu shortens names in what it prints, so its rows are matched by the
// number of their result.)

namespace fs = std::filesystem;

/// The rows of ncu's details.csv by the number of their result, which is the column ID.
struct DetailsTable {
  std::string header;
  std::map<std::size_t, std::string> rows;
};

DetailsTable details_by_result(std::string_view csv) {
  DetailsTable table;
  std::size_t id_column = 0;
  std::size_t offset = 0;
  std::uint64_t line = 1;
  for (read::Row row; read::next_row(csv, offset, line, row);) {
    if (table.header.empty()) {
      const auto id = std::find(row.cells.begin(), row.cells.end(), "ID");
      if (id == row.cells.end())
        return {};
      id_column = static_cast<std::size_t>(id - row.cells.begin());
      table.header = std::string(row.text) + "\n";
      continue;
    }
    if (id_column >= row.cells.size())
      continue;
    const std::string_view id = row.cells[id_column];
    std::size_t result = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), result);
    if (error == std::errc() && end == id.data() + id.size())
      table.rows[result].append(row.text).append("\n");
  }
  return table;
}

std::string kernel_name(const model::Session& session, std::uint32_t kernel) {
  return std::string(session.strings.view(analyze::shown_name(session.kernel_names[kernel])));
}

/// Of each kernel that ncu measured: its rows of ncu's details, "" where ncu did not write them.
std::map<std::string, std::string> details_by_kernel(const Analyzed& analyzed) {
  const model::Session& session = analyzed.session;
  std::map<std::string, std::string> kernels;
  for (const NcuPart& part : analyzed.parts) {
    DetailsTable table;
    const fs::path page = collect::ncu::page_path(part.file, collect::ncu::kDetailsCsv);
    if (const auto csv = base::read_file(page))
      table = details_by_result(*csv);
    for (std::size_t result = 0; result < part.count; ++result) {
      const model::Measurement& measurement = session.measurements[part.first + result];
      if (measurement.scope != model::MeasuredScope::kKernel)
        continue;
      if (measurement.kernel_name >= session.kernel_names.size())
        continue;
      std::string& details = kernels[kernel_name(session, measurement.kernel_name)];
      const auto rows = table.rows.find(result);
      if (rows == table.rows.end())
        continue;
      if (details.empty())
        details = table.header;
      details += rows->second;
    }
  }
  return kernels;
}

base::Result<void> put(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    return base::fail(
        base::Code::kIo, "cannot make the folder: " + error.message(), file.parent_path().string());
  return base::write_file(file, text);
}

/// kIo with the path. O(results + kernels on the timeline).
base::Result<void> split_kernels(const fs::path& out, const Analyzed& analyzed) {
  std::map<std::string, std::vector<double>> durations;
  for (const model::Kernel& kernel : analyzed.session.kernels) {
    const auto duration_ns = static_cast<double>(kernel.end_ns - kernel.start_ns);
    durations[kernel_name(analyzed.session, kernel.name)].push_back(duration_ns);
  }
  for (const auto& [kernel, details] : details_by_kernel(analyzed)) {
    const fs::path folder = out / base::sanitize_component(kernel);
    if (!details.empty())
      TRY(put(folder / collect::ncu::kDetailsCsv.name, details));
    const auto in_timeline = durations.find(kernel);
    if (in_timeline == durations.end())
      continue;
    const std::string figure = report::histogram_figure(kernel, in_timeline->second);
    if (!figure.empty())
      TRY(put(folder / "durations.svg", figure));
  }
  const std::string roofline = report::roofline_figure(analyzed.report);
  if (!roofline.empty())
    TRY(put(out / "roofline.svg", roofline));
  return {};
}

/// Every run leaves these, also one that captured nothing.
base::Result<void> write_files(const Run& run, const Analyzed& analyzed) {
  const auto write_page = [&](const char* name, const auto& document) {
    return base::write_file(run.folder / name, report::markdown_text(document));
  };
  TRY(write_page("kernels.md", report::kernels_document(analyzed.report)));
  TRY(write_page("summary.md", report::summary_document(analyzed.report)));
  TRY(base::write_file(run.folder / "summary.svg", report::summary_figure(analyzed.report)));
  if (!analyzed.parts.empty()) {
    TRY(split_regions(run.folder / "ncu" / "regions", analyzed, true));
    TRY(split_kernels(run.folder / "ncu" / "kernels", analyzed));
    TRY(write_kernel_figures(run.folder / "ncu" / "metrics", analyzed.report));
  }
  if (!analyzed.report.operators.empty())
    TRY(write_page("operators.md", report::operators_document(analyzed.report)));
  TRY(write_report(analyzed, "json", run.folder / "report.json"));
  TRY(write_report(analyzed, "md", run.folder / "report.md"));
  return {};
}

}  // namespace

base::Result<Analyzed> analyze_run(Run& run) {
  const auto captures = captures_to_read(run.folder);
  if (captures.empty())
    return base::fail(base::Code::kNothingCaptured, "no stage had results", run.folder.string());
  const auto repeats =
      runs::repeats_of(run.folder);  // the report is of one, with that one's metrics
  Sessions read;
  for (StageData* stage : {&run.by_native, &run.by_nsys, &run.by_ncu})
    if (stage->session && !stage->path.empty())
      read.emplace(stage->path, std::move(*stage->session));
  base::Result<analyze::tally::Digest> tally;
  const bool of_job = !run.repetition && !runs::job::job_of(run.folder).empty();
  const fs::path analyzed_run = repeats.empty() ? run.folder : runs::median_repeat(repeats);
  auto analyzed = analyze_inputs(captures,
                                 analyzed_run,
                                 run.args.analysis,
                                 {},
                                 std::move(read),
                                 {},
                                 of_job ? &tally : nullptr);
  if (!analyzed || !of_job)
    return analyzed;
  base::Result<void> written;
  if (tally)
    written = analyze::tally::write(run.folder / analyze::tally::kFileName, std::move(*tally));
  else
    written = tl::make_unexpected(tally.error());
  if (!written)
    base::detail("no digest: " + base::printable(base::to_string(written.error())));
  return analyzed;
}

void read_again(Run& run) {
  for (StageData* stage : {&run.by_native, &run.by_nsys}) {
    if (!stage->session || stage->path.empty())
      continue;
    stage->session.reset();
    if (auto read = read::read_any(stage->path))
      stage->session = std::move(*read);
  }
}

namespace {

/// "ncu, range: why it failed": a stage's message without the stage, which most begin with.
std::string failure_text(const std::string& name, const runs::Stage& stage) {
  const std::string prefix = stage.stage + ": ";
  std::string reason = stage.message;
  if (reason.starts_with(prefix))
    reason.erase(0, prefix.size());
  return name + ": " + reason;
}

/// The loss of a stage that has no results at all.
model::Loss loss_of(const Run& run, const runs::Stage& stage, const std::string& name) {
  model::Loss loss{model::LossKind("stage_failed"), 1, failure_text(name, stage)};
  if (stage.outcome == "empty")
    loss.kind = model::LossKind("stage_empty");
  const std::string qualified_id = stage.stage + "." + stage.why;
  const auto explains = [&](const model::Finding& candidate) {
    return candidate.id == stage.why || candidate.id == qualified_id;
  };
  const auto finding = std::find_if(run.findings.begin(), run.findings.end(), explains);
  if (finding != run.findings.end())
    loss.detail = name + " captured nothing: see " + finding->id;
  else if (!stage.cure.empty())
    loss.detail += ". " + stage.cure;
  return loss;
}

/// Counts a loss that another attempt has as well.
void add_loss(model::Loss loss, std::vector<model::Loss>& losses) {
  const auto same = std::find_if(losses.begin(), losses.end(), [&](const model::Loss& other) {
    return other.kind == loss.kind && other.detail == loss.detail;
  });
  if (same != losses.end())
    ++same->count;
  else
    losses.push_back(std::move(loss));
}

/// Steps that failed on the way to one that worked are notes; a stage that has nothing at all is a
/// loss.
void add_failed_stages(const Run& run, model::Report& report) {
  for (const runs::Stage& stage : run.runner->stages()) {
    if (stage.outcome != "empty" && stage.outcome != "failed")
      continue;
    std::string name = stage.stage;
    if (!stage.step.empty())
      name += ", " + stage.step;
    const bool has_results =
        std::find(run.captured.begin(), run.captured.end(), stage.stage) != run.captured.end();
    if (has_results || stage.stage == "look")
      report.notes.push_back(failure_text(name, stage));
    else
      add_loss(loss_of(run, stage, name), report.losses);
  }
}

}  // namespace

base::Result<void> write_reports(Run& run, Analyzed& analyzed, bool show) {
  model::Report& report = analyzed.report;
  for (const std::string& text : run.notes)
    report.notes.push_back(text);
  report.losses.insert(report.losses.end(), run.cut.begin(), run.cut.end());
  report.findings = run.findings;
  add_failed_stages(run, report);
  const bool chose_passes = run.counters && run.args.counters.passes == "auto";
  if (chose_passes && !run.repetition)
    for (const model::Loss& loss : report.losses)
      if (loss.kind == "counters_incomplete")
        base::info(base::printable(loss.detail));
  // Where the disk is full the report is shown all the same.
  auto written = write_files(run, analyzed);
  if (!show || !run.args.talk.report || runs::job::reports_together(run.folder))
    return written;
  const auto was_printed = [&](const std::string& text) {
    return std::find(run.notes.begin(), run.notes.end(), text) != run.notes.end();
  };
  if (run.args.talk.report_shows_findings)
    std::erase_if(report.notes, was_printed);
  auto shown = run.args.talk.report(analyzed);
  if (!written)
    return written;
  return shown;
}

}  // namespace rangescope::profile
