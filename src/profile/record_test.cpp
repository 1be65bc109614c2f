#include "profile/record.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "profile/composed_test.hpp"
#include "profile/tool_run.hpp"
#include "runs/stages.hpp"
#include "runs/status.hpp"

namespace rangescope::profile {
namespace record_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// The record of a run in a new folder that the user named.
class Record : public testing::Test {
 protected:
  void SetUp() override {
    auto record = RunRecord::begin_in(run(), {"app", "--fast"}, {"profile", "--", "app"});
    ASSERT_TRUE(record) << base::to_string(record.error());
    record_.emplace(std::move(*record));
  }
  [[nodiscard]] fs::path run() const { return folder_.path() / "run"; }
  [[nodiscard]] runs::Manifest manifest() const {
    return runs::read_manifest(run()).value_or(runs::Manifest{});
  }
  [[nodiscard]] runs::Status status() const {
    return runs::read_status(run()).value_or(runs::Status{});
  }

  base::TemporaryFolder folder_{"rangescope-record"};
  std::optional<RunRecord> record_;
};

TEST_F(Record, OfARunThatHasBegunSaysWhatIsRun) {
  EXPECT_EQ(manifest().argv, (Words{"app", "--fast"}));
  EXPECT_EQ(manifest().arguments, (Words{"profile", "--", "app"}));
  EXPECT_EQ(manifest().end_unix_ns, 0);
  EXPECT_EQ(status().state, runs::RunState::kRunning);
}

TEST_F(Record, AFolderIsItsOwnersAlone) {
  const auto others = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(run()).permissions() & others, fs::perms::none);
}

TEST_F(Record, AFolderThatHoldsSomethingIsRefused) {
  const auto again = RunRecord::begin_in(run(), {"app"}, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, base::Code::kConfig);
  EXPECT_EQ(again.error().what, "run.dir holds something already");
}

TEST_F(Record, TheEndComesWithTheProofsOfTheFiles) {
  const base::Ended ended{.exit_code = 3,
                          .start_unix_ns = 1000,
                          .wall_ns = 500,
                          .usage = base::Ended::Usage{.user_ns = 7, .system_ns = 2}};
  EXPECT_TRUE(record_->ended(ended));
  EXPECT_EQ(manifest().exit_code, 3);
  EXPECT_EQ(manifest().end_unix_ns, 0);
  fs::create_directories(run() / "native");
  EXPECT_TRUE(base::write_file(run() / "native" / "x.gpu", "four"));
  EXPECT_TRUE(record_->finish(3, "program_failed", "it failed", {}));
  EXPECT_EQ(manifest().start_unix_ns, 1000);
  EXPECT_EQ(manifest().end_unix_ns, 1500);
  EXPECT_EQ(manifest().files.at("native/x.gpu").bytes, 4u);
  EXPECT_EQ(status().program, "exit code 3");
  EXPECT_EQ(status().outcome, "program_failed");
}

// The peak is unknown where the kernel does not say it, and never zero.
TEST_F(Record, WhatIsUnknownOfTheUsageIsAbsent) {
  EXPECT_TRUE(record_->ended({.exit_code = 0, .usage = base::Ended::Usage{.user_ns = 7}}));
  ASSERT_TRUE(manifest().usage);
  EXPECT_EQ(manifest().usage->user_ns, 7);
  EXPECT_EQ(manifest().usage->peak_rss_bytes, std::nullopt);
  EXPECT_EQ(manifest().usage->machine, std::nullopt);
}

TEST_F(Record, AProgramThatRunsOnHasNoEnd) {
  EXPECT_TRUE(record_->ended({.left = true, .start_unix_ns = 5, .wall_ns = 2}));
  EXPECT_TRUE(record_->finish(0, "ok", "", {}));
  EXPECT_EQ(manifest().exit_code, std::nullopt);
  EXPECT_EQ(manifest().usage, std::nullopt);
  EXPECT_EQ(status().program, "");
}

TEST_F(Record, AHintIsASentenceOfTheMessage) {
  EXPECT_TRUE(record_->finish(74, "error", "the disk is full\nhint: Free some space", {}));
  EXPECT_EQ(status().message, "the disk is full. Free some space");
}

TEST_F(Record, LossesAndFindingsAreInTheStatus) {
  const model::Finding finding{.id = "ncu.busy", .verdict = model::Grade::kFail};
  EXPECT_TRUE(record_->finish(0, "ok", "", {{"timed_out", 1, "cut"}}, {finding}));
  ASSERT_EQ(status().losses.size(), 1u);
  EXPECT_EQ(status().losses[0].detail, "cut");
  ASSERT_EQ(status().findings.size(), 1u);
  EXPECT_EQ(status().findings[0].id, "ncu.busy");
}

TEST_F(Record, WhatTheRunWasMadeOfIsKeptAndSecretsAreNot) {
  EXPECT_TRUE(write_config(run(), composed({"run.keep=5", "workload.env={API_KEY: 0123456789}"})));
  const std::string values = base::read_file(run() / "config.yaml").value_or(""),
                    inputs = base::read_file(run() / "inputs.yaml").value_or("");
  EXPECT_NE(values.find("keep: 5"), std::string::npos);
  EXPECT_NE(inputs.find("run.keep"), std::string::npos) << inputs;
  EXPECT_EQ((values + inputs).find("0123456789"), std::string::npos);
}

/// Shell scripts in place of tools.
class Tools : public testing::Test {
 protected:
  ToolRun run(const std::string& script,
              const std::string& label,
              const fs::path& log = {},
              const std::string& collector = "ncu") {
    const collect::Plan plan{
        .collector = collector, .argv = {"sh", "-c", script}, .cwd = run_.path()};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto ran = runner_.run(plan, label, log);
    std::fflush(stdout);
    shown_ = testing::internal::GetCapturedStdout();
    stderr_ = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(ran) << base::to_string(ran.error());
    return ran ? std::move(*ran) : ToolRun{};
  }
  [[nodiscard]] std::string kept(const std::string& file) const {
    return base::read_file(run_.path() / file).value_or("(no such file)");
  }

  base::TemporaryFolder run_{"rangescope-tools"};
  StageRunner runner_{run_.path()};
  std::string shown_, stderr_;
};

TEST_F(Tools, OutputOfTheFirstRunIsShownAndThatOfAllIsKept) {
  EXPECT_FALSE(runner_.has_run());
  EXPECT_EQ(run("echo out; echo err >&2", "first").text, "out\n\nerr\n");
  EXPECT_EQ(shown_, "out\n");
  EXPECT_EQ(stderr_, "err\n");
  EXPECT_TRUE(runner_.has_run());
  EXPECT_EQ(run("echo again", "second").text, "again\n\n");
  EXPECT_EQ(shown_, "");
  EXPECT_EQ(kept("ncu/first.stdout"), "out\n");
  EXPECT_EQ(kept("ncu/second.stdout"), "again\n");
}

TEST_F(Tools, WhereTheProgramRanElsewhereNothingIsShown) {
  runner_.ran_before();
  (void)run("echo out", "first");
  EXPECT_EQ(shown_, "");
  EXPECT_EQ(kept("ncu/first.stdout"), "out\n");
}

TEST_F(Tools, EveryCommandLineIsKeptInOrder) {
  (void)run("exit 1", "first");
  (void)run("exit 2", "second");
  const std::string commands = kept("ncu/cmd.txt");
  const auto first = commands.find("# first\n"), second = commands.find("# second\n");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_NE(commands.find("exit 2"), std::string::npos);
}

TEST_F(Tools, TheProgramByItselfLeavesNothingOfItsOutput) {
  (void)run("exit 0", "native", {}, "native");
  EXPECT_FALSE(fs::exists(run_.path() / "native"));
}

TEST_F(Tools, AnOldLogProvesNothing) {
  const fs::path log = run_.path() / "tool.log";
  EXPECT_TRUE(base::write_file(log, "of the run before\n"));
  EXPECT_EQ(run("exit 0", "first", log).text, "\n\n");
  EXPECT_EQ(run("echo said > tool.log", "second", log).text, "said\n\n\n");
  EXPECT_EQ(stderr_, "rangescope: ncu: said\n");
}

TEST_F(Tools, OnlySignalsThatAPersonSendsInterrupt) {
  (void)run("kill -SEGV $$", "crash");
  EXPECT_FALSE(runner_.interrupted());
  (void)run("kill -TERM $$", "killed");  // by others, and not through us
  EXPECT_FALSE(runner_.interrupted());
  (void)run("kill -INT $$", "ctrl-c");
  EXPECT_TRUE(runner_.interrupted());
  EXPECT_EQ(runner_.signal(), SIGINT);
}

TEST_F(Tools, AStageWithResultsNamesNoCause) {
  const collect::Outcome fine{.result = collect::Result::kOk,
                              .complaints = {{"ncu.note", "a line", "", "Do this"}},
                              .message = "ncu: 3 results"};
  const runs::Stage stage = StageRunner::stage_of(
      "ncu", "ncu 2025.3", "range", fine, {{.exit_code = 0, .wall_ns = 9}, ""});
  EXPECT_EQ(stage.outcome, "ok");
  EXPECT_EQ(stage.message, "ncu: 3 results");
  EXPECT_EQ(stage.wall_ns, 9);
  EXPECT_EQ(stage.exit_code, 0);
  EXPECT_EQ(stage.why + stage.evidence + stage.cure, "");
}

TEST_F(Tools, AStageWithoutNamesTheFirstCause) {
  const collect::Outcome failed{
      .result = collect::Result::kFailed,
      .complaints = {{"ncu.busy", "==ERROR== busy", "", "Wait"}, {"ncu.other", "", "", ""}},
      .message = "ncu: it is busy"};
  const runs::Stage stage = StageRunner::stage_of("ncu", "ncu 2025.3", "range", failed, {});
  EXPECT_EQ(stage.outcome, "failed");
  EXPECT_EQ(stage.why, "ncu.busy");
  EXPECT_EQ(stage.evidence, "==ERROR== busy");
  EXPECT_EQ(stage.cure, "Wait");
}

TEST_F(Tools, StagesAreWrittenAsTheyEnd) {
  runner_.record({.stage = "nsys", .outcome = "ok"});
  runner_.record({.stage = "ncu", .outcome = "empty"});
  const auto written = runs::read_stages(run_.path());
  ASSERT_TRUE(written);
  ASSERT_EQ(written->size(), 2u);
  EXPECT_EQ((*written)[1].outcome, "empty");
  EXPECT_TRUE(runner_.recorded());
}

TEST_F(Tools, StagesThatCannotBeWrittenAreRememberedOnce) {
  fs::create_directory(run_.path() / "stages.json");
  runner_.record({.stage = "nsys", .outcome = "ok"});
  ASSERT_FALSE(runner_.recorded());
  EXPECT_EQ(runner_.stages().size(), 1u);
}

TEST_F(Tools, WhatIsJudgedIsTheRunsTextAndEnd) {
  const ToolRun ran{{.signal = 15, .timed_out = true}, "==ERROR=="};
  const collect::Observed seen = observed(ran, true);
  EXPECT_EQ(seen.text, "==ERROR==");
  EXPECT_EQ(seen.signal, 15);
  EXPECT_TRUE(seen.timed_out && seen.interrupted);
  EXPECT_FALSE(seen.report);
}

}  // namespace record_test
}  // namespace rangescope::profile
