// The conclusion of a run: the one place that decides status, message and exit code. The program's
// own failure goes before everything that rangescope has to say; then what kept stages from
// capturing, what could not be written, and losses.
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
#include "profile/jobs.hpp"
#include "profile/stage.hpp"
#include "runs/compress.hpp"
#include "runs/job/folder.hpp"
#include "runs/manifest.hpp"
#include "runs/retention.hpp"

namespace rangescope::profile {
namespace {

// Why a capture of `profile` is empty or partial: the doctor's program checks over what was
// recorded, and what the tools themselves reported.

using model::Finding;
using model::Grade;

/// The tool only reports that nothing came out; the reason is in the program.
bool says_nothing(const std::string& id) {
  for (const char* one : {"ncu.nothing_matched",
                          "ncu.only_push_pop",
                          "ncu.only_start_end",
                          "ncu.exit_in_range",
                          "nsys.never_started",
                          "ncu.empty",
                          "nsys.empty",
                          "ncu.failed",
                          "nsys.failed"})
    if (id == one)
      return true;
  return false;
}

/// What went wrong, the decisive cause first; failures and warnings only. `session` null: nothing
/// was recorded.
std::vector<Finding> diagnose_capture(const model::Session* session,
                                      const std::vector<std::string>& command,
                                      const model::RangeSelection& ranges,
                                      const model::KernelSelection& kernels,
                                      const base::Ended& ended,
                                      const std::optional<doctor::FailedCapture>& failed) {
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

/// What a tool reported of its own failure, as findings; one without a reason where no message is
/// known.
std::vector<Finding> findings_of(const collect::Outcome& outcome, const std::string& tool) {
  std::vector<Finding> out;
  if (outcome.result == collect::Result::kOk)
    return out;
  const std::string question = "Why did " + tool + " capture nothing?";
  for (const collect::Complaint& complaint : outcome.complaints) {
    Finding finding;
    finding.id = complaint.id;
    finding.question = question;
    finding.verdict = out.empty() ? Grade::kFail : Grade::kWarn;
    finding.found = complaint.explanation;
    finding.hint = complaint.cure;
    finding.why = complaint.evidence;  // in the tool's own words
    if (complaint.id == "ncu.unsupported_api" && !outcome.unsupported_calls.empty())
      finding.found += ": " + base::join(outcome.unsupported_calls, ", ");
    out.push_back(std::move(finding));
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

std::vector<Finding> concatenated(std::vector<Finding> first, std::vector<Finding> second) {
  first.insert(
      first.end(), std::make_move_iterator(second.begin()), std::make_move_iterator(second.end()));
  return first;
}

/// Orders findings by how specific they are: a tool's own reason, then what the program showed,
/// then "nothing matched".
std::vector<Finding> ordered_findings(std::vector<Finding> program, std::vector<Finding> tool) {
  const bool tool_has_reason = !tool.empty() && !says_nothing(tool.front().id);
  const bool program_explains =
      std::any_of(program.begin(), program.end(), [](const Finding& finding) {
        return finding.verdict == Grade::kFail;
      });
  if (program_explains && !tool_has_reason)
    return concatenated(std::move(program), std::move(tool));
  return concatenated(std::move(tool), std::move(program));
}

int exit_code_of(const base::Ended& ended) {
  return ended.exit_code.value_or(128 + ended.signal.value_or(0));
}

/// Texts of all explanations, separated by "; ".
std::string joined_explanations(const Run& run) {
  std::vector<std::string> texts;
  for (const Explanation& explanation : run.explanations)
    texts.push_back(explanation.text);
  return base::join(texts, "; ");
}

std::string explanations_without_finding(const Run& run) {
  std::vector<std::string> texts;
  for (const Explanation& explanation : run.explanations)
    if (!explanation.found)
      texts.push_back(explanation.text);
  return base::join(texts, "; ");
}

/// Looks at the program once more where nothing is known of it, and explains why stages captured
/// nothing.
void diagnose(Run& run, const std::vector<std::string>& missing, bool reported) {
  read_again(run);
  const bool fatal = std::any_of(run.outcomes.begin(), run.outcomes.end(), [](const auto& outcome) {
    return outcome.second.fatal;
  });
  if (!run.asked.native && !run.timeline() && !fatal && !run.program_failed &&
      run.config.flag("pipeline.probe", true)) {
    const auto look = look_stage(run, {});
    if (auto ready = look->prepare(); ready && !run.args.native.library.empty()) {
      base::info(
          "probe run of the program without a profiler, to find out why nothing was captured");
      if (auto ran = look->run(); !ran)
        base::detail("no probe run: " + ran.error().what);
      run.program_failed.reset();  // the look's own failure is a finding, not the run's end
    }
  }
  std::optional<doctor::FailedCapture> failed;
  if (!missing.empty() && missing.back() != "native")
    failed = doctor::FailedCapture{missing.back(), run.nsys_gated};
  model::RangeSelection meant = run.args.analysis.ranges;
  if (meant.include.empty())
    if (const auto range = run.config.text("pipeline.nsys.nvtx_capture"))
      if (auto gate = model::parse_terms(*range))
        meant.include = std::move(*gate);
  const model::Session* seen = run.timeline();
  std::vector<model::Finding> program;
  if (seen || run.program_failed || run.asked.native)
    program = diagnose_capture(seen,
                               run.config.list("workload.command"),
                               meant,
                               run.args.analysis.kernels,
                               run.alone.value_or(base::Ended{.exit_code = 0}),
                               failed);
  std::vector<model::Finding> tools;
  for (const auto& [tool, outcome] : run.outcomes)
    for (model::Finding& finding : findings_of(outcome, tool))
      tools.push_back(std::move(finding));
  run.findings = ordered_findings(std::move(program), std::move(tools));
  if (reported && run.args.talk.report && run.args.talk.report_shows_findings)
    return;  // they are printed below the table
  for (const model::Finding& finding : run.findings)
    run.args.talk.finding(finding);
}

Conclusion conclusion_of_error(const Run& run, const base::Error& error) {
  const int code = say(error);
  const auto& end = run.bad_end();
  const char* outcome = run.worker->stopped() ? "interrupted" : "error";
  return {end ? exit_code_of(*end) : code, outcome, base::to_string(error)};
}

/// The program's own exit code, whatever was captured.
Conclusion conclusion_of_failed_program(const Run& run, const base::Result<void>& reported) {
  const char* outcome = "program_failed";
  if (run.program_failed->timed_out)
    outcome = "timed_out";
  if (run.runner->interrupted())
    outcome = "interrupted";
  std::string message = joined_explanations(run);
  if (!reported && !run.captured.empty()) {
    (void)say(reported.error());
    message += "; " + base::to_string(reported.error());
  }
  return {exit_code_of(*run.program_failed), outcome, message};
}

Conclusion conclusion_of_report(const base::Result<void>& reported) {
  if (reported)
    return {};
  const char* outcome = "error";
  if (reported.error().code == base::Code::kNothingCaptured)
    outcome = "nothing_captured";
  if (reported.error().code == base::Code::kDataLoss)
    outcome = "data_loss";
  return {say(reported.error()), outcome, base::to_string(reported.error())};
}

Conclusion conclusion(const Run& run,
                      const std::optional<base::Error>& failure,
                      const base::Result<void>& reported,
                      const std::vector<std::string>& missing) {
  if (failure)
    return conclusion_of_error(run, *failure);
  if (run.repeated)
    return *run.repeated;
  // The last line does not repeat what findings said.
  const bool shows_findings = !run.findings.empty() && !run.args.talk.quiet;
  std::string reason =
      shows_findings ? explanations_without_finding(run) : joined_explanations(run);
  if (!reason.empty())
    reason = ": " + reason;
  if (run.program_failed) {
    const bool is_unexplained = run.findings.empty() && !run.unopened;
    if (run.captured.empty() && run.asked.native && !is_unexplained)
      base::warn("nothing was captured" + reason);
    return conclusion_of_failed_program(run, reported);
  }
  if (run.runner->interrupted() && (!run.finished || !missing.empty()))
    return {128 + run.runner->signal(),
            "interrupted",
            "interrupted by " + base::signal_name(run.runner->signal())};
  std::string cure;
  if (!shows_findings && !run.findings.empty())
    cure = run.findings.front().hint;
  if (run.captured.empty()) {
    // No stage measured anything: 80, or what prevented it (77 permission, 69 no driver ...).
    if (cure.empty() && !shows_findings)
      cure = "Look at the logs in the run directory.";
    const std::string message =
        run.explanations.empty() ? "no stage had results" : joined_explanations(run);
    return {say({run.worst, "nothing was captured" + reason, run.folder.string(), cure}),
            "nothing_captured",
            "nothing was captured: " + message};
  }
  if (!missing.empty()) {
    // The exit code is 80 when the last word was a tool's empty capture.
    const std::string empty_stages = "stage " + base::join(missing, ", ") + " captured nothing";
    std::string warning = empty_stages + reason;
    if (!cure.empty())
      warning += ". " + cure;
    base::warn(warning);
    return {base::exit_code(run.worst), "partial", empty_stages + ": " + joined_explanations(run)};
  }
  return conclusion_of_report(reported);
}

/// Of a rank's job, by the last one to finish.
void show_job(const Run& run, Done& done) {
  done.directory.clear();
  const auto job = runs::job::claim_report(run.folder);
  if (!job)
    return;
  done.directory = job->folder;
  if (!run.args.talk.report)
    return;
  const auto analyzed =
      analyze_named({}, {job->folder.string()}, run.args.analysis, {}, JobFrom::kAuto);
  auto shown = base::Result<void>{};
  if (analyzed)
    shown = run.args.talk.report(*analyzed);
  else
    shown = tl::make_unexpected(analyzed.error());
  if (!shown && shown.error().code != base::Code::kNothingCaptured)
    (void)say(shown.error());  // each rank reported it
}

void remove_old_runs(const Run& run) {
  const auto keep = run.config.integer("run.keep");
  if (!keep)
    return;
  const runs::Retention retention{.keep = static_cast<std::size_t>(*keep)};
  for (const runs::Candidate& old :
       runs::prunable(run.folder.parent_path(), retention, runs::unix_now_ns())) {
    if (old.path == run.folder)
      continue;
    if (auto removed = runs::remove_run(old.path); removed)
      base::detail("run.keep: removed " + old.path.string());
  }
}

void compress_old_runs(const Run& run) {
  const auto rule = run.config.text("run.compress");
  if (!rule)
    return;
  const auto age = runs::parse_compress(*rule);  // checked at the start
  if (!age)
    return;
  for (const runs::Candidate& old :
       runs::prunable(run.folder.parent_path(), {.older_than = *age}, runs::unix_now_ns())) {
    if (old.path == run.folder)
      continue;
    const auto done = runs::compress_run(old.path);
    if (!done)
      base::warn("run.compress: " + base::printable(base::to_string(done.error())));
    else if (done->files > 0)
      base::info("run.compress: " + old.path.string() + ": " + base::counted(done->files, "file") +
                 ", " + base::format_bytes(static_cast<double>(done->bytes)) + " in " +
                 base::format_bytes(static_cast<double>(done->packed_bytes)));
  }
}

}  // namespace

static std::vector<std::string> stages_without_capture(const Run& run) {
  std::vector<std::string> missing;
  for (const std::string& stage : run.wanted)
    if (std::find(run.captured.begin(), run.captured.end(), stage) == run.captured.end())
      missing.push_back(stage);
  return missing;
}

/// Counters were asked for, and nothing has any.
static bool lacks_counters(const Run& run) {
  if (!run.counters || !run.by_native.session || run.by_ncu.session)
    return false;
  return run.by_native.session->measurements.empty() && run.by_native.session->pc.samples.empty();
}

/// Whether the user should learn why something is missing. `analyzed`: nullptr where the analysis
/// failed.
static bool needs_diagnosis(const Run& run,
                            const std::vector<std::string>& missing,
                            const Analyzed* analyzed) {
  if (!missing.empty() || run.captured.empty() || analyzed == nullptr)
    return true;
  return !analyze::unmatched(analyzed->report, run.args.analysis.ranges).empty();
}

/// The losses of the report, and the stages that captured nothing.
static std::vector<model::Loss> losses_of_run(const Run& run,
                                              const model::Report& report,
                                              const std::vector<std::string>& missing) {
  std::vector<model::Loss> losses = report.losses;
  for (const std::string& stage : missing) {
    const bool is_listed = std::any_of(losses.begin(), losses.end(), [&](const model::Loss& loss) {
      return loss.kind == "stage_empty" && loss.detail.starts_with(stage);
    });
    if (is_listed)
      continue;
    std::string detail = "stage " + stage + " captured nothing";
    if (!run.explanations.empty())
      detail += ": " + joined_explanations(run);
    losses.push_back({"stage_empty", 1, std::move(detail)});
  }
  return losses;
}

/// Where the folder of the run is gone, or is not ours any more: nothing is read through a path of
/// others.
static std::optional<Done> conclude_without_folder(Run& run) {
  if (std::error_code error; !std::filesystem::exists(run.folder, error) && !error)
    return Done{.code = say({base::Code::kIo,
                             "the program removed the run directory: nothing is left",
                             run.folder.string(),
                             "Put it where the program does not delete it: --run-dir DIR"}),
                .end = run.program_failed};
  if (auto in_place = base::still_in_place(run.folder); !in_place) {
    const int code = say(in_place.error());
    const int exit_code = run.program_failed ? exit_code_of(*run.program_failed) : code;
    (void)run.record->finish(exit_code, "error", base::to_string(in_place.error()), {});
    return Done{.code = code, .end = run.program_failed};
  }
  return std::nullopt;
}

/// Shows why there are no counters, unless the report does.
static void show_uncounted(Run& run, bool is_analyzed) {
  if (!run.uncounted || run.repetition)
    return;
  run.findings.push_back(*run.uncounted);
  const Talk& talk = run.args.talk;
  const bool report_shows_it = is_analyzed && talk.report && talk.report_shows_findings;
  if (!report_shows_it)
    talk.finding(*run.uncounted);
}

/// Writes the reports and checks what they hold; `shown` is empty where the analysis failed.
static base::Result<void> finish_reports(Run& run,
                                         const base::Result<void>& analysis,
                                         bool is_failed_run,
                                         Analyzed& shown) {
  base::Result<void> reported = analysis;
  if (!is_failed_run)
    if (auto written = write_reports(run, shown, analysis.has_value()); !written)
      reported = std::move(written);
  if (reported)
    reported = run.runner->recorded();
  if (reported && run.args.strict && has_loss(shown.report))
    reported = base::fail(base::Code::kDataLoss,
                          "data was lost",
                          run.folder.string(),
                          "Without --strict, losses are only reported");
  return reported;
}

Done conclude(Run& run, const std::optional<base::Error>& failure) {
  if (auto done = conclude_without_folder(run))
    return *std::move(done);
  const std::vector<std::string> missing = stages_without_capture(run);
  Done done;
  if (!failure || !run.captured.empty())
    done.directory = run.folder;
  const bool is_uncounted = lacks_counters(run);
  Analyzed nothing;
  if (run.by_native.session)
    nothing.report.losses = run.by_native.session->losses;
  // What `rangescope report` makes of this run, and so the same numbers.
  auto analyzed =
      failure ? base::Result<Analyzed>(tl::make_unexpected(*failure)) : analyze_run(run);
  const bool is_finished = !run.runner->interrupted() || run.finished;
  const bool may_be_diagnosed = !failure && !run.repeated && !run.unopened && is_finished;
  if (may_be_diagnosed &&
      (is_uncounted || needs_diagnosis(run, missing, analyzed ? &*analyzed : nullptr)))
    diagnose(run, missing, analyzed.has_value());
  if (!failure)
    show_uncounted(run, analyzed.has_value());
  base::Result<void> analysis;
  if (!analyzed) {
    analysis = tl::make_unexpected(analyzed.error());
    nothing.report.run = runs::run_info(run.folder);
  }
  Analyzed& shown = analyzed ? *analyzed : nothing;
  const base::Result<void> reported = finish_reports(run, analysis, failure.has_value(), shown);

  run.concluded = conclusion(run, failure, reported, missing);
  done.code = run.concluded.code;
  done.end = run.bad_end();
  const auto finished = run.record->finish(run.concluded.code,
                                           run.concluded.outcome,
                                           run.concluded.message,
                                           losses_of_run(run, shown.report, missing),
                                           run.findings);
  if (!finished) {
    const int code = say(finished.error());
    if (done.code == 0)
      done.code = code;
  }
  if (!run.repetition && runs::job::reports_together(run.folder))
    show_job(run, done);
  if (done.code == 0 && !run.repetition && runs::job::job_of(run.folder).empty()) {
    remove_old_runs(run);
    compress_old_runs(run);
  }
  return done;
}

}  // namespace rangescope::profile
