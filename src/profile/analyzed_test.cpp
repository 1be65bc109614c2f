#include "profile/analyzed.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"
#include "profile/foreign_run.hpp"
#include "runs/manifest.hpp"

namespace rangescope::profile {
namespace analyzed_test {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

fs::path golden(const std::string& file) {
  return fs::path(base::source_dir) / "tests/golden" / file;
}

model::Session of_native() {
  model::Session session;
  session.sources.push_back({.format = "native", .maker = model::Maker::kRangescope});
  return session;
}

TEST(WhyNoRange, ProcessesThatOpenedNoneAreCounted) {
  model::Session session = of_native();
  session.processes.resize(2);
  session.losses.push_back({"no_capture_file", 1, "a file could not be made"});
  EXPECT_EQ(why_no_range(session), "2 processes, but none opened a range");
}

TEST(WhyNoRange, ALossThatExplainsItIsTheReason) {
  model::Session session = of_native();
  session.losses.push_back({"torn_tail", 8, "bytes are missing"});
  session.losses.push_back({"no_capture_file", 1, "a file could not be made"});
  EXPECT_EQ(why_no_range(session), "a file could not be made");
}

TEST(WhyNoRange, WithoutAnythingNoProcessLoadedTheLibrary) {
  EXPECT_TRUE(why_no_range({}).starts_with("no process loaded rangescope's library"));
}

TEST(HoldsProgram, OnlyOurOwnCaptureOrSamplesOfTheCpuTellOfIt) {
  model::Session native = of_native();
  EXPECT_FALSE(holds_program(native));
  native.processes.emplace_back();
  EXPECT_TRUE(holds_program(native));
  native.sources[0].maker = model::Maker::kNsys;
  EXPECT_FALSE(holds_program(native));
  native.cpu.samples.emplace_back();
  EXPECT_TRUE(holds_program(native));
}

TEST(HasLoss, InformationIsNone) {
  model::Report report;
  EXPECT_FALSE(has_loss(report));
  report.losses.push_back({"torn_tail", 1, ""});
  EXPECT_TRUE(has_loss(report));
  report.losses[0].severity = model::Severity::kInfo;
  EXPECT_FALSE(has_loss(report));
}

/// Runs in a folder of their own.
class Inputs : public testing::Test {
 protected:
  fs::path make_run(const std::string& name, std::int64_t start_unix_ns = 0) {
    const fs::path run = root_.path() / name;
    fs::create_directories(run);
    const runs::Manifest manifest{.id = run.filename().string(),
                                  .argv = {"app"},
                                  .start_unix_ns = start_unix_ns,
                                  .end_unix_ns = start_unix_ns + 1};
    EXPECT_TRUE(runs::write_manifest(run, manifest));
    return run;
  }
  /// A repetition that took that long.
  fs::path make_repeat(const fs::path& run, const std::string& number, std::int64_t wall_ns) {
    const fs::path repeat = run / "repeats" / number;
    fs::create_directories(repeat);
    const runs::Manifest manifest{
        .id = number, .argv = {"app"}, .start_unix_ns = 1, .end_unix_ns = 1 + wall_ns};
    EXPECT_TRUE(runs::write_manifest(repeat, manifest));
    return repeat;
  }
  static void write(const fs::path& file) {
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(base::write_file(file, "x"));
  }
  base::Result<Paths> find(const std::string& written) {
    run_.clear();
    testing::internal::CaptureStderr();
    auto inputs = find_inputs(root_.path(), written, run_);
    stderr_ = testing::internal::GetCapturedStderr();
    return inputs;
  }

  base::TemporaryFolder root_{"rangescope-inputs"};
  fs::path run_;
  std::string stderr_;
};

TEST_F(Inputs, OfARunAreItsCaptures) {
  const fs::path run = make_run("2026-a");
  write(run / "native" / "1.rstrace");
  write(run / "ncu" / "ncu.ncu-rep");
  write(run / "ncu" / "details.csv");
  const auto inputs = find("2026-a");
  ASSERT_TRUE(inputs);
  EXPECT_EQ(*inputs, (Paths{run / "native", run / "ncu" / "ncu.ncu-rep"}));
  EXPECT_EQ(run_, run);
}

TEST_F(Inputs, AnEmptyFolderIsLeftOutUnlessItIsAllThereIs) {
  const fs::path run = make_run("2026-a");
  fs::create_directories(run / "native");
  EXPECT_EQ(captures_to_read(run), Paths{run / "native"});
  EXPECT_TRUE(filled_captures(run).empty());
  write(run / "ncu" / "ncu.ncu-rep");
  EXPECT_EQ(captures_to_read(run), Paths{run / "ncu" / "ncu.ncu-rep"});
}

TEST_F(Inputs, OfASeriesTheRepetitionOfMedianDurationCounts) {
  const fs::path run = make_run("2026-a");
  write(make_repeat(run, "001", 300) / "native" / "1.rstrace");
  const fs::path median = make_repeat(run, "002", 200);
  write(median / "native" / "1.rstrace");
  write(make_repeat(run, "003", 100) / "native" / "1.rstrace");
  write(run / "ncu" / "ncu.ncu-rep");
  const auto inputs = find("2026-a");
  ASSERT_TRUE(inputs);
  EXPECT_EQ(*inputs, (Paths{median / "native", run / "ncu" / "ncu.ncu-rep"}));
  EXPECT_EQ(run_, median);
  EXPECT_NE(stderr_.find("the repetition of median duration, 002 of 3"), std::string::npos);
}

TEST_F(Inputs, ARunWithoutCapturesSaysWhereToLook) {
  make_run("2026-a");
  const auto inputs = find("2026-a");
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().code, base::Code::kNothingCaptured);
  EXPECT_EQ(inputs.error().hint, "See what happened: rangescope runs show 2026-a");
}

TEST_F(Inputs, AFolderOfOneRunIsThatRunAndOneOfSeveralIsRefused) {
  const fs::path first = make_run("runs/a", 1);
  write(first / "native" / "1.rstrace");
  const auto one = find((root_.path() / "runs").string());
  ASSERT_TRUE(one);
  EXPECT_EQ(*one, Paths{first / "native"});
  const fs::path second = make_run("runs/b", 2);
  const auto several = find((root_.path() / "runs").string());
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, base::Code::kUsage);
  EXPECT_EQ(several.error().hint, "Name one of them: " + second.string());
}

TEST_F(Inputs, AFileIsItself) {
  write(root_.path() / "a.sqlite");
  EXPECT_EQ(find((root_.path() / "a.sqlite").string()).value_or(Paths{}),
            Paths{root_.path() / "a.sqlite"});
  EXPECT_EQ(run_, "");
}

TEST_F(Inputs, WhatLooksLikeAFileIsNotTakenForTheNameOfARun) {
  EXPECT_EQ(find("no/such.file").error().what, "there is no such file or run: no/such.file");
  EXPECT_EQ(find("no/such.file").error().code, base::Code::kNoInput);
}

/// As other tools lay their run folders out.
class ForeignRun : public Inputs {
 protected:
  void copy(const std::string& from, const std::string& to) {
    fs::create_directories((root_.path() / to).parent_path());
    fs::copy_file(golden(from), root_.path() / to);
  }
};

TEST_F(ForeignRun, TablesCountOnlyWhereThereIsNoRecordingOfTheirTool) {
  copy("nsys/work_cuda_gpu_kern_sum.csv", "nsys/work_cuda_gpu_kern_sum.csv");
  EXPECT_EQ(captures_of_foreign_run(root_.path()),
            Paths{root_.path() / "nsys/work_cuda_gpu_kern_sum.csv"});
  copy("nsys/work.sqlite", "nsys/work.sqlite");
  EXPECT_EQ(captures_of_foreign_run(root_.path()), Paths{root_.path() / "nsys/work.sqlite"});
}

TEST_F(ForeignRun, ToolsAreReadInOrderAndOtherFilesAreNone) {
  fs::create_directories(root_.path() / "torch_profiler");
  EXPECT_TRUE(base::write_file(root_.path() / "torch_profiler/trace.json",
                               R"({"displayTimeUnit": "ns", "traceEvents": [{"ph": "X"}]})"));
  copy("ncu/k_nested.ncu-repz", "ncu/a.ncu-repz");
  write(root_.path() / "ncu" / "notes.txt");
  write(root_.path() / "other" / "a.txt");
  const Paths captures{root_.path() / "ncu/a.ncu-repz", root_.path() / "torch_profiler/trace.json"};
  EXPECT_EQ(captures_of_foreign_run(root_.path()), captures);
  const auto inputs = find(root_.path().string());
  ASSERT_TRUE(inputs);
  EXPECT_EQ(*inputs, captures);
  EXPECT_NE(stderr_.find("is a run folder of another tool; read from it: ncu/a.ncu-repz"),
            std::string::npos)
      << stderr_;
}

TEST_F(ForeignRun, AFolderWithoutThemIsNone) {
  write(root_.path() / "a.txt");
  EXPECT_TRUE(captures_of_foreign_run(root_.path()).empty());
}

TEST_F(Inputs, OfARunThatCapturedNothingThereIsNoReport) {
  const fs::path run = make_run("2026-a");
  fs::create_directories(run / "native");
  const auto analyzed = analyze_input(run / "native", run, {});
  ASSERT_FALSE(analyzed);
  EXPECT_EQ(analyzed.error().code, base::Code::kNothingCaptured);
  EXPECT_TRUE(analyzed.error().what.starts_with("nothing was captured: no process loaded"));
  EXPECT_TRUE(analyzed.error().hint.starts_with("Check that the program calls NVTX 3"));
}

/// What is said of a session in which there is nothing.
base::Error error_of(model::Session session) {
  const base::TemporaryFolder folder("rangescope-nothing");
  const fs::path file = folder.path() / "a.sqlite";
  EXPECT_TRUE(base::write_file(file, ""));
  Sessions read;
  read.emplace(file, std::move(session));
  const auto analyzed = analyze_inputs(std::span(&file, 1), {}, {}, {}, std::move(read));
  EXPECT_FALSE(analyzed);
  return analyzed ? base::Error{} : analyzed.error();
}

model::Session of_tool(const std::string& format, model::Maker maker) {
  model::Session session;
  session.sources.push_back({.format = format, .maker = maker});
  return session;
}

TEST(NothingCaptured, TheOptionThatIsOftenForgottenIsTheHint) {
  EXPECT_EQ(error_of(of_tool("nsys-sqlite", model::Maker::kNsys)).hint,
            "Check that nsys recorded with --trace=cuda,nvtx");
  EXPECT_EQ(error_of(of_tool("ncu-rep", model::Maker::kNcu)).hint,
            "Check ncu's filters: they matched no kernel");
  EXPECT_EQ(error_of(of_tool("proton", model::Maker::kOther)).hint,
            "Check the tool's recording options");
}

TEST(NothingCaptured, TheToolsOwnReasonGoesBeforeIt) {
  model::Session session = of_tool("nsys-sqlite", model::Maker::kNsys);
  session.losses.push_back(
      {"nsys_diagnostic", 1, "Not all NVTX events might have been collected."});
  EXPECT_EQ(error_of(std::move(session)).hint, "Not all NVTX events might have been collected.");
  session = of_tool("nsys-sqlite", model::Maker::kNsys);
  session.losses.push_back(
      {"nsys_diagnostic", 1, "Not all NVTX events might have been collected."});
  session.losses.push_back({"nsys_diagnostic", 1, "The target was killed."});
  EXPECT_EQ(error_of(std::move(session)).hint, "The target was killed.");
}

TEST(NothingCaptured, WithoutAFileForTheCaptureTheLimitsAreTheHint) {
  model::Session session = of_native();
  session.losses.push_back({"no_capture_file", 1, "a file could not be made"});
  const base::Error error = error_of(std::move(session));
  EXPECT_EQ(error.what, "nothing was captured: a file could not be made");
  EXPECT_TRUE(error.hint.starts_with("Let the program open and write files"));
}

TEST_F(Inputs, OptionsThatAreLeftOpenAreThoseOfTheRun) {
  const fs::path run = make_run("2026-a");
  EXPECT_TRUE(base::write_file(run / "config.yaml", "report: {nest: '::'}\n"));
  const auto paths = [&](const analyze::Options& options) {
    model::Session session = of_native();
    session.processes.push_back({.pid = 7});
    session.threads.push_back({.process = 0, .tid = 7});
    session.ranges.push_back({.start_ns = 0, .end_ns = 10});
    session.ranges.back().name = session.strings.intern("A::B");
    session.end_ns = 10;
    const fs::path capture = run / "native";
    Sessions read;
    read.emplace(capture, std::move(session));
    const auto analyzed = analyze_inputs(std::span(&capture, 1), run, options, {}, std::move(read));
    EXPECT_TRUE(analyzed) << base::to_string(analyzed.error());
    std::vector<std::size_t> depths;
    for (const model::Region& region : analyzed->report.regions)
      depths.push_back(region.path.size());
    return depths;
  };
  write(run / "native" / "1.rstrace");
  EXPECT_EQ(paths({}), (std::vector<std::size_t>{1, 2}));
  analyze::Options by_slash;
  by_slash.nest = "/";
  EXPECT_EQ(paths(by_slash), std::vector<std::size_t>{1});
}

TEST_F(Inputs, AreNamedAsACommandLineCanNameThem) {
  const fs::path run = make_run("2026-a");
  EXPECT_EQ(named_input("a.sqlite", {}), "a.sqlite");
  EXPECT_EQ(named_input(run / "native", run), run.string());
}

}  // namespace analyzed_test
}  // namespace rangescope::profile
