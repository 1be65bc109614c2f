// What a run comes to: the one place that decides status, message and exit code. The program's own
// failure goes before everything that rangescope has to say; then what kept stages from capturing,
// what could not be written, and losses.
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
  for (const char* one :
       {"ncu.nothing_matched", "ncu.only_push_pop", "ncu.only_start_end", "ncu.exit_in_range",
        "nsys.never_started", "ncu.empty", "nsys.empty", "ncu.failed", "nsys.failed"})
    if (id == one) return true;
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
  if (outcome.result == collect::Result::kOk) return out;
  const std::string question = "Why did " + tool + " capture nothing?";
  for (const collect::Complaint& one : outcome.complaints) {
    const Grade verdict = out.empty() ? Grade::kFail : Grade::kWarn;
    out.push_back(
        {one.id, question, verdict, one.explanation, one.cure, {}, one.evidence});  // in the tool's
                                                                                    // own words
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

/// Both: a tool that knows its reason goes first; one that only reports that nothing matched goes
/// last, behind the reason that was seen in the program.
std::vector<Finding> joined(std::vector<Finding> program, std::vector<Finding> tool) {
  const bool last = tool.empty() || says_nothing(tool.front().id);
  const bool found = std::any_of(program.begin(), program.end(), [](const Finding& finding) {
    return finding.verdict == Grade::kFail;
  });
  auto& first = last && found ? program : tool;
  auto& second = last && found ? tool : program;
  first.insert(first.end(), std::make_move_iterator(second.begin()),
               std::make_move_iterator(second.end()));
  return std::move(first);
}

int exit_code_of(const base::Ended& ended) {
  return ended.exit_code.value_or(128 + ended.signal.value_or(0));
}

/// Joined; `found`: those too that a finding tells.
std::string explanations(const Run& run, bool found) {
  std::vector<std::string> texts;
  for (const Explanation& one : run.explanations)
    if (found || !one.found) texts.push_back(one.text);
  return base::join(texts, "; ");
}

/// Looks at the program once more where nothing is known of it, and explains why stages captured
/// nothing.
void diagnose(Run& run, const std::vector<std::string>& missing, bool reported) {
  read_again(run);
  const bool fatal = std::any_of(run.outcomes.begin(), run.outcomes.end(),
                                 [](const auto& one) { return one.second.fatal; });
  if (!run.asked.native && !run.timeline() && !fatal && !run.program_failed &&
      run.config.flag("pipeline.probe", true)) {
    const auto look = look_stage(run, {});
    if (auto ready = look->prepare(); ready && !run.args.native.library.empty()) {
      base::info(
          "probe run of the program without a profiler, to find out why nothing was captured");
      if (auto ran = look->run(); !ran) base::detail("no probe run: " + ran.error().what);
      run.program_failed.reset();  // the look's own failure is a finding, not the run's end
    }
  }
  std::optional<doctor::FailedCapture> failed;
  if (!missing.empty() && missing.back() != "native")
    failed = doctor::FailedCapture{missing.back(), run.nsys_gated};
  model::RangeSelection meant = run.args.analysis.ranges;
  if (meant.include.empty())
    if (const auto range = run.config.text("pipeline.nsys.nvtx_capture"))
      if (auto gate = model::parse_terms(*range)) meant.include = std::move(*gate);
  const model::Session* seen = run.timeline();
  std::vector<model::Finding> program;
  if (seen || run.program_failed || run.asked.native)
    program = diagnose_capture(seen, run.config.list("workload.command"), meant,
                               run.args.analysis.kernels,
                               run.alone.value_or(base::Ended{.exit_code = 0}), failed);
  std::vector<model::Finding> tools;
  for (const auto& [tool, outcome] : run.outcomes)
    for (model::Finding& finding : findings_of(outcome, tool)) tools.push_back(std::move(finding));
  run.findings = joined(std::move(program), std::move(tools));
  if (reported && run.args.talk.report && run.args.talk.report_tells)
    return;  // they are printed below the table
  for (const model::Finding& finding : run.findings) run.args.talk.finding(finding);
}

Conclusion conclusion(const Run& run, const std::optional<base::Error>& failure,
                      const base::Result<void>& reported, const std::vector<std::string>& missing) {
  // What the findings have told, the last line does not tell again.
  const bool told = !run.findings.empty() && !run.args.talk.quiet;
  std::string rest = explanations(run, !told);
  if (!rest.empty()) rest = ": " + rest;
  const std::string cure = told || run.findings.empty() ? "" : run.findings.front().hint;
  const std::string nothing =
      "nothing was captured: " +
      (run.explanations.empty() ? "no stage had results" : explanations(run, true));

  if (failure) {
    const int own = say(*failure);
    const auto& end = run.program_failed ? run.program_failed : run.worker->stopped();
    return {end ? exit_code_of(*end) : own, run.worker->stopped() ? "interrupted" : "error",
            base::to_string(*failure)};
  }
  if (run.repeated) return *run.repeated;
  if (run.program_failed) {
    if (run.captured.empty() && run.asked.native && (!run.findings.empty() || run.unopened))
      base::warn("nothing was captured" + rest);
    if (!reported && !run.captured.empty()) (void)say(reported.error());
    return {exit_code_of(*run.program_failed),
            run.runner->interrupted()       ? "interrupted"
            : run.program_failed->timed_out ? "timed_out"
                                            : "program_failed",
            explanations(run, true) +
                (reported || run.captured.empty() ? "" : "; " + base::to_string(reported.error()))};
  }
  if (run.runner->interrupted() && (!run.finished || !missing.empty()))
    return {128 + run.runner->signal(), "interrupted",
            "interrupted by " + base::signal_name(run.runner->signal())};
  if (run.captured.empty())
    // Nobody measured anything: 80, or what prevented it (77 permission, 69 no driver ...).
    return {say({run.worst, "nothing was captured" + rest, run.folder.string(),
                 cure.empty() && !told ? "Look at the logs in the run directory." : cure}),
            "nothing_captured", nothing};
  if (!missing.empty()) {
    // The exit code is 80 when the last word was a tool's empty capture.
    const std::string which = "stage " + base::join(missing, ", ") + " captured nothing";
    base::warn(which + rest + (cure.empty() ? "" : ". " + cure));
    return {base::exit_code(run.worst), "partial", which + ": " + explanations(run, true)};
  }
  if (reported) return {};
  const base::Code code = reported.error().code;
  return {say(reported.error()),
          code == base::Code::kNothingCaptured ? "nothing_captured"
          : code == base::Code::kDataLoss      ? "data_loss"
                                               : "error",
          base::to_string(reported.error())};
}

/// Of a rank's job, by the last one to finish.
void show_job(const Run& run, Done& done) {
  done.directory.clear();
  const auto job = runs::job::claim_report(run.folder);
  if (!job) return;
  done.directory = job->folder;
  if (!run.args.talk.report) return;
  const auto whole =
      analyze_named({}, {job->folder.string()}, run.args.analysis, {}, JobFrom::kAuto);
  const auto shown =
      whole ? run.args.talk.report(*whole) : base::Result<void>(tl::make_unexpected(whole.error()));
  if (!shown && shown.error().code != base::Code::kNothingCaptured)
    (void)say(shown.error());  // each rank reported it
}

void remove_old_runs(const Run& run) {
  const auto keep = run.config.integer("run.keep");
  if (!keep) return;
  const runs::Retention retention{.keep = static_cast<std::size_t>(*keep)};
  for (const runs::Candidate& old :
       runs::prunable(run.folder.parent_path(), retention, runs::unix_now_ns())) {
    if (old.path == run.folder) continue;
    if (auto removed = runs::remove_run(old.path); removed)
      base::detail("run.keep: removed " + old.path.string());
  }
}

void compress_old_runs(const Run& run) {
  const auto rule = run.config.text("run.compress");
  const auto age = rule ? runs::parse_compress(*rule)
                        : base::Result<std::chrono::seconds>(0);  // checked at the start
  if (!rule || !age) return;
  for (const runs::Candidate& old :
       runs::prunable(run.folder.parent_path(), {.older_than = *age}, runs::unix_now_ns())) {
    if (old.path == run.folder) continue;
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

Done conclude(Run& run, const std::optional<base::Error>& failure) {
  if (std::error_code error; !std::filesystem::exists(run.folder, error) && !error)
    return {.code = say({base::Code::kIo, "the program removed the run directory: nothing is left",
                         run.folder.string(),
                         "Put it where the program does not delete it: --run-dir DIR"}),
            .end = run.program_failed};
  if (auto there = base::still_in_place(run.folder);
      !there) {  // nothing is read through a path of others
    const int own = say(there.error());
    (void)run.record->finish(run.program_failed ? exit_code_of(*run.program_failed) : own, "error",
                             base::to_string(there.error()), {});
    return {.code = own, .end = run.program_failed};
  }
  std::vector<std::string> missing;
  for (const std::string& stage : run.wanted)
    if (std::find(run.captured.begin(), run.captured.end(), stage) == run.captured.end())
      missing.push_back(stage);
  Done done;
  if (!failure || !run.captured.empty()) done.directory = run.folder;
  const bool uncounted = run.counters && run.by_native.session &&
                         run.by_native.session->measurements.empty() &&
                         run.by_native.session->pc.samples.empty() && !run.by_ncu.session;
  Analyzed nothing;
  if (run.by_native.session) nothing.report.losses = run.by_native.session->losses;
  // What `rangescope report` makes of this run, and so the same numbers.
  auto made = failure ? base::Result<Analyzed>(tl::make_unexpected(*failure)) : analyze_run(run);
  if (!failure && !run.repeated && !run.unopened && (!run.runner->interrupted() || run.finished)) {
    if (!missing.empty() || run.captured.empty() || !made || uncounted ||
        !analyze::unmatched(made->report, run.args.analysis.ranges).empty())
      diagnose(run, missing, made.has_value());
  }
  if (run.uncounted && !failure && !run.repetition) {
    run.findings.push_back(*run.uncounted);
    if (!(made && run.args.talk.report && run.args.talk.report_tells))
      run.args.talk.finding(*run.uncounted);
  }
  base::Result<void> reported = made ? base::Result<void>{} : tl::make_unexpected(made.error());
  if (!made) nothing.report.run = runs::run_info(run.folder);
  Analyzed& whole = made ? *made : nothing;
  if (!failure)
    if (auto written = write_reports(run, whole, made.has_value()); !written)
      reported = std::move(written);
  if (reported) reported = run.runner->recorded();
  if (reported && run.args.strict && has_loss(whole.report))
    reported = base::fail(base::Code::kDataLoss, "data was lost", run.folder.string(),
                          "Without --strict, losses are only reported");

  run.concluded = conclusion(run, failure, reported, missing);
  done.code = run.concluded.code;
  done.end = run.program_failed ? run.program_failed : run.worker->stopped();
  std::vector<model::Loss> losses = whole.report.losses;
  for (const std::string& stage : missing) {
    const bool told = std::any_of(losses.begin(), losses.end(), [&](const model::Loss& loss) {
      return loss.kind == "stage_empty" && loss.detail.starts_with(stage);
    });
    if (told) continue;
    losses.push_back({"stage_empty", 1,
                      "stage " + stage + " captured nothing" +
                          (run.explanations.empty() ? "" : ": " + explanations(run, true))});
  }
  if (auto finished = run.record->finish(run.concluded.code, run.concluded.outcome,
                                         run.concluded.message, losses, run.findings);
      !finished) {
    const int why = say(finished.error());
    if (done.code == 0) done.code = why;
  }
  if (!run.repetition && runs::job::reports_together(run.folder)) show_job(run, done);
  if (done.code == 0 && !run.repetition && runs::job::job_of(run.folder).empty()) {
    remove_old_runs(run);
    compress_old_runs(run);
  }
  return done;
}

}  // namespace rangescope::profile
