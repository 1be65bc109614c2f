#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "profile/composed_test.hpp"
#include "profile/engine.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace refusals_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using std::chrono::seconds;

/// Runs that are refused before anything is made.
class Refusals : public testing::Test {
 protected:
  /// Code and first line of what is said.
  std::string refusal(const Words& assignments, Settings settings = {}) {
    Words words{"workload.command=['true']", "run.root=" + (folder_.path() / "runs").string()};
    words.insert(words.end(), assignments.begin(), assignments.end());
    const config::Config config = composed(words);
    testing::internal::CaptureStderr();
    const Done done = run(config, std::move(settings));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(done.directory, "");
    EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
    return std::to_string(done.code) + " " + said.substr(0, said.find('\n'));
  }
  static Settings in(const WindowChoice& windows) {
    Settings settings;
    settings.windows = windows;
    return settings;
  }

  base::TemporaryFolder folder_{"rangescope-refusals"};
};

const WindowChoice kKeepLast{.keep_last = seconds(60)}, kAfter{.after = seconds(5)},
    kCounted{.counted = WindowChoice::Counted{"step", 1, 2}};

TEST_F(Refusals, WithoutAProgramThereIsNothingToRun) {
  EXPECT_EQ(refusal({"workload.command=[]"}), "64 rangescope: error: there is no program to run");
}

TEST_F(Refusals, AConditionMarksOnlyWhatIsKept) {
  const WindowChoice::When when{.range = "step", .limit_ns = 1};
  EXPECT_EQ(refusal({}, in({.when = when})),
            "64 rangescope: error: --when: --when marks what --keep-last keeps");
}

TEST_F(Refusals, WhatRecordsAllTheTimeHasNoOtherWindow) {
  const std::string said = "64 rangescope: error: --keep-last: --keep-last records all the time";
  for (WindowChoice windows : {kAfter, kCounted, WindowChoice{.stopped = true}}) {
    windows.keep_last = seconds(60);
    EXPECT_EQ(refusal({}, in(windows)), said);
  }
}

TEST_F(Refusals, AWindowOfInstancesHasNoTimes) {
  WindowChoice windows = kCounted;
  windows.length = seconds(1);
  EXPECT_EQ(refusal({}, in(windows)),
            "64 rangescope: error: --window: --window already defines the window");
}

TEST_F(Refusals, WindowsAreOfOneRunOfTheNativeStage) {
  const auto without = [](const std::string& option) {
    return "64 rangescope: error: " + option +
           ": windows record one run of the native stage, without " + option;
  };
  const std::string nsys = "pipeline.nsys.enable=true";
  EXPECT_EQ(refusal({nsys}, in(kAfter)), without("--nsys"));
  EXPECT_EQ(refusal({nsys, "pipeline.native.enable=false"}, in(kKeepLast)), without("--no-native"));
  EXPECT_EQ(refusal({"pipeline.ncu.enable=true"}, in(kCounted)), without("--ncu"));
  EXPECT_EQ(refusal({"pipeline.native.metrics=[memory]"}, in(kAfter)), without("--metrics"));
  Settings repeated = in(kAfter);
  repeated.repeat = 3;
  EXPECT_EQ(refusal({}, std::move(repeated)), without("--repeat"));
  Settings counting = in(kAfter);
  counting.sampling.cpu_counters = {"branch"};
  EXPECT_EQ(refusal({}, std::move(counting)), without("--cpu-counters"));
}

// capture_range=cudaProfilerApi makes a window without nsys.
TEST_F(Refusals, CallsThatOpenAWindowAreAWindow) {
  EXPECT_EQ(
      refusal({"pipeline.nsys.capture_range=cudaProfilerApi", "pipeline.native.metrics=[memory]"}),
      "64 rangescope: error: --metrics: windows record one run of the native stage, without "
      "--metrics");
}

TEST_F(Refusals, ALightRunNeedsTheNativeStage) {
  Settings light;
  light.native.extra_env[wire::kLight] = "1";
  EXPECT_EQ(refusal({"pipeline.native.enable=false", "pipeline.nsys.enable=true"}, light),
            "64 rangescope: error: --light: --light needs the native stage, which is off");
}

TEST_F(Refusals, InputsThatAreNotThereEndTheRunBeforeItBegins) {
  EXPECT_TRUE(refusal({"workload.inputs=[/no/such/data]"}).starts_with("66 "));
  EXPECT_TRUE(refusal({"workload.subset=/no/such/list"}).starts_with("66 "));
}

TEST_F(Refusals, ARuleToCompressIsCheckedAtTheStart) {
  EXPECT_TRUE(refusal({"run.compress=sometimes"}).starts_with("64 "));
}

TEST_F(Refusals, RangesAndKernelsThatExcludeEachOtherAreRefused) {
  EXPECT_EQ(refusal({"ranges.include=[step]", "ranges.exclude=[step]"}),
            "64 rangescope: error: --include, --exclude: 'step' is included and excluded");
  EXPECT_EQ(refusal({"kernels.include=[gemm]", "kernels.exclude=[gemm]"}),
            "64 rangescope: error: --kernel, --exclude-kernel: kernel 'gemm' is included and "
            "excluded");
}

TEST_F(Refusals, AFileOfThisFolderIsNamedByItsPath) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  EXPECT_TRUE(base::write_file("rangescope-refused-program", ""));
  const config::Config config = composed({"workload.command=[rangescope-refused-program]"});
  testing::internal::CaptureStderr();
  const Done done = run(config, {});
  const std::string said = testing::internal::GetCapturedStderr();
  fs::current_path(before);
  EXPECT_EQ(done.code, 66);
  EXPECT_NE(said.find("hint: Write ./rangescope-refused-program for the file of this folder"),
            std::string::npos)
      << said;
}

}  // namespace refusals_test
}  // namespace rangescope::profile
