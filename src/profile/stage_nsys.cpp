// The nsys stage: profile, import where nsys left a .qdstrm, export to SQLite, our own reader; never `nsys stats`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/analyze.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "profile/engine.hpp"
#include "profile/redact.hpp"
#include "read/join.hpp"
#include "read/nsys/rep/reader.hpp"
#include "read/registry.hpp"
#include "report/document/csv_text.hpp"

namespace rangescope::profile {

namespace fs = std::filesystem;

namespace {

/// The range of nsys's --nvtx-capture, whose domain follows it, as a term.
base::Result<std::vector<model::RangeTerm>> capture_terms(const std::string& written) {
  const auto capture = TRY(collect::nsys::capture_of(written));
  const auto at = capture.find('@');
  return model::parse_terms(at == std::string::npos ? capture : capture.substr(at + 1) + "@" + capture.substr(0, at));
}

}  // namespace

base::Result<collect::Plan> Engine::nsys_plan(const collect::Request& plain) const {
  collect::nsys::Options options = nsys_options(config_);
  collect::Request request = plain;
  request.ranges = ranges_;
  const auto named = config_.text("pipeline.nsys.nvtx_capture");
  const auto gate = named ? capture_terms(*named) : base::Result<std::vector<model::RangeTerm>>(ranges_.include);
  if (native_session_ && gate && gate->size() == 1)
    options.registered = analyze::is_registered(*native_session_, gate->front());
  return collect::nsys::plan(*nsys_can_, options, request);
}

base::Result<void> Engine::nsys_stage() {
  const std::string tool = "nsys " + collect::to_string(nsys_can_->version);
  const collect::Request request = base_request(config_, run_);
  auto plan = TRY(nsys_plan(request));
  for (const std::string& text : plan.notes) note("nsys: " + text);
  if (!native_) TRY(record_->about_to_run(plan));
  for (int attempt = 1;; ++attempt) {
    auto ran = TRY(runner_->run(plan, attempt == 1 ? "profile" : "profile-" + std::to_string(attempt)));
    last_ = ran.ended;
    if (!native_) (void)record_->ended(ran.ended);  // the program's end is ours to pass on; finish() reports a failure
    TRY(worker_->go_on_in_child());
    collect::Observed seen = observed(ran, runner_->interrupted());
    nsys_session_.reset();
    auto reports = nsys_reports();
    base::Error why;
    if (!reports) {
      why = reports.error();
    } else if (auto exported = nsys_exports(*reports); !exported) {
      why = exported.error();
    } else {
      seen.report = true;
      seen.results = nsys_session_ ? nsys_session_->ranges.size() + nsys_session_->kernels.size() : 0;
    }
    // nsys 2022.4 of Debian complains of its importer where a .qdstrm is left, which is imported all the same.
    if (reports) seen.text = base::replace_all(seen.text, "importer binary and its dependencies were not found", "");
    collect::Outcome outcome = collect::judge_nsys(seen);
    const bool gated = std::any_of(plan.argv.begin(), plan.argv.end(),
                                   [](const std::string& word) { return word.starts_with("--capture-range="); });
    if (!reports && reports.error().code == base::Code::kNothingCaptured && outcome.why() == "nsys.importer_missing") {
      // nsys 2022.4 of Debian complains of its importer and lists no file where it recorded nothing.
      seen.text = gated ? "No reports were generated" : "";
      outcome = collect::judge_nsys(seen);
    }
    if (outcome.result != collect::Result::kOk && !why.what.empty() && why.code != base::Code::kNothingCaptured) {
      outcome.result = collect::Result::kFailed;
      outcome.message = "nsys: " + why.what;
      outcome.code = why.code;
      std::erase_if(outcome.complaints,
                    [](const collect::Complaint& one) { return one.id == "nsys.importer_missing"; });
      outcome.complaints.insert(outcome.complaints.begin(),
                                {"nsys.report", why.where, why.what, why.hint, false, true});
    }
    runs::Stage stage = StageRunner::stage_of("nsys", tool, "profile", outcome, ran);
    stage.attempt = attempt;
    stage.results = seen.results;
    if (reports) stage.report = reports->front().lexically_relative(run_).string();
    runner_->record(std::move(stage));
    if (outcome.result == collect::Result::kOk) {
      captured_.emplace_back("nsys");
      cut_short("nsys", ran.ended);
      base::info(outcome.message);
      return {};
    }
    if (runner_->interrupted()) return {};
    if (collect::try_again(outcome, attempt, static_cast<int>(config_.integer("run.retries").value_or(1)))) {
      base::warn(outcome.why() + ": trying again");
      continue;
    }
    worst_ = outcome.code;
    explanations_.push_back({outcome.message, true});
    outcomes_.emplace_back("nsys", outcome);
    nsys_gated_ = gated && !plan.set_env.contains("NSYS_NVTX_PROFILER_REGISTER_ONLY");
    return {};
  }
}

/// The reports that nsys left, imported where it left only streams. A capture that repeats leaves one each time.
base::Result<std::vector<fs::path>> Engine::nsys_reports() {
  std::vector<fs::path> reports, streams;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run_ / "nsys", ignored)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".nsys-rep" || extension == ".qdrep") reports.push_back(entry.path());
    if (extension == ".qdstrm") streams.push_back(entry.path());
  }
  std::sort(reports.begin(), reports.end());
  std::sort(streams.begin(), streams.end());
  if (!reports.empty()) return reports;
  if (streams.empty()) return base::fail(base::Code::kNothingCaptured, "nsys left no report");
  for (const fs::path& stream : streams) {
    reports.push_back(fs::path(stream).replace_extension(".nsys-rep"));
    TRY(read::nsys_rep::import_stream(nsys_can_->path, stream, reports.back()));
    note("nsys left a .qdstrm; imported it with its QdstrmImporter");
  }
  return reports;
}

base::Result<void> Engine::nsys_export(const fs::path& report) {
  const fs::path sqlite = fs::path(report).replace_extension(".sqlite");
  auto ran = TRY(runner_->run(collect::nsys::export_plan(*nsys_can_, report, sqlite), "export", {}, true));
  std::error_code ignored;
  if (!fs::exists(sqlite, ignored)) {
    const std::string output(base::trim(ran.text));
    return base::fail(base::Code::kBadData,
                      "nsys export left no SQLite file (" + base::describe(ran.ended) + ")" +
                          (output.empty() ? "" : ": " + base::printable(output.substr(0, 300))),
                      report.string(), "See nsys/export.stderr in the run directory.");
  }
  if (auto done = redact_nsys_export(sqlite); !done) {
    fs::remove(sqlite, ignored);
    return base::fail(base::Code::kIo,
                      "the export's environment could not be redacted, so it was removed: " + done.error().what,
                      sqlite.string());
  }
  // nsys's own report holds the same and cannot be changed: only its owner may read it, and `runs pack` leaves it out.
  fs::permissions(report, fs::perms::owner_read | fs::perms::owner_write, ignored);
  fs::remove(fs::path(report).replace_extension(".qdstrm"), ignored);
  auto session = TRY(read::read_any(sqlite));
  nsys_capture_ = nsys_session_ ? fs::path() : sqlite;
  read::join_to(nsys_session_, std::move(session));
  return {};
}

base::Result<void> Engine::nsys_exports(const std::vector<fs::path>& reports) {
  for (const fs::path& report : reports) TRY(nsys_export(report));
  if (reports.size() > 1)
    note("nsys: the capture repeated, and left " + std::to_string(reports.size()) +
         " reports, which are read together");
  // Kernels by name over the whole recording, in the columns of nsys's cuda_gpu_kern_sum.
  std::string csv = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n";
  analyze::Options everything = args_.analysis;
  everything.ranges = {};
  everything.kernels = {};
  if (const auto report = analyze::analyze(*nsys_session_, everything)) {
    double all = 0;
    for (const model::KernelRow& kernel : report->kernels) all += std::isfinite(kernel.total_ns) ? kernel.total_ns : 0;
    for (const model::KernelRow& kernel : report->kernels)
      if (const auto& each = kernel.duration_ns; std::isfinite(kernel.total_ns) && all > 0)
        csv += fmt::format("{:.1f},{:.0f},{},{:.1f},{:.1f},{:.0f},{:.0f},{:.1f},{}\n", 100 * kernel.total_ns / all,
                           kernel.total_ns, kernel.calls, each.mean, each.median, each.min, each.max, each.stddev,
                           report::csv_field(kernel.name));
  }
  return base::write_file(run_ / "nsys" / "kernels.csv", csv);
}

}  // namespace rangescope::profile
