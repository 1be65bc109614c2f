// `runs`, `ctl` and `report`: which runs are listed, removed and trusted, and what is refused.
#include <nlohmann/json.hpp>

#include "cli/command_line_test.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"
#include "wire/control.hpp"

namespace rangescope::cli {
namespace cmd_runs_test {

using namespace command_line_test;
namespace fs = std::filesystem;

constexpr std::int64_t kSecond_ns = 1'000'000'000;
constexpr std::int64_t kYear2023_ns = 1'700'000'000 * kSecond_ns;

class Runs : public InAFolder {
 protected:
  /// A run of rangescope-runs that began `started_s` seconds after a moment in 2023 and took 2 s.
  static fs::path make_run(const std::string& name, std::int64_t started_s) {
    const fs::path run = fs::path(runs::kDefaultRoot) / name;
    fs::create_directories(run / "native");
    EXPECT_TRUE(base::write_file(run / "native/1.0.rstrace", "captured"));
    runs::Manifest manifest{.id = run.filename(), .tool = "t", .argv = {"./app", "a b"}};
    manifest.start_unix_ns = kYear2023_ns + started_s * kSecond_ns;
    manifest.end_unix_ns = manifest.start_unix_ns + 2 * kSecond_ns;
    manifest.files = runs::prove_files(run).value();
    EXPECT_TRUE(runs::write_manifest(run, manifest));
    end_run(run, "ok", 0);
    return run;
  }
  /// A job of one rank.
  static void make_job(const std::string& name, std::int64_t started_s) {
    const fs::path rank = make_run(name + "/rank-0", started_s);
    EXPECT_TRUE(base::write_file(rank / "rank.json",
                                 R"({"schema": "rangescope.rank/1", "job": ")" + name +
                                     R"(", "rank": 0, "world_size": 1})"));
    EXPECT_TRUE(base::write_file(rank.parent_path() / "job.json",
                                 R"({"schema": "rangescope.job/1", "name": ")" + name +
                                     R"(", "key": "7", "world_size": 1, "started_unix_ns": )" +
                                     std::to_string(kYear2023_ns + started_s * kSecond_ns) + "}"));
  }
  static void end_run(const fs::path& run, const std::string& outcome, int exit_code) {
    EXPECT_TRUE(runs::write_done(
        run, {.state = runs::RunState::kDone, .exit_code = exit_code, .outcome = outcome}));
  }
  static Words left() {
    Words names;
    for (const fs::path& run : runs::list_runs(runs::kDefaultRoot))
      names.push_back(run.filename());
    return names;
  }
};

TEST_F(Runs, AreListedOldestFirst) {
  make_run("b", 10);
  make_run("a", 20);
  const auto listed = nlohmann::json::parse(answer_of(make_runs, {"list", "--json"}).out);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].at("run"), "b");
  EXPECT_EQ(listed[1].at("run"), "a");
  EXPECT_EQ(listed[1].at("ended_unix_ns").get<std::int64_t>() -
                listed[1].at("began_unix_ns").get<std::int64_t>(),
            2 * kSecond_ns);
}

TEST_F(Runs, WithoutAVerbAreListed) {
  make_run("a", 10);
  EXPECT_EQ(answer_of(make_runs, {}).out, answer_of(make_runs, {"list"}).out);
  EXPECT_TRUE(has(answer_of(make_runs, {}).out, "./app 'a b'"));
  EXPECT_TRUE(answer_of(make_runs, {"--json"}).out.starts_with("["));
}

TEST_F(Runs, NoneIsNoFailure) {
  const Answer answer = answer_of(make_runs, {"list", "--runs", "elsewhere"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(has(answer.err, "no runs in elsewhere")) << answer.err;
  EXPECT_EQ(answer_of(make_runs, {"list", "--json"}).out, "[]\n");
}

TEST_F(Runs, ThatNeverEndedWereInterruptedAndHaveNoExitCode) {
  const fs::path run = make_run("a", 10);
  // A process of another boot: none of this one can be it.
  ASSERT_TRUE(base::write_file(
      run / "status.json",
      R"({"schema": "rangescope.status/1", "state": "running", "pid": 1, "boot": "x", "started": 1})"));
  const auto listed = nlohmann::json::parse(answer_of(make_runs, {"list", "--json"}).out);
  EXPECT_EQ(listed.at(0).at("state"), "interrupted");
  EXPECT_TRUE(listed.at(0).at("exit_code").is_null());
}

TEST_F(Runs, TheStateOfAFinishedRunIsItsOutcome) {
  end_run(make_run("a", 10), "nothing_captured", 80);
  const auto shown = nlohmann::json::parse(answer_of(make_runs, {"show", "--json"}).out);
  EXPECT_EQ(shown.at("state"), "nothing_captured");
  EXPECT_EQ(shown.at("exit_code"), 80);
}

TEST_F(Runs, TheLatestIsShownUnlessOneIsNamed) {
  make_run("a-1", 10);
  make_run("b-2", 20);
  EXPECT_TRUE(has(answer_of(make_runs, {"show"}).out, "rangescope-runs/b-2"));
  EXPECT_TRUE(has(answer_of(make_runs, {"show", "a"}).out, "rangescope-runs/a-1"));
  EXPECT_EQ(answer_of(make_runs, {"show", "c"}).code, 66);
}

TEST_F(Runs, ARankHasItsJobInItsName) {
  make_job("job-7", 10);
  EXPECT_TRUE(has(answer_of(make_runs, {"list"}).out, "job-7/rank-0"))
      << answer_of(make_runs, {"list"}).out;
}

class Prune : public Runs {};

TEST_F(Prune, NeedsARule) {
  make_run("a", 10);
  const Answer answer = answer_of(make_runs, {"prune", "--yes"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "Add --keep N, --older-than AGE, or both")) << answer.err;
  EXPECT_EQ(left(), (Words{"a"}));
}

TEST_F(Prune, KeepsTheNewest) {
  make_run("c", 10);
  make_run("b", 20);
  make_run("a", 30);
  const Answer answer = answer_of(make_runs, {"prune", "--keep", "1", "--yes"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.out, "rangescope-runs/c\nrangescope-runs/b\n");
  EXPECT_TRUE(has(answer.err, "deleted 2 runs, ")) << answer.err;
  EXPECT_EQ(left(), (Words{"a"}));
}

TEST_F(Prune, ADryRunListsAndDeletesNothing) {
  make_run("a", 10);
  const Answer answer = answer_of(make_runs, {"prune", "--keep", "0", "--dry-run", "--yes"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.out, "rangescope-runs/a\n");
  EXPECT_TRUE(has(answer.err, "would delete 1 run, ")) << answer.err;
  EXPECT_EQ(left(), (Words{"a"}));
}

TEST_F(Prune, WithoutAnAnswerNothingIsDeleted) {
  make_run("a", 10);
  const Answer answer = answer_of(make_runs, {"prune", "--keep", "0"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "nothing was deleted")) << answer.err;
  EXPECT_TRUE(has(answer.err, "Pass --yes")) << answer.err;
  EXPECT_EQ(left(), (Words{"a"}));
}

TEST_F(Prune, WithBothRulesARunFallsUnderBoth) {
  make_run("b", 10);
  make_run("a", 20);
  EXPECT_EQ(answer_of(make_runs, {"prune", "--keep", "1", "--older-than", "1d", "--yes"}).code, 0);
  EXPECT_EQ(left(), (Words{"a"}));
}

// Hundreds of years are more nanoseconds than a number holds.
TEST_F(Prune, NothingIsOlderThanCenturies) {
  make_run("a", 10);
  make_job("job-7", 20);
  EXPECT_EQ(answer_of(make_runs, {"prune", "--older-than", "20000w", "--yes"}).err,
            "rangescope: no run matches; nothing to delete\n");
  EXPECT_EQ(left(), (Words{"a"}));
  EXPECT_TRUE(fs::exists("rangescope-runs/job-7"));
}

TEST_F(Prune, AJobGoesAsAWhole) {
  make_job("job-7", 10);
  make_run("a", 20);
  const Answer answer = answer_of(make_runs, {"prune", "--keep", "0", "--yes"});
  EXPECT_EQ(answer.out, "rangescope-runs/job-7\nrangescope-runs/a\n");
  EXPECT_TRUE(has(answer.err, "deleted 1 run, 1 job, ")) << answer.err;
  EXPECT_FALSE(fs::exists("rangescope-runs/job-7"));
}

TEST_F(Prune, AnAgeHasAUnit) {
  EXPECT_EQ(answer_of(make_runs, {"prune", "--older-than", "7"}).code, 64);
  EXPECT_EQ(answer_of(make_runs, {"prune", "--keep", "-1"}).code, 64);
}

// A folder that was copied or that another program made has no manifest with its own name.
TEST_F(Prune, WhatIsNoRunOfOursStays) {
  make_run("a", 10);
  fs::copy("rangescope-runs/a", "rangescope-runs/copy", fs::copy_options::recursive);
  fs::create_directories("rangescope-runs/notes");
  EXPECT_EQ(answer_of(make_runs, {"prune", "--keep", "0", "--yes"}).code, 0);
  EXPECT_FALSE(fs::exists("rangescope-runs/a"));
  EXPECT_TRUE(fs::exists("rangescope-runs/copy"));
  EXPECT_TRUE(fs::exists("rangescope-runs/notes"));
}

TEST_F(Runs, VerifyFindsAChangedAndAMissingFile) {
  const fs::path run = make_run("a", 10);
  const Answer before = answer_of(make_runs, {"verify"});
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_TRUE(has(before.err, "all files are unchanged: rangescope-runs/a")) << before.err;
  ASSERT_TRUE(base::write_file(run / "native/1.0.rstrace", "Captured"));
  const Answer changed = answer_of(make_runs, {"verify", "a"});
  EXPECT_EQ(changed.code, 65);
  EXPECT_EQ(changed.out, "native/1.0.rstrace: changed\n");
  EXPECT_TRUE(has(changed.err, "1 file has changed")) << changed.err;
  fs::remove(run / "native/1.0.rstrace");
  EXPECT_EQ(answer_of(make_runs, {"verify"}).out, "native/1.0.rstrace: missing\n");
}

TEST_F(Runs, HistoryIsOfAMeasure) {
  const Answer answer =
      answer_of(make_runs,
                {"history", "decode", "--from", "postgresql://none/x", "--metric", "wall_ns.meen"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "there is no measure 'wall_ns.meen'")) << answer.err;
  EXPECT_TRUE(has(answer.err, "wall_ns.mean")) << answer.err;
}

class Ctl : public Runs {};

TEST_F(Ctl, AVerbNearAnotherIsSuggested) {
  const Answer answer = answer_of(make_ctl, {"latest", "strat"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "did you mean 'start'")) << answer.err;
}

TEST_F(Ctl, ARunWithoutWindowsSaysHowTheyAreHad) {
  make_run("a", 10);
  const Answer answer = answer_of(make_ctl, {"a", "status"});
  EXPECT_EQ(answer.code, 66);
  EXPECT_TRUE(has(answer.err, "this run records its program from start to end")) << answer.err;
  EXPECT_TRUE(has(answer.err, "rangescope profile --stopped -- PROGRAM")) << answer.err;
}

TEST_F(Ctl, AnEndedProgramHasAReport) {
  const fs::path run = make_run("a", 10);
  ASSERT_TRUE(base::write_file(run / "native" / wire::control::kFile, ""));
  for (const char* verb : {"start", "stop", "status", "mark", "report"}) {
    const Answer answer = answer_of(make_ctl, {"a", verb});
    EXPECT_EQ(answer.code, 66) << verb;
    EXPECT_TRUE(has(answer.err, "the program has ended")) << answer.err;
    EXPECT_TRUE(has(answer.err, "Its report: rangescope report rangescope-runs/a")) << answer.err;
  }
}

TEST_F(Ctl, OnlyMarksAndReportsTakeAWord) {
  make_run("a", 10);
  const Answer word = answer_of(make_ctl, {"a", "start", "now"});
  EXPECT_EQ(word.code, 64);
  EXPECT_TRUE(has(word.err, "one word too many: now")) << word.err;
  const Answer window = answer_of(make_ctl, {"a", "report", "last"});
  EXPECT_EQ(window.code, 64);
  EXPECT_TRUE(has(window.err, "'last' is not a window number")) << window.err;
  EXPECT_EQ(answer_of(make_ctl, {"a", "report", "4294967296"}).code, 64);
}

TEST_F(Ctl, AProcessThatIsNotProfiledIs66) {
  const Answer answer = answer_of(make_ctl, {std::to_string(::getpid()), "status"});
  EXPECT_EQ(answer.code, 66);
  EXPECT_TRUE(has(answer.err, "does not belong to a program under rangescope profile"))
      << answer.err;
}

class Report : public Runs {};

/// Why `report` refuses the words, as a wrong command line.
std::string refusal_of(const Words& words) {
  const Answer answer = answer_of(make_report, words);
  EXPECT_EQ(answer.code, 64) << answer.err;
  return answer.err;
}

TEST_F(Report, SeparateReportsAreNotOneDocument) {
  EXPECT_TRUE(has(refusal_of({"a", "b", "--separate", "-f", "json"}),
                  "2 separate inputs in one json document"));
  EXPECT_TRUE(has(refusal_of({"a", "b", "--separate", "-o", "x.txt"}),
                  "several separate inputs and one file"));
  EXPECT_TRUE(has(refusal_of({"a", "b", "--separate", "--split-regions", "x"}),
                  "several separate inputs and one folder of regions"));
}

// Digests have no timeline, and nothing by rank but sums.
TEST_F(Report, DigestsDoNotAnswerWhatNeedsCaptures) {
  for (const Words& question : {Words{"--cpu", "decode"},
                                Words{"--rank", "3"},
                                Words{"--all"},
                                Words{"--per-rank"},
                                Words{"-f", "html", "-o", "x.html"},
                                Words{"--split-regions", "x"}}) {
    Words words{"a", "--digests"};
    words.insert(words.end(), question.begin(), question.end());
    EXPECT_TRUE(has(refusal_of(words), "--digests: digests cannot answer this"))
        << testing::PrintToString(question);
  }
  EXPECT_TRUE(has(refusal_of({"a", "--merged", "x.rsd", "--all"}), "--merged: digests cannot"));
}

TEST_F(Report, AnInputThatDoesNotExistIs66) {
  EXPECT_EQ(answer_of(make_report, {}).code, 66) << "no run is the latest";
  EXPECT_EQ(answer_of(make_report, {"nothing.sqlite"}).code, 66);
}

TEST_F(Report, WorkThatCannotBeReadIsRefusedBeforeTheInput) {
  EXPECT_TRUE(has(refusal_of({"nothing", "--flops", "decode=many"}), "--flops"));
  EXPECT_TRUE(has(refusal_of({"nothing", "--work", "decode"}), "--work"));
  EXPECT_TRUE(has(refusal_of({"nothing", "--what-if", "faster"}), "--what-if"));
}

class Export : public Runs {};

TEST_F(Export, TheFormatIsNamedOrThatOfTheFile) {
  const Answer unknown = answer_of(make_export, {"a"});
  EXPECT_EQ(unknown.code, 64);
  EXPECT_TRUE(has(unknown.err, "Name a file, -o run.sqlite, or a format: -f csv")) << unknown.err;
  EXPECT_EQ(answer_of(make_export, {"a", "-o", "x.html"}).code, 64);
  EXPECT_EQ(answer_of(make_export, {"a", "-o", "x.db"}).code, 66) << "the input is missing";
}

TEST_F(Export, ADatabaseAndAFolderAreNotForStandardOutput) {
  for (const char* to : {"", "-"}) {
    Words words{"a", "-f", "sqlite"};
    if (*to != '\0')
      words.insert(words.end(), {"-o", to});
    const Answer answer = answer_of(make_export, words);
    EXPECT_EQ(answer.code, 64);
    EXPECT_TRUE(has(answer.err, "a database cannot go to standard output")) << answer.err;
  }
  EXPECT_TRUE(
      has(answer_of(make_export, {"a", "-f", "parquet"}).err, "Parquet goes into a folder"));
}

TEST_F(Export, ATableHasAName) {
  const Answer answer = answer_of(make_export, {"a", "-f", "csv", "--table", "kernel"});
  EXPECT_EQ(answer.code, 64);
  EXPECT_TRUE(has(answer.err, "did you mean 'kernels'")) << answer.err;
}

}  // namespace cmd_runs_test
}  // namespace rangescope::cli
