// The nsys stage: profile, import where nsys left a .qdstrm, export to SQLite, our own reader;
// never `nsys stats`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/analyze.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "collect/nsight/tools.hpp"
#include "profile/redact.hpp"
#include "profile/stage.hpp"
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
  const auto at_sign = capture.find('@');
  if (at_sign == std::string::npos)
    return model::parse_terms(capture);
  const std::string domain = capture.substr(at_sign + 1), range = capture.substr(0, at_sign);
  return model::parse_terms(domain + "@" + range);
}

class Nsys : public Stage {
 public:
  using Stage::Stage;
  base::Result<void> prepare() override {
    can_ = TRY(able(run_, "nsys"));
    TRY(plan_of(base_request(run_.config, "/run")));
    return {};
  }
  int print() override {
    int code = print_plan("nsys", plan_of(base_request(run_.config, run_.folder)));
    const std::string base = (run_.folder / "nsys" / "nsys").string();
    // Debian's nsys leaves what has to be imported.
    if (const auto importer = collect::find_importer(can_->path)) {
      std::printf("if [ ! -e %s ]; then\n", base::shell_quote(base + ".nsys-rep").c_str());
      code |=
          print_plan("nsys, its import",
                     collect::nsys::import_plan(*importer, base + ".qdstrm", base + ".nsys-rep"));
      std::puts("fi");
    }
    code |= print_plan("nsys, its export",
                       collect::nsys::export_plan(*can_, base + ".nsys-rep", base + ".sqlite"));
    return code;
  }
  base::Result<void> run() override {
    run_.wanted.emplace_back("nsys");
    const collect::Request request = base_request(run_.config, run_.folder);
    const auto plan = TRY(plan_of(request));
    for (const std::string& text : plan.notes)
      run_.note("nsys: " + text);
    if (!run_.asked.native)
      TRY(run_.record->about_to_run(plan));
    const auto retries = static_cast<int>(run_.config.integer("run.retries").value_or(1));
    for (int attempt = 1;; ++attempt) {
      const collect::Outcome outcome = TRY(attempt_run(plan, attempt));
      if (outcome.result == collect::Result::kOk || run_.runner->interrupted())
        return {};
      if (!collect::try_again(outcome, attempt, retries)) {
        run_.worst = outcome.code;
        run_.explanations.push_back({outcome.message, true});
        run_.outcomes.emplace_back("nsys", outcome);
        run_.nsys_gated =
            is_gated(plan) && !plan.set_env.contains("NSYS_NVTX_PROFILER_REGISTER_ONLY");
        return {};
      }
      base::warn(outcome.why() + ": trying again");
    }
  }

 private:
  /// nsys records only within a range.
  static bool is_gated(const collect::Plan& plan) {
    return std::any_of(plan.argv.begin(), plan.argv.end(), [](const std::string& word) {
      return word.starts_with("--capture-range=");
    });
  }

  /// One run of nsys, judged by its reports.
  base::Result<collect::Outcome> attempt_run(const collect::Plan& plan, int attempt) {
    const std::string name = attempt == 1 ? "profile" : "profile-" + std::to_string(attempt);
    auto ran = TRY(run_.runner->run(plan, name));
    run_.last = ran.ended;
    // The program's end is ours to pass on; finish() reports a failure.
    if (!run_.asked.native)
      (void)run_.record->ended(ran.ended);
    TRY(run_.worker->go_on_in_child());
    collect::Observed seen = observed(ran, run_.runner->interrupted());
    run_.by_nsys.session.reset();
    const auto reports = this->reports();
    base::Error why;
    if (!reports) {
      why = reports.error();
    } else if (auto exported = export_all(*reports); !exported) {
      why = exported.error();
    } else {
      seen.report = true;
      const auto& session = run_.by_nsys.session;
      seen.results = session ? session->ranges.size() + session->kernels.size() : 0;
    }
    const collect::Outcome outcome = judge(seen, reports, why, is_gated(plan));
    const std::string tool = "nsys " + collect::to_string(can_->version);
    runs::Stage stage = StageRunner::stage_of("nsys", tool, "profile", outcome, ran);
    stage.attempt = attempt;
    stage.results = seen.results;
    if (reports)
      stage.report = reports->front().lexically_relative(run_.folder).string();
    run_.runner->record(std::move(stage));
    if (outcome.result == collect::Result::kOk) {
      run_.captured.emplace_back("nsys");
      run_.cut_short("nsys", ran.ended);
      base::info(outcome.message);
    }
    return outcome;
  }

  /// `why`: why there is no session of reports, if so.
  static collect::Outcome judge(collect::Observed seen,
                                const base::Result<std::vector<fs::path>>& reports,
                                const base::Error& why,
                                bool gated) {
    // nsys 2022.4 of Debian complains of its importer where a .qdstrm is left, which is imported
    // all the same.
    if (reports)
      seen.text =
          base::replace_all(seen.text, "importer binary and its dependencies were not found", "");
    collect::Outcome outcome = collect::judge_nsys(seen);
    const bool has_no_report = !reports && reports.error().code == base::Code::kNothingCaptured;
    if (has_no_report && outcome.why() == "nsys.importer_missing") {
      // nsys 2022.4 of Debian complains of its importer and lists no file where it recorded
      // nothing.
      seen.text = gated ? "No reports were generated" : "";
      outcome = collect::judge_nsys(seen);
    }
    const bool is_unreadable = !why.what.empty() && why.code != base::Code::kNothingCaptured;
    if (outcome.result == collect::Result::kOk || !is_unreadable)
      return outcome;
    outcome.result = collect::Result::kFailed;
    outcome.message = "nsys: " + why.what;
    outcome.code = why.code;
    std::erase_if(outcome.complaints, [](const collect::Complaint& complaint) {
      return complaint.id == "nsys.importer_missing";
    });
    outcome.complaints.insert(outcome.complaints.begin(),
                              {"nsys.report", why.where, why.what, why.hint, false, true});
    return outcome;
  }

  [[nodiscard]] base::Result<collect::Plan> plan_of(const collect::Request& plain) const {
    collect::nsys::Options options = nsys_options(run_.config);
    collect::Request request = plain;
    request.ranges = run_.ranges;
    const auto named = run_.config.text("pipeline.nsys.nvtx_capture");
    base::Result<std::vector<model::RangeTerm>> gate = run_.ranges.include;
    if (named)
      gate = capture_terms(*named);
    if (run_.by_native.session && gate && gate->size() == 1)
      options.registered = analyze::is_registered(*run_.by_native.session, gate->front());
    return collect::nsys::plan(*can_, options, request);
  }
  /// The reports that nsys left, imported where it left only streams. A capture that repeats leaves
  /// one each time.
  base::Result<std::vector<fs::path>> reports() {
    std::vector<fs::path> reports, streams;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(run_.folder / "nsys", ignored)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".nsys-rep" || extension == ".qdrep")
        reports.push_back(entry.path());
      if (extension == ".qdstrm")
        streams.push_back(entry.path());
    }
    std::sort(reports.begin(), reports.end());
    std::sort(streams.begin(), streams.end());
    if (!reports.empty())
      return reports;
    if (streams.empty())
      return base::fail(base::Code::kNothingCaptured, "nsys left no report");
    for (const fs::path& stream : streams) {
      reports.push_back(fs::path(stream).replace_extension(".nsys-rep"));
      TRY(read::nsys_rep::import_stream(can_->path, stream, reports.back()));
      run_.note("nsys left a .qdstrm; imported it with its QdstrmImporter");
    }
    return reports;
  }
  base::Result<void> export_one(const fs::path& report) {
    const fs::path sqlite = fs::path(report).replace_extension(".sqlite");
    auto ran = TRY(
        run_.runner->run(collect::nsys::export_plan(*can_, report, sqlite), "export", {}, true));
    std::error_code ignored;
    if (!fs::exists(sqlite, ignored)) {
      const std::string output(base::trim(ran.text));
      std::string problem = "nsys export left no SQLite file (" + base::describe(ran.ended) + ")";
      if (!output.empty())
        problem += ": " + base::printable(output.substr(0, 300));
      return base::fail(base::Code::kBadData,
                        std::move(problem),
                        report.string(),
                        "See nsys/export.stderr in the run directory.");
    }
    if (auto done = redact_nsys_export(sqlite); !done) {
      fs::remove(sqlite, ignored);
      return base::fail(
          base::Code::kIo,
          "the export's environment could not be redacted, so it was removed: " + done.error().what,
          sqlite.string());
    }
    // nsys's own report holds the same and cannot be changed: only its owner may read it.
    fs::permissions(report, fs::perms::owner_read | fs::perms::owner_write, ignored);
    fs::remove(fs::path(report).replace_extension(".qdstrm"), ignored);
    auto session = TRY(read::read_any(sqlite));
    run_.by_nsys.path = run_.by_nsys.session ? fs::path() : sqlite;
    read::join_to(run_.by_nsys.session, std::move(session));
    return {};
  }
  base::Result<void> export_all(const std::vector<fs::path>& reports) {
    for (const fs::path& report : reports)
      TRY(export_one(report));
    if (reports.size() > 1)
      run_.note("nsys: the capture repeated, and left " + std::to_string(reports.size()) +
                " reports, which are read together");
    // Kernels by name over the whole recording, in the columns of nsys's cuda_gpu_kern_sum.
    std::string csv =
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n";
    analyze::Options everything = run_.args.analysis;
    everything.ranges = {};
    everything.kernels = {};
    if (const auto report = analyze::analyze(*run_.by_nsys.session, everything)) {
      double sum_ns = 0;
      for (const model::KernelRow& kernel : report->kernels)
        sum_ns += std::isfinite(kernel.total_ns) ? kernel.total_ns : 0;
      for (const model::KernelRow& kernel : report->kernels)
        if (const auto& duration_ns = kernel.duration_ns;
            std::isfinite(kernel.total_ns) && sum_ns > 0)
          csv += fmt::format("{:.1f},{:.0f},{},{:.1f},{:.1f},{:.0f},{:.0f},{:.1f},{}\n",
                             100 * kernel.total_ns / sum_ns,
                             kernel.total_ns,
                             kernel.calls,
                             duration_ns.mean,
                             duration_ns.median,
                             duration_ns.min,
                             duration_ns.max,
                             duration_ns.stddev,
                             report::csv_field(kernel.name));
    }
    return base::write_file(run_.folder / "nsys" / "kernels.csv", csv);
  }

  std::optional<collect::Abilities> can_;
};

}  // namespace

std::unique_ptr<Stage> nsys_stage(Run& run) {
  return std::make_unique<Nsys>(run);
}

}  // namespace rangescope::profile
