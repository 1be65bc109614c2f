#include "cli/destination.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.hpp"
#include "cli/command_line_test.hpp"
#include "profile/engine.hpp"
#include "runs/manifest.hpp"

namespace rangescope::cli {
namespace destination_test {

using namespace command_line_test;
namespace fs = std::filesystem;

class Destination : public InAFolder {
 protected:
  /// A folder with the manifest of a run.
  void make_run(const fs::path& run) const {
    fs::create_directories(folder() / run);
    ASSERT_TRUE(runs::write_manifest(
        folder() / run, {.id = run.filename().string(), .tool = "t", .start_unix_ns = 1}));
  }
};

/// Why `file` may not be written where the command line has these words; "" where it may.
std::string why_not(const std::string& file, const Words& words = {}) {
  std::string reason;
  std::string ignored;
  const auto declare = [&](const Arguments& app) {
    app.add_option("-o,--output", ignored);
    app.add_option("--junit", ignored);
    app.add_option("--nsys", ignored);
  };
  const auto run = [&](const Words&) {
    const auto checked = check_output(file);
    if (checked)
      return 0;
    EXPECT_EQ(checked.error().code, base::Code::kUsage);
    reason = checked.error().what;
    return 0;
  };
  const Answer answer =
      answer_of(std::make_unique<DeclaredCommand>("profile", true, declare, run), words);
  EXPECT_EQ(answer.code, 0) << answer.err;
  return reason;
}

class CheckOutput : public Destination {};

TEST_F(CheckOutput, AFileOfAnotherKindIsReplaced) {
  EXPECT_EQ(why_not("new.txt"), "");
  write("old.txt", "notes");
  EXPECT_EQ(why_not("old.txt"), "");
}

TEST_F(CheckOutput, WhatIsNoPlainFileIsNotReplaced) {
  fs::create_directory("folder");
  write("target.txt", "notes");
  fs::create_symlink("target.txt", "link.txt");
  EXPECT_NE(why_not("folder"), "");
  EXPECT_NE(why_not("link.txt"), "");
}

TEST_F(CheckOutput, AFileThatTheCommandLineNamesIsAnInput) {
  write("data.txt", "notes");
  EXPECT_EQ(why_not("data.txt", {"--nsys", "data.txt"}), "the output is an input");
  EXPECT_EQ(why_not("data.txt", {"--nsys=data.txt"}), "the output is an input");
  EXPECT_EQ(why_not("data.txt", {"--", "./app", "data.txt"}), "the output is an input");
  EXPECT_EQ(why_not("data.txt", {"--", "./app", "--data=data.txt"}), "the output is an input");
}

TEST_F(CheckOutput, AnotherNameOfAnInputIsThatInput) {
  write("data.txt", "notes");
  fs::create_hard_link("data.txt", "alias.txt");
  EXPECT_EQ(why_not("./alias.txt", {"--", "./app", "data.txt"}), "the output is an input");
}

TEST_F(CheckOutput, BehindAnOptionForOutputsItIsTheOutput) {
  write("data.txt", "notes");
  EXPECT_EQ(why_not("data.txt", {"-o", "data.txt"}), "");
  EXPECT_EQ(why_not("data.txt", {"-odata.txt"}), "");
  EXPECT_EQ(why_not("data.txt", {"--output=data.txt"}), "");
  EXPECT_EQ(why_not("data.txt", {"--junit", "data.txt"}), "");
}

TEST_F(CheckOutput, BehindAnOptionOfTheProgramItIsNotOurs) {
  write("data.txt", "notes");
  EXPECT_EQ(why_not("data.txt", {"--", "./app", "-o", "data.txt"}), "the output is an input");
  EXPECT_EQ(why_not("data.txt", {"--", "./app", "--output=data.txt"}), "the output is an input");
}

/// The same of a command with --json and runs.
std::string why_not_behind_json(std::string_view command, const std::string& file) {
  std::string reason;
  bool is_json = false;
  std::vector<std::string> runs;
  const auto declare = [&](const Arguments& app) {
    app.add_option("run", runs).expected(0, 100);
    app.add_flag("--json", is_json);
  };
  const auto run = [&](const Words&) {
    if (const auto checked = check_output(file); !checked)
      reason = checked.error().what;
    return 0;
  };
  const Answer answer =
      answer_of(std::make_unique<DeclaredCommand>(command, false, declare, run), {"--json", file});
  EXPECT_EQ(answer.code, 0) << answer.err;
  return reason;
}

// `compare --json a.json b.json -o a.json`
TEST_F(CheckOutput, JsonTakesAFileInGateOnly) {
  write("data.json", "{}");
  write("data", "{}");
  EXPECT_EQ(why_not_behind_json("compare", "data.json"), "the output is an input");
  EXPECT_EQ(why_not_behind_json("gate", "data.json"), "");
  EXPECT_EQ(why_not_behind_json("gate", "data"), "the output is an input") << "it is the run";
}

TEST_F(CheckOutput, WhatRangescopeReadsIsKept) {
  write("main.json", R"({"schema": "rangescope.baseline/1", "runs": []})");
  EXPECT_EQ(why_not("main.json"), "it is a baseline, which is not overwritten");
  write("run.tar.zst", "\x28\xb5\x2f\xfd and more");
  EXPECT_EQ(why_not("run.tar.zst"), "it is an archive, which is not overwritten");
}

TEST_F(CheckOutput, FilesOfARunAreKeptExceptItsReports) {
  make_run("run-1");
  write("run-1/env.json", "{}");
  write("run-1/report.json", "{}");
  EXPECT_EQ(why_not("run-1/env.json"), "it is a part of the run run-1, which is not overwritten");
  EXPECT_EQ(why_not("run-1/report.json"), "");
}

base::Result<void> checked(const std::string& format, const std::string& to, int fd = -1) {
  ReportChoice choice;
  choice.format = format;
  choice.to = to;
  return check_destination(choice, fd);
}

class CheckDestination : public Destination {};

TEST_F(CheckDestination, ABinaryFormatNeedsAFileWhereMessagesGo) {
  const auto refused = checked("perfetto", "", STDERR_FILENO);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kUsage);
  EXPECT_EQ(refused.error().hint, "Name a file: -o report.pftrace");
  EXPECT_TRUE(checked("table", "", STDERR_FILENO));
  EXPECT_TRUE(checked("json", "", STDERR_FILENO));
}

TEST_F(CheckDestination, ABinaryFormatGoesIntoAPipeOrAFile) {
  const int file = ::open("piped", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  EXPECT_TRUE(checked("perfetto", "", file));
  ::close(file);
  EXPECT_TRUE(checked("perfetto", "run.pftrace", STDERR_FILENO));
}

TEST_F(CheckDestination, AMissingFolderIsFoundBeforeTheProgramRuns) {
  const auto refused = checked("json", "out/to day/report.json");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kIo);
  EXPECT_EQ(refused.error().hint,
            "Make the folder first: mkdir -p '" + (folder() / "out/to day").string() + "'");
}

TEST_F(CheckDestination, AFolderIsNoFile) {
  fs::create_directory("out");
  const auto refused = checked("json", "out");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kIo);
  EXPECT_EQ(refused.error().hint, "Name a file in it");
}

/// Cells that a spreadsheet would compute, and a number that it may.
constexpr std::string_view kRow = "=1+1,@sum,-5\r\n";

/// The file that such a row becomes.
std::string written_row(const std::string& format, bool raw_cells) {
  ReportChoice choice;
  choice.format = format;
  choice.to = "row.csv";
  choice.raw_cells = raw_cells;
  testing::internal::CaptureStderr();
  const auto written = write_to(
      choice, STDOUT_FILENO, [](report::Sink& sink, const report::Style&) -> base::Result<void> {
        sink.write(kRow);
        return {};
      });
  (void)testing::internal::GetCapturedStderr();
  EXPECT_TRUE(written);
  return base::read_file("row.csv").value_or("");
}

class WriteTo : public Destination {};

TEST_F(WriteTo, ASpreadsheetsFileHasNoFormulas) {
  EXPECT_EQ(written_row("csv", false), "'=1+1,'@sum,-5\r\n");
}

TEST_F(WriteTo, RawCellsAndOtherFormatsStayAsTheyAre) {
  EXPECT_EQ(written_row("csv", true), kRow);
  EXPECT_EQ(written_row("json", false), kRow);
}

TEST_F(WriteTo, AFailureLeavesTheFileOfBefore) {
  write("report.json", "before");
  ReportChoice choice;
  choice.format = "json";
  choice.to = "report.json";
  const auto failing = [](report::Sink& sink, const report::Style&) -> base::Result<void> {
    sink.write("half");
    return base::fail(base::Code::kBadData, "no more");
  };
  EXPECT_FALSE(write_to(choice, STDOUT_FILENO, failing));
  EXPECT_EQ(text_of("report.json"), "before");
}

class StyleOn : public Destination {};

TEST_F(StyleOn, TheWidthIsTheOptionsElseTheShellsElse120) {
  ReportChoice choice;
  EXPECT_EQ(style_on(-1, choice).width, 120u);
  ::setenv("COLUMNS", "90", 1);
  EXPECT_EQ(style_on(-1, choice).width, 90u);
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(style_on(-1, choice).width, 120u);
  choice.width = 0;
  EXPECT_EQ(style_on(-1, choice).width, 0u) << "no limit";
}

TEST_F(StyleOn, ColorOutsideATerminalIsForThoseWhoAskForIt) {
  ::setenv("TERM", "xterm", 1);
  ReportChoice choice;
  EXPECT_FALSE(style_on(-1, choice).color);
  choice.color = "always";
  EXPECT_TRUE(style_on(-1, choice).color);
  choice.color = "never";
  EXPECT_FALSE(style_on(-1, choice).color);
}

/// What a person reads about where a run is kept.
std::string kept_message(const fs::path& run, bool in_default_root) {
  testing::internal::CaptureStderr();
  say_kept(run, in_default_root);
  return testing::internal::GetCapturedStderr();
}

class SayKept : public Destination {};

TEST_F(SayKept, InTheDefaultFolderTheRunIsTheLatest) {
  make_run("rangescope-runs/run-1");
  EXPECT_EQ(kept_message(folder() / "rangescope-runs/run-1", true),
            "rangescope: run kept in rangescope-runs; see it again: rangescope report latest\n");
}

TEST_F(SayKept, InAnotherFolderItIsNamedByItsShortestPath) {
  make_run("my runs/run-1");
  EXPECT_EQ(kept_message(folder() / "my runs/run-1", false),
            "rangescope: run kept in my runs/run-1; see it again: rangescope report "
            "'my runs/run-1'\n");
}

// The working folder could not be written, and the run went below the home folder.
TEST_F(SayKept, ARunElsewhereIsNotCalledTheLatest) {
  make_run("state/run-1");
  fs::create_directory("work");
  fs::current_path("work");
  const std::string run = (folder() / "state/run-1").string();
  EXPECT_EQ(kept_message(run, true),
            "rangescope: run kept in " + run + "; see it again: rangescope report " + run + "\n");
}

TEST_F(SayKept, ARunThatTheProgramRemovedIsNotMentioned) {
  EXPECT_EQ(kept_message(folder() / "rangescope-runs/run-1", true), "");
}

class CheckValues : public Destination {};

TEST_F(CheckValues, AColumnIsAMeasureOrAShippedMetric) {
  report::Style style;
  style.columns = {"wall_ns.median"};
  EXPECT_TRUE(check_values(style));
  style.columns = {"wall_ns.medain"};
  const auto refused = check_values(style);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kUsage);
  EXPECT_TRUE(has(refused.error().hint, "wall_ns.median")) << refused.error().hint;
}

/// Is a report shown after `rangescope profile` with -q?
bool is_shown_quietly(const std::string& format, const std::string& to) {
  ReportChoice choice;
  choice.format = format;
  choice.to = to;
  base::set_log_level(base::Level::kWarning);
  const bool is_shown = static_cast<bool>(talk_of(choice, STDOUT_FILENO).report);
  base::set_log_level(base::Level::kInfo);
  return is_shown;
}

TEST(TalkOf, QuietMeansNoTableButTheDocumentThatWasAskedFor) {
  EXPECT_FALSE(is_shown_quietly("table", ""));
  EXPECT_TRUE(is_shown_quietly("json", ""));
  EXPECT_TRUE(is_shown_quietly("table", "report.txt"));
}

TEST(TalkOf, FindingsAreInAReportOnTheTerminalAndNotInAFile) {
  ReportChoice choice;
  EXPECT_TRUE(talk_of(choice, STDOUT_FILENO).report_shows_findings);
  choice.to = "report.json";
  choice.format = "json";
  EXPECT_FALSE(talk_of(choice, STDOUT_FILENO).report_shows_findings);
}

}  // namespace destination_test
}  // namespace rangescope::cli
