#include "profile/captures.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "runs/manifest.hpp"

namespace rangescope::profile {
namespace captures_test {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

/// A recording of one range.
model::Session with_range(std::string_view name, std::int64_t start_ns = 0) {
  model::Session session;
  session.processes.push_back({.pid = 7});
  session.threads.push_back({.process = 0, .tid = 7});
  session.sources.push_back({.format = "nsys-sqlite", .maker = model::Maker::kNsys});
  session.ranges.push_back({.start_ns = start_ns, .end_ns = start_ns + 1000});
  session.ranges.back().name = session.strings.intern(name);
  session.begin_ns = start_ns;
  session.end_ns = start_ns + 1000;
  return session;
}

/// The same with a kernel.
model::Session with_kernel(std::string_view name) {
  model::Session session = with_range(name);
  session.devices.push_back({.process = 0});
  session.streams.push_back({.process = 0, .device = 0});
  session.kernel_names.push_back({.demangled = session.strings.intern("gemm")});
  session.kernel_shapes.emplace_back();
  session.kernels.push_back({.start_ns = 100, .end_ns = 200});
  return session;
}

TEST(BetterTimeline, IsTheOneWithGpuWorkElseTheNativeOne) {
  const model::Session empty, ranges = with_range("step"), gpu = with_kernel("step");
  EXPECT_EQ(better_timeline(nullptr, nullptr), nullptr);
  EXPECT_EQ(better_timeline(&gpu, &gpu), &gpu);
  EXPECT_EQ(better_timeline(&ranges, &gpu), &gpu);
  EXPECT_EQ(better_timeline(&gpu, &ranges), &gpu);
  const model::Session nsys_ranges = with_range("step");
  EXPECT_EQ(better_timeline(&ranges, &nsys_ranges), &ranges);
  EXPECT_EQ(better_timeline(&empty, &nsys_ranges), &nsys_ranges);
  EXPECT_EQ(better_timeline(&empty, nullptr), &empty);
  EXPECT_EQ(better_timeline(nullptr, &empty), &empty);
}

const analyze::NameFolder kNoFolding(analyze::FoldNames::kOff, {});

/// Empty files in a folder of their own, with sessions that stand for what is in them.
class Captures : public testing::Test {
 protected:
  fs::path add(const std::string& name, model::Session session) {
    fs::path file = folder_.path() / name;
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    EXPECT_TRUE(base::write_file(file, ""));
    sessions_.emplace(file, std::move(session));
    paths_.push_back(file);
    return file;
  }
  /// The folder of a finished run.
  void make_run(const std::string& name) {
    const fs::path run = folder_.path() / name;
    fs::create_directories(run);
    runs::Manifest manifest{.id = name, .argv = {"app"}, .end_unix_ns = 1};
    EXPECT_TRUE(runs::write_manifest(run, manifest));
  }
  Captured read(const read::Options& options = {}) {
    auto captured = read_captures(paths_, options, kNoFolding, std::move(sessions_));
    EXPECT_TRUE(captured) << base::to_string(captured.error());
    return captured ? std::move(*captured) : Captured{};
  }
  [[nodiscard]] static std::size_t kernels(const Captured& captured) {
    return captured.session.kernels.size();
  }

  base::TemporaryFolder folder_{"rangescope-captures"};
  Sessions sessions_;
  Paths paths_;
};

TEST_F(Captures, WithoutInputThereIsAHint) {
  const auto captured = read_captures({}, {}, kNoFolding);
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().code, base::Code::kUsage);
  EXPECT_EQ(captured.error().hint, "Name a run directory or a file.");
}

TEST_F(Captures, OfOneRunOneTimelineIsTaken) {
  make_run("run");
  const fs::path native = add("run/native/7.rstrace", with_range("step"));
  const fs::path nsys = add("run/nsys/nsys.sqlite", with_kernel("step"));
  const Captured captured = read();
  EXPECT_EQ(captured.session.ranges.size(), 1u);
  EXPECT_EQ(captured.in_order, Paths{nsys});
  ASSERT_EQ(captured.notes.size(), 1u);
  EXPECT_EQ(captured.notes[0],
            "times are those of nsys/nsys.sqlite; native/7.rstrace is another run of the program: "
            "report it by its path");
}

TEST_F(Captures, OfDifferentRunsEachTimelineCounts) {
  make_run("one");
  make_run("two");
  add("one/nsys/nsys.sqlite", with_kernel("step"));
  add("two/nsys/nsys.sqlite", with_kernel("eval"));
  const Captured captured = read();
  EXPECT_EQ(captured.session.ranges.size(), 2u);
  EXPECT_EQ(kernels(captured), 2u);
}

// A capture of nsys that repeats leaves several files of one run of the program.
TEST_F(Captures, AllReportsOfARepeatedCaptureCount) {
  make_run("run");
  add("run/nsys/nsys.1.sqlite", with_kernel("step"));
  add("run/nsys/nsys.2.sqlite", with_kernel("eval"));
  EXPECT_EQ(kernels(read()), 2u);
}

TEST_F(Captures, FilesThatAreInNoRunLieSideBySide) {
  add("a.sqlite", with_range("step"));
  add("b.sqlite", with_kernel("step"));
  const Captured captured = read();
  EXPECT_EQ(captured.session.ranges.size(), 2u);
  EXPECT_TRUE(captured.notes.empty());
}

TEST_F(Captures, ACopyOfARecordingIsLeftOut) {
  const fs::path first = add("a.sqlite", with_range("step")),
                 copy = add("b.sqlite", with_range("step"));
  const Captured captured = read();
  EXPECT_EQ(captured.session.ranges.size(), 1u);
  EXPECT_EQ(captured.notes,
            std::vector<std::string>{copy.string() + " was left out: it is the same recording as " +
                                     first.string()});
}

/// Began so long after 1970.
model::Session begun_at(std::int64_t unix_ns, std::string_view name) {
  model::Session session = with_range(name);
  session.clock.anchor_unix_ns = unix_ns;
  return session;
}

TEST_F(Captures, AreInTheOrderInWhichTheyWereMade) {
  const fs::path second = add("app10.sqlite", begun_at(2000, "b")),
                 unknown = add("app1.sqlite", with_range("c")),
                 first = add("app2.sqlite", begun_at(1000, "a"));
  EXPECT_EQ(read().in_order, (Paths{first, second, unknown}));
}

/// Of a process of that rank.
model::Session of_rank(std::uint32_t rank, std::int64_t unix_ns) {
  model::Session session = begun_at(unix_ns, "step " + std::to_string(rank));
  session.processes[0].rank = rank;
  return session;
}

TEST_F(Captures, OfRanksAreInTheOrderOfTheRanks) {
  const fs::path rank_10 = add("app10.sqlite", of_rank(10, 1000)),
                 rank_2 = add("app2.sqlite", of_rank(2, 2000));
  EXPECT_EQ(read().in_order, (Paths{rank_2, rank_10}));
}

TEST_F(Captures, OtherRanksAreLeftOut) {
  add("app0.sqlite", of_rank(0, 1000));
  const fs::path wanted = add("app1.sqlite", of_rank(1, 1000)),
                 without_rank = add("tool.sqlite", begun_at(3000, "load"));
  read::Options options;
  options.ranks = {1};
  EXPECT_EQ(read(options).in_order, (Paths{wanted, without_rank}));
}

TEST_F(Captures, WhereNoProcessIsOfTheRanksThatIsAnError) {
  add("app0.sqlite", of_rank(0, 1000));
  read::Options options;
  options.ranks = {5};
  const auto captured = read_captures(paths_, options, kNoFolding, std::move(sessions_));
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().code, base::Code::kNothingCaptured);
  EXPECT_EQ(captured.error().hint, "Leave out --rank.");
}

TEST_F(Captures, WhatOneToolLeftDamagedIsALossOfTheRun) {
  make_run("run");
  add("run/native/7.rstrace", with_range("step"));
  const fs::path damaged = add("run/ncu/ncu.ncu-rep", {});
  sessions_.erase(damaged);
  const Captured captured = read();
  EXPECT_EQ(captured.session.ranges.size(), 1u);
  ASSERT_EQ(captured.session.losses.size(), 1u);
  EXPECT_EQ(captured.session.losses[0].kind.id(), "unreadable_capture");
  EXPECT_NE(captured.session.losses[0].detail.find("ncu.ncu-rep"), std::string::npos);
}

TEST_F(Captures, AFileThatWasNamedAndCannotBeReadIsAnError) {
  add("a.sqlite", with_range("step"));
  sessions_.erase(add("b.ncu-rep", {}));
  EXPECT_FALSE(read_captures(paths_, {}, kNoFolding, std::move(sessions_)));
}

/// Results of ncu, numbered as in its pages.
model::Session results(std::size_t count, bool damaged = false) {
  model::Session session;
  session.sources.push_back({.format = "ncu-rep", .maker = model::Maker::kNcu, .paged = true});
  session.kernel_names.push_back({.demangled = session.strings.intern("gemm")});
  session.measurements.resize(count);
  for (model::Measurement& measurement : session.measurements)
    measurement.kernel_name = 0;
  if (damaged)
    session.losses.push_back({"damaged_result", 1, "result 2"});
  return session;
}

TEST_F(Captures, ResultsOfEachWholeReportAreFoundAgain) {
  const fs::path first = add("a.ncu-rep", results(2));
  add("b.ncu-rep", results(3, true));
  const fs::path third = add("c.ncu-rep", results(4));
  const Captured captured = read();
  EXPECT_EQ(captured.session.measurements.size(), 9u);
  ASSERT_EQ(captured.parts.size(), 2u);
  EXPECT_EQ(captured.parts[0].file, first);
  EXPECT_EQ(captured.parts[0].first, 0u);
  EXPECT_EQ(captured.parts[0].count, 2u);
  EXPECT_EQ(captured.parts[1].file, third);
  EXPECT_EQ(captured.parts[1].first, 5u);
  EXPECT_EQ(captured.parts[1].count, 4u);
}

/// A finished run whose manifest proves its files.
class Proven : public testing::Test {
 protected:
  void prove(const std::string& name, std::uint64_t bytes) {
    manifest_.files[name] = {.bytes = bytes, .sha256 = "0"};
  }
  void write(const std::string& name, std::size_t bytes) const {
    const fs::path file = run_.path() / name;
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(base::write_file(file, std::string(bytes, 'x')));
  }
  std::vector<std::string> missing(const std::vector<model::Loss>& noticed = {}) {
    EXPECT_TRUE(runs::write_manifest(run_.path(), manifest_));
    const Paths inputs{run_.path() / "native"};
    std::vector<std::string> losses;
    for (const model::Loss& loss : missing_captures(run_.path(), inputs, noticed))
      losses.push_back(std::string(loss.kind.id()) + " " + std::to_string(loss.count) + ": " +
                       loss.detail);
    return losses;
  }
  base::TemporaryFolder run_{"rangescope-proven"};
  runs::Manifest manifest_{.id = "run", .argv = {"app"}, .end_unix_ns = 1};
};

TEST_F(Proven, CapturesThatAreWholeMissNothing) {
  prove("native/1.rstrace", 10);
  write("native/1.rstrace", 10);
  EXPECT_TRUE(missing().empty());
}

TEST_F(Proven, CapturesThatAreGoneAreCountedAndThreeAreNamed) {
  for (const char* name : {"1", "2", "3", "4", "5"})
    prove("native/" + std::string(name) + ".rstrace", 10);
  EXPECT_EQ(missing(),
            std::vector<std::string>{
                "unreadable_captures 5: the run had more captures when it ended; missing: "
                "native/1.rstrace, native/2.rstrace, native/3.rstrace and 2 more"});
}

TEST_F(Proven, BytesThatWereCutOffAreCountedUnlessTheReaderNoticed) {
  prove("native/1.gpu", 100);
  write("native/1.gpu", 30);
  EXPECT_EQ(missing(),
            std::vector<std::string>{
                "torn_tail 70: bytes that captures had when the run ended are missing: "
                "native/1.gpu"});
  EXPECT_TRUE(missing({{"torn_tail", 8, "of 1.gpu"}}).empty());
}

TEST_F(Proven, OnlyCapturesThatAreReadCount) {
  prove("native/notes.txt", 10);
  prove("look/native/1.rstrace", 10);
  EXPECT_TRUE(missing().empty());
}

TEST_F(Proven, ARunThatHasNotEndedProvesNothing) {
  manifest_.end_unix_ns = 0;
  prove("native/1.rstrace", 10);
  EXPECT_TRUE(missing().empty());
}

TEST_F(Proven, AFileThatIsReadElsewhereIsNotReplaced) {
  EXPECT_TRUE(runs::write_manifest(run_.path(), manifest_));
  write("cmd.txt", 3);
  write("report.md", 3);
  const std::string name = run_.path().filename().string();
  EXPECT_EQ(kept_file(run_.path() / "cmd.txt"), "a part of the run " + name);
  EXPECT_EQ(kept_file(run_.path() / "report.md"), "");
  EXPECT_EQ(kept_file(run_.path() / "not-there.txt"), "");
}

TEST(KeptFile, ABaselineAndAnArchiveAreKeptAndATextIsNot) {
  const base::TemporaryFolder folder("rangescope-kept");
  const auto kept = [&](const std::string& text) {
    const fs::path file = folder.path() / "file";
    EXPECT_TRUE(base::write_file(file, text));
    return kept_file(file);
  };
  EXPECT_EQ(kept(R"({"schema": "rangescope.baseline/1"})"), "a baseline");
  EXPECT_EQ(kept("\x28\xb5\x2f\xfd packed"), "an archive");
  EXPECT_EQ(kept("notes"), "");
}

}  // namespace captures_test
}  // namespace rangescope::profile
