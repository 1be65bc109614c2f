#include <gtest/gtest.h>

#include <csignal>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"
#include "profile/composed_test.hpp"
#include "profile/stage.hpp"
#include "runs/layout.hpp"
#include "runs/status.hpp"

namespace rangescope::profile {
namespace conclude_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A run whose stages have had their turn, in a folder of its own. Tests say what they left.
class Conclude : public testing::Test {
 protected:
  void begin(const Words& assignments = {}, Settings settings = {}) {
    Words words{"pipeline.probe=false", "workload.command=[app]"};
    words.insert(words.end(), assignments.begin(), assignments.end());
    config_ = composed(words);
    settings.talk.report = [this](const Analyzed& analyzed) -> base::Result<void> {
      shown_.push_back(analyzed.report.run.id);
      return {};
    };
    settings.talk.finding = [this](const model::Finding& finding) {
      findings_.push_back(finding.id);
    };
    run_.emplace(config_, std::move(settings));
    run_->worker = std::make_shared<Worker>();
    auto record = RunRecord::begin(root_.path() / "runs", {"app"}, {});
    ASSERT_TRUE(record);
    run_->record.emplace(std::move(*record));
    run_->folder = run_->record->path();
    run_->runner.emplace(run_->folder);
    run_->finished = true;
  }

  /// A stage of ncu with results of one kernel.
  void capture_of_ncu() {
    fs::create_directories(run_->folder / "ncu");
    fs::copy_file(fs::path(base::source_dir) / "tests/golden/ncu/k_nested.ncu-repz",
                  run_->folder / "ncu" / "ncu.ncu-repz");
    run_->wanted.emplace_back("ncu");
    run_->captured.emplace_back("ncu");
  }

  /// A stage that captured nothing, and what its tool said.
  void nothing_of(const std::string& tool, const std::string& complaint, base::Code code) {
    collect::Outcome outcome{.result = collect::Result::kFailed,
                             .complaints = {{complaint, "==ERROR== busy", "It is busy", "Wait"}},
                             .message = tool + ": it is busy",
                             .code = code};
    run_->wanted.push_back(tool);
    run_->worst = code;
    run_->explanations.push_back({outcome.message, true});
    run_->outcomes.emplace_back(tool, std::move(outcome));
  }

  /// The program, or a tool with it, ended by Ctrl-C.
  void interrupt() {
    const collect::Plan plan{
        .collector = "ncu", .argv = {"sh", "-c", "kill -INT $$"}, .cwd = root_.path()};
    ASSERT_TRUE(run_->runner->run(plan, "ncu", {}, true));
    ASSERT_EQ(run_->runner->signal(), SIGINT);
  }

  Done end(const std::optional<base::Error>& failure = {}) {
    testing::internal::CaptureStderr();
    Done done = conclude(*run_, failure);
    stderr_ = testing::internal::GetCapturedStderr();
    return done;
  }

  [[nodiscard]] runs::Status status() const {
    const auto status = runs::read_status(run_->folder);
    EXPECT_TRUE(status);
    return status.value_or(runs::Status{});
  }

  base::TemporaryFolder root_{"rangescope-conclude"};
  config::Config config_;
  std::optional<profile::Run> run_;
  Words shown_, findings_;
  std::string stderr_;
};

TEST_F(Conclude, ResultsAreShownAndTheRunIsFine) {
  begin();
  capture_of_ncu();
  const Done done = end();
  EXPECT_EQ(done.code, 0);
  EXPECT_FALSE(done.end);
  EXPECT_EQ(done.directory, run_->folder);
  EXPECT_EQ(status().outcome, "ok");
  EXPECT_EQ(shown_, Words{run_->folder.filename().string()});
  EXPECT_TRUE(findings_.empty());
}

TEST_F(Conclude, AnErrorBeforeAnyResultLeavesNoFolderToReport) {
  begin();
  const Done done = end(base::Error{base::Code::kPermission, "it may not be run", "app", {}});
  EXPECT_EQ(done.code, 77);
  EXPECT_EQ(done.directory, "");
  EXPECT_EQ(status().outcome, "error");
  EXPECT_EQ(status().message, "app: it may not be run");
  EXPECT_TRUE(shown_.empty());
}

TEST_F(Conclude, AnErrorAfterResultsKeepsThem) {
  begin();
  capture_of_ncu();
  const Done done = end(base::Error{base::Code::kIo, "the disk is full", {}, {}});
  EXPECT_EQ(done.code, 74);
  EXPECT_EQ(done.directory, run_->folder);
  EXPECT_EQ(status().outcome, "error");
}

TEST_F(Conclude, TheProgramsOwnFailureGoesBeforeOurs) {
  begin();
  run_->program_failed = base::Ended{.exit_code = 3};
  const Done done = end(base::Error{base::Code::kIo, "the disk is full", {}, {}});
  EXPECT_EQ(done.code, 3);
  ASSERT_TRUE(done.end);
  EXPECT_EQ(done.end->exit_code, 3);
  EXPECT_EQ(status().exit_code, 3);
  EXPECT_EQ(status().outcome, "error");
}

TEST_F(Conclude, AProgramThatDiedEndsTheRunByItsSignal) {
  begin();
  run_->program_failed = base::Ended{.signal = SIGSEGV};
  run_->explanations.push_back({"the program ended by SIGSEGV (11)", true});
  const Done done = end();
  EXPECT_EQ(done.code, 128 + SIGSEGV);
  EXPECT_EQ(status().outcome, "program_failed");
  EXPECT_EQ(status().message, "the program ended by SIGSEGV (11)");
}

TEST_F(Conclude, OurTimeLimitIsNoFailureOfTheProgram) {
  begin();
  run_->program_failed = base::Ended{.signal = SIGTERM, .timed_out = true};
  EXPECT_EQ(end().code, 128 + SIGTERM);
  EXPECT_EQ(status().outcome, "timed_out");
}

TEST_F(Conclude, ResultsOfAProgramThatFailedAreShownAllTheSame) {
  begin();
  capture_of_ncu();
  run_->program_failed = base::Ended{.exit_code = 7};
  const Done done = end();
  EXPECT_EQ(done.code, 7);
  EXPECT_EQ(status().outcome, "program_failed");
  EXPECT_EQ(shown_.size(), 1u);
}

TEST_F(Conclude, WhatPreventedResultsIsTheExitCode) {
  begin();
  nothing_of("ncu", "ncu.permission", base::Code::kPermission);
  EXPECT_EQ(end().code, 77);
  EXPECT_EQ(status().outcome, "nothing_captured");
  EXPECT_EQ(status().message, "nothing was captured: ncu: it is busy");
  EXPECT_EQ(findings_, Words{"ncu.permission"});
  EXPECT_TRUE(shown_.empty());
  // The finding said why; the last line does not repeat it.
  EXPECT_EQ(stderr_.find("it is busy"), std::string::npos) << stderr_;
}

TEST_F(Conclude, AQuietRunHasTheReasonAndTheCureInItsLastLine) {
  Settings settings;
  settings.talk.quiet = true;
  begin({}, std::move(settings));
  nothing_of("ncu", "ncu.busy", base::Code::kNothingCaptured);
  EXPECT_EQ(end().code, 80);
  EXPECT_NE(stderr_.find("nothing was captured: ncu: it is busy"), std::string::npos) << stderr_;
  EXPECT_NE(stderr_.find("hint: Wait"), std::string::npos) << stderr_;
}

TEST_F(Conclude, WithoutAnyReasonTheLogsAreNamed) {
  begin();
  run_->wanted.emplace_back("ncu");
  EXPECT_EQ(end().code, 80);
  EXPECT_EQ(status().message, "nothing was captured: no stage had results");
  EXPECT_NE(stderr_.find("hint: Look at the logs in the run directory."), std::string::npos);
}

TEST_F(Conclude, AStageWithoutResultsBesideOneWithThemIsPartial) {
  begin();
  capture_of_ncu();
  nothing_of("nsys", "nsys.busy", base::Code::kToolMissing);
  const Done done = end();
  EXPECT_EQ(done.code, 69);
  EXPECT_EQ(status().outcome, "partial");
  EXPECT_EQ(status().message, "stage nsys captured nothing: nsys: it is busy");
  ASSERT_EQ(status().losses.size(), 1u);
  EXPECT_EQ(status().losses[0].kind.id(), "stage_empty");
  EXPECT_EQ(status().losses[0].detail, "stage nsys captured nothing: nsys: it is busy");
  EXPECT_EQ(shown_.size(), 1u);
  EXPECT_EQ(findings_, Words{"nsys.busy"});
}

TEST_F(Conclude, FindingsThatTheReportShowsAreNotShownTwice) {
  Settings settings;
  settings.talk.report_shows_findings = true;
  begin({}, std::move(settings));
  capture_of_ncu();
  nothing_of("nsys", "nsys.busy", base::Code::kNothingCaptured);
  (void)end();
  EXPECT_TRUE(findings_.empty());
  ASSERT_EQ(status().findings.size(), 1u);
  EXPECT_EQ(status().findings[0].id, "nsys.busy");
}

TEST_F(Conclude, AToolWithoutAKnownReasonHasAFindingAllTheSame) {
  begin();
  run_->wanted.emplace_back("nsys");
  run_->outcomes.emplace_back(
      "nsys",
      collect::Outcome{.result = collect::Result::kEmpty, .message = "nsys: nothing was recorded"});
  (void)end();
  ASSERT_EQ(status().findings.size(), 1u);
  const model::Finding finding = status().findings[0];
  EXPECT_EQ(finding.id, "nsys.empty");
  EXPECT_EQ(finding.verdict, model::Grade::kFail);
  EXPECT_EQ(finding.found, "nsys: nothing was recorded");
}

TEST_F(Conclude, CallsThatNcuRefusesAreNamed) {
  begin();
  nothing_of("ncu", "ncu.unsupported_api", base::Code::kNothingCaptured);
  run_->outcomes.front().second.unsupported_calls = {"cuMemAllocAsync", "cuGraphLaunch"};
  (void)end();
  ASSERT_EQ(status().findings.size(), 1u);
  EXPECT_EQ(status().findings[0].found, "It is busy: cuMemAllocAsync, cuGraphLaunch");
}

TEST_F(Conclude, OnlyTheFirstComplaintOfAToolIsAFailure) {
  begin();
  nothing_of("ncu", "ncu.busy", base::Code::kNothingCaptured);
  run_->outcomes.front().second.complaints.push_back({"ncu.other", "", "And so on", ""});
  (void)end();
  ASSERT_EQ(status().findings.size(), 2u);
  EXPECT_EQ(status().findings[0].verdict, model::Grade::kFail);
  EXPECT_EQ(status().findings[1].verdict, model::Grade::kWarn);
}

TEST_F(Conclude, AProgramThatFailedExplainsWhyNothingMatched) {
  begin();
  nothing_of("ncu", "ncu.nothing_matched", base::Code::kNothingCaptured);
  run_->program_failed = run_->alone = base::Ended{.exit_code = 1};
  (void)end();
  ASSERT_GE(status().findings.size(), 2u);
  EXPECT_TRUE(status().findings.front().id.starts_with("program.")) << status().findings[0].id;
  EXPECT_EQ(status().findings.back().id, "ncu.nothing_matched");
}

TEST_F(Conclude, AToolsOwnReasonGoesBeforeTheProgram) {
  begin();
  nothing_of("ncu", "ncu.permission", base::Code::kPermission);
  run_->program_failed = run_->alone = base::Ended{.exit_code = 1};
  (void)end();
  ASSERT_GE(status().findings.size(), 2u);
  EXPECT_EQ(status().findings.front().id, "ncu.permission");
}

TEST_F(Conclude, LossesFailAStrictRunOnly) {
  begin();
  capture_of_ncu();
  run_->cut.push_back({"timed_out", 1, "the time limit ended stage ncu"});
  EXPECT_EQ(end().code, 0);
  EXPECT_EQ(status().outcome, "ok");
  Settings strict;
  strict.strict = true;
  begin({}, std::move(strict));
  capture_of_ncu();
  run_->cut.push_back({"timed_out", 1, "the time limit ended stage ncu"});
  EXPECT_EQ(end().code, 83);
  EXPECT_EQ(status().outcome, "data_loss");
  EXPECT_EQ(shown_.size(), 2u);
}

TEST_F(Conclude, AReportThatCannotBeShownIsAnError) {
  begin();
  capture_of_ncu();
  run_->args.talk.report = [](const Analyzed&) -> base::Result<void> {
    return base::fail(base::Code::kIo, "the pipe is closed");
  };
  EXPECT_EQ(end().code, 74);
  EXPECT_EQ(status().outcome, "error");
  EXPECT_EQ(status().message, "the pipe is closed");
}

TEST_F(Conclude, CtrlCBeforeTheLastStageEndsTheRunByIt) {
  begin();
  run_->finished = false;
  run_->wanted.emplace_back("ncu");
  interrupt();
  EXPECT_EQ(end().code, 128 + SIGINT);
  EXPECT_EQ(status().outcome, "interrupted");
  EXPECT_EQ(status().message, "interrupted by SIGINT");
  EXPECT_TRUE(findings_.empty());
}

TEST_F(Conclude, CtrlCInTheLastStageWithResultsIsItsEnd) {
  begin();
  capture_of_ncu();
  interrupt();
  EXPECT_EQ(end().code, 0);
  EXPECT_EQ(status().outcome, "ok");
}

TEST_F(Conclude, ASeriesEndsAsTheRepetitionThatEndedIt) {
  begin();
  run_->repeated = Conclusion{80, "nothing_captured", "repetition 2 of 3: nothing"};
  EXPECT_EQ(end().code, 80);
  EXPECT_EQ(status().outcome, "nothing_captured");
  EXPECT_EQ(status().message, "repetition 2 of 3: nothing");
}

TEST_F(Conclude, AFolderThatTheProgramRemovedCannotBeConcluded) {
  begin();
  fs::remove_all(run_->folder);
  run_->program_failed = base::Ended{.exit_code = 3};
  const Done done = end();
  EXPECT_EQ(done.code, 74);
  EXPECT_EQ(done.directory, "");
  ASSERT_TRUE(done.end);
  EXPECT_NE(stderr_.find("the program removed the run directory"), std::string::npos);
}

TEST_F(Conclude, WhyThereAreNoCountersIsAFindingOfTheRun) {
  begin();
  capture_of_ncu();
  run_->uncounted = model::Finding{.id = "machine.no_counters", .verdict = model::Grade::kWarn};
  EXPECT_EQ(end().code, 0);
  EXPECT_EQ(findings_, Words{"machine.no_counters"});
  ASSERT_EQ(status().findings.size(), 1u);
}

TEST_F(Conclude, OldRunsGoOnlyWhenThisOneIsFine) {
  begin();
  (void)end(base::Error{base::Code::kIo, "first", {}, {}});
  const fs::path old = run_->folder;
  begin({"run.keep=1"});
  (void)end(base::Error{base::Code::kIo, "second", {}, {}});
  EXPECT_TRUE(fs::exists(old));
  begin({"run.keep=1"});
  capture_of_ncu();
  EXPECT_EQ(end().code, 0);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(run_->folder));
}

}  // namespace conclude_test
}  // namespace rangescope::profile
