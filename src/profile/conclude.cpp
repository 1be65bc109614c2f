// What a run comes to: the one place that decides status, message and exit code. The program's own failure goes before
// everything that rangescope has to say; then what kept stages from capturing, what could not be written, and losses.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "collect/nsight/outcome.hpp"
#include "doctor/program/program.hpp"
#include "model/session.hpp"
#include "profile/digests.hpp"
#include "profile/engine.hpp"
#include "profile/jobs.hpp"
#include "runs/compress.hpp"
#include "runs/job/folder.hpp"
#include "runs/manifest.hpp"
#include "runs/retention.hpp"

namespace rangescope::profile {
namespace {

// Why a capture of `profile` is empty or partial: the doctor's program checks over what was recorded, and what the
// tools themselves reported.

using model::Finding;
using model::Grade;

/// The tool only reports that nothing came out; the reason is in the program.
bool says_nothing(const std::string& id) {
  for (const char* one : {"ncu.nothing_matched", "ncu.only_push_pop", "ncu.only_start_end", "ncu.exit_in_range",
                          "nsys.never_started", "ncu.empty", "nsys.empty", "ncu.failed", "nsys.failed"})
    if (id == one) return true;
  return false;
}

/// What went wrong, the decisive cause first; failures and warnings only. `session` null: nothing was recorded.
std::vector<Finding> diagnose_capture(const model::Session* session, const std::vector<std::string>& command,
                                      const model::RangeSelection& ranges, const model::KernelSelection& kernels,
                                      const base::Ended& ended, const std::optional<doctor::FailedCapture>& failed) {
  doctor::ProgramLook look;
  look.command = command;
  look.ended = ended;
  look.cut_short = ended.timed_out || ended.forwarded.has_value();
  look.failed = failed;
  const model::Session none;
  look.facts = doctor::gather(session ? *session : none, ranges, kernels);
  auto findings = doctor::diagnose(look);
  std::erase_if(findings, [](const Finding& finding) {
    return finding.verdict == Grade::kOk || finding.verdict == Grade::kSkip;
  });
  return findings;
}

/// What a tool reported of its own failure, as findings; one without a reason where no message is known.
std::vector<Finding> findings_of(const collect::Outcome& outcome, const std::string& tool) {
  std::vector<Finding> out;
  if (outcome.result == collect::Result::kOk) return out;
  const std::string question = "Why did " + tool + " capture nothing?";
  for (const collect::Complaint& one : outcome.complaints) {
    const Grade verdict = out.empty() ? Grade::kFail : Grade::kWarn;
    out.push_back({one.id, question, verdict, one.explanation, one.cure, {}, one.evidence});  // in the tool's own words
    if (one.id == "ncu.unsupported_api" && !outcome.unsupported_calls.empty())
      out.back().found += ": " + base::join(outcome.unsupported_calls, ", ");
  }
  if (out.empty())
    out.push_back({tool + "." + std::string(collect::result_name(outcome.result)),
                   question,
                   Grade::kFail,
                   outcome.message,
                   "Read its output in the run directory",
                   {},
                   tool + " gave no known reason"});
  return out;
}

/// Both: a tool that knows its reason goes first; one that only reports that nothing matched goes last, behind the
/// reason that was seen in the program.
std::vector<Finding> joined(std::vector<Finding> program, std::vector<Finding> tool) {
  const bool last = tool.empty() || says_nothing(tool.front().id);
  const bool found = std::any_of(program.begin(), program.end(),
                                 [](const Finding& finding) { return finding.verdict == Grade::kFail; });
  auto& first = last && found ? program : tool;
  auto& second = last && found ? tool : program;
  first.insert(first.end(), std::make_move_iterator(second.begin()), std::make_move_iterator(second.end()));
  return std::move(first);
}

int exit_code_of(const base::Ended& ended) {
  return ended.exit_code.value_or(128 + ended.signal.value_or(0));
}

}  // namespace

std::string Engine::explanations(bool found) const {
  std::vector<std::string> texts;
  for (const Explanation& one : explanations_)
    if (found || !one.found) texts.push_back(one.text);
  return base::join(texts, "; ");
}

void Engine::diagnose(const std::vector<std::string>& missing, bool reported) {
  read_again();
  const bool fatal = std::any_of(outcomes_.begin(), outcomes_.end(), [](const auto& one) { return one.second.fatal; });
  if (!native_ && !timeline() && !fatal && !program_failed_ && config_.flag("pipeline.probe", true)) {
    if (args_.native.library.empty())
      if (auto library = collect::native::find_library()) args_.native.library = *library;
    if (!args_.native.library.empty()) {
      base::info("probe run of the program without a profiler, to find out why nothing was captured");
      if (auto ran = native_stage("look"); !ran) base::detail("no probe run: " + ran.error().what);
      program_failed_.reset();  // the look's own failure is a finding, not the run's end
    }
  }
  std::optional<doctor::FailedCapture> failed;
  if (!missing.empty() && missing.back() != "native") failed = doctor::FailedCapture{missing.back(), nsys_gated_};
  model::RangeSelection meant = args_.analysis.ranges;
  if (meant.include.empty())
    if (const auto range = config_.text("pipeline.nsys.nvtx_capture"))
      if (auto gate = model::parse_terms(*range)) meant.include = std::move(*gate);
  const model::Session* seen = timeline();
  std::vector<model::Finding> program;
  if (seen || program_failed_ || native_)
    program = diagnose_capture(seen, config_.list("workload.command"), meant, args_.analysis.kernels,
                               alone_.value_or(base::Ended{.exit_code = 0}), failed);
  std::vector<model::Finding> tools;
  for (const auto& [tool, outcome] : outcomes_)
    for (model::Finding& finding : findings_of(outcome, tool)) tools.push_back(std::move(finding));
  findings_ = joined(std::move(program), std::move(tools));
  if (reported && args_.talk.report && args_.talk.report_tells) return;  // they are printed below the table
  for (const model::Finding& finding : findings_) args_.talk.finding(finding);
}

Engine::Conclusion Engine::conclusion(const std::optional<base::Error>& failure, const base::Result<void>& reported,
                                      const std::vector<std::string>& missing) {
  // What the findings have told, the last line does not tell again.
  const bool told = !findings_.empty() && !args_.talk.quiet;
  std::string rest = explanations(!told);
  if (!rest.empty()) rest = ": " + rest;
  const std::string cure = told || findings_.empty() ? "" : findings_.front().hint;
  const std::string nothing =
      "nothing was captured: " + (explanations_.empty() ? "no stage had results" : explanations(true));

  if (failure) {
    const int own = say(*failure);
    const auto& end = program_failed_ ? program_failed_ : worker_->stopped();
    return {end ? exit_code_of(*end) : own, worker_->stopped() ? "interrupted" : "error", base::to_string(*failure)};
  }
  if (repeated_) return *repeated_;
  if (program_failed_) {
    if (captured_.empty() && native_ && (!findings_.empty() || unopened_)) base::warn("nothing was captured" + rest);
    if (!reported && !captured_.empty()) (void)say(reported.error());
    return {exit_code_of(*program_failed_),
            runner_->interrupted()       ? "interrupted"
            : program_failed_->timed_out ? "timed_out"
                                         : "program_failed",
            explanations(true) + (reported || captured_.empty() ? "" : "; " + base::to_string(reported.error()))};
  }
  if (runner_->interrupted() && (!finished_ || !missing.empty()))
    return {128 + runner_->signal(), "interrupted", "interrupted by " + base::signal_name(runner_->signal())};
  if (captured_.empty())
    // Nobody measured anything: 80, or what prevented it (77 permission, 69 no driver ...).
    return {say({worst_, "nothing was captured" + rest, run_.string(),
                 cure.empty() && !told ? "Look at the logs in the run directory." : cure}),
            "nothing_captured", nothing};
  if (!missing.empty()) {
    // The exit code is 80 when the last word was a tool's empty capture.
    const std::string which = "stage " + base::join(missing, ", ") + " captured nothing";
    base::warn(which + rest + (cure.empty() ? "" : ". " + cure));
    return {base::exit_code(worst_), "partial", which + ": " + explanations(true)};
  }
  if (reported) return {};
  const base::Code code = reported.error().code;
  return {say(reported.error()),
          code == base::Code::kNothingCaptured ? "nothing_captured"
          : code == base::Code::kDataLoss      ? "data_loss"
                                               : "error",
          base::to_string(reported.error())};
}

Done Engine::conclude(const std::optional<base::Error>& failure) {
  if (std::error_code error; !std::filesystem::exists(run_, error) && !error)
    return {.code = say({base::Code::kIo, "the program removed the run directory: nothing is left", run_.string(),
                         "Put it where the program does not delete it: --run-dir DIR"}),
            .end = program_failed_};
  if (auto there = base::still_in_place(run_); !there) {  // nothing is read through a path of others
    const int own = say(there.error());
    (void)record_->finish(program_failed_ ? exit_code_of(*program_failed_) : own, "error",
                          base::to_string(there.error()), {});
    return {.code = own, .end = program_failed_};
  }
  std::vector<std::string> missing;
  for (const std::string& stage : wanted_)
    if (std::find(captured_.begin(), captured_.end(), stage) == captured_.end()) missing.push_back(stage);
  Done done;
  if (!failure || !captured_.empty()) done.directory = run_;
  const bool uncounted = counters_ && native_session_ && native_session_->measurements.empty() &&
                         native_session_->pc.samples.empty() && !ncu_session_;
  Analyzed nothing;
  if (native_session_) nothing.report.losses = native_session_->losses;
  // What `rangescope report` makes of this run, and so the same numbers.
  auto made = failure ? base::Result<Analyzed>(tl::make_unexpected(*failure)) : analyzed();
  if (!failure && !repeated_ && !unopened_ && (!runner_->interrupted() || finished_)) {
    if (!missing.empty() || captured_.empty() || !made || uncounted ||
        !analyze::unmatched(made->report, args_.analysis.ranges).empty())
      diagnose(missing, made.has_value());
  }
  if (uncounted_ && !failure && !repetition_) {
    findings_.push_back(*uncounted_);
    if (!(made && args_.talk.report && args_.talk.report_tells)) args_.talk.finding(*uncounted_);
  }
  base::Result<void> reported = made ? base::Result<void>{} : tl::make_unexpected(made.error());
  if (!made) nothing.report.run = runs::run_info(run_);
  Analyzed& whole = made ? *made : nothing;
  if (!failure)
    if (auto written = write_reports(whole, made.has_value()); !written) reported = std::move(written);
  if (reported) reported = runner_->recorded();
  if (reported && args_.strict && has_loss(whole.report))
    reported =
        base::fail(base::Code::kDataLoss, "data was lost", run_.string(), "Without --strict, losses are only reported");

  concluded_ = conclusion(failure, reported, missing);
  done.code = concluded_.code;
  done.end = program_failed_ ? program_failed_ : worker_->stopped();
  std::vector<model::Loss> losses = whole.report.losses;
  for (const std::string& stage : missing) {
    const bool told = std::any_of(losses.begin(), losses.end(), [&](const model::Loss& loss) {
      return loss.kind == "stage_empty" && loss.detail.starts_with(stage);
    });
    if (told) continue;
    losses.push_back(
        {"stage_empty", 1,
         "stage " + stage + " captured nothing" + (explanations_.empty() ? "" : ": " + explanations(true))});
  }
  if (auto finished = record_->finish(concluded_.code, concluded_.outcome, concluded_.message, losses, findings_);
      !finished) {
    const int why = say(finished.error());
    if (done.code == 0) done.code = why;
  }
  if (!repetition_ && runs::job::reports_together(run_)) show_job(done);
  if (done.code == 0 && !repetition_ && runs::job::job_of(run_).empty()) {
    remove_old_runs();
    compress_old_runs();
  }
  return done;
}

void Engine::show_job(Done& done) const {
  done.directory.clear();
  const auto job = runs::job::claim_report(run_);
  if (!job) return;
  done.directory = job->folder;
  if (!args_.talk.report) return;
  const auto whole = analyze_named({}, {job->folder.string()}, args_.analysis, {}, JobFrom::kAuto);
  const auto shown = whole ? args_.talk.report(*whole) : base::Result<void>(tl::make_unexpected(whole.error()));
  if (!shown && shown.error().code != base::Code::kNothingCaptured) (void)say(shown.error());  // each rank reported it
}

void Engine::remove_old_runs() const {
  const auto keep = config_.integer("run.keep");
  if (!keep) return;
  const runs::Retention retention{.keep = static_cast<std::size_t>(*keep)};
  for (const runs::Candidate& old : runs::prunable(run_.parent_path(), retention, runs::unix_now_ns())) {
    if (old.path == run_) continue;
    if (auto removed = runs::remove_run(old.path); removed) base::detail("run.keep: removed " + old.path.string());
  }
}

void Engine::compress_old_runs() const {
  const auto rule = config_.text("run.compress");
  const auto age = rule ? runs::parse_compress(*rule) : base::Result<std::chrono::seconds>(0);  // checked at the start
  if (!rule || !age) return;
  for (const runs::Candidate& old : runs::prunable(run_.parent_path(), {.older_than = *age}, runs::unix_now_ns())) {
    if (old.path == run_) continue;
    const auto done = runs::compress_run(old.path);
    if (!done)
      base::warn("run.compress: " + base::printable(base::to_string(done.error())));
    else if (done->files > 0)
      base::info("run.compress: " + old.path.string() + ": " + base::counted(done->files, "file") + ", " +
                 base::format_bytes(static_cast<double>(done->bytes)) + " in " +
                 base::format_bytes(static_cast<double>(done->packed_bytes)));
  }
}

}  // namespace rangescope::profile
