#include "profile/sides.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"
#include "profile/digests.hpp"
#include "profile/import.hpp"
#include "runs/baselines.hpp"
#include "runs/imports.hpp"
#include "runs/job/folder.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::profile {
namespace sides_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

fs::path golden(const std::string& file) {
  return fs::path(base::source_dir) / "tests/golden" / file;
}

/// A run of `app` without regions.
model::Digest digest(const std::string& id, const std::string& program = "app") {
  model::Digest run;
  run.run.id = id;
  run.run.command = {program};
  run.run.exit_code = 0;
  run.devices = {"NVIDIA H100, 132 SMs"};
  return run;
}

/// Runs, reports and baselines in a folder of their own.
class Sides : public testing::Test {
 protected:
  [[nodiscard]] fs::path place(const std::string& name) const { return folder_.path() / name; }
  /// report.json of a recording with that name.
  void copy_report(const std::string& to) const {
    fs::create_directories(place(to).parent_path());
    fs::copy_file(golden("report/nvtx.json"), place(to));
  }
  void make_run(const std::string& name, std::int64_t start_unix_ns) const {
    fs::create_directories(place(name));
    const runs::Manifest manifest{.id = place(name).filename().string(),
                                  .argv = {"app"},
                                  .start_unix_ns = start_unix_ns,
                                  .end_unix_ns = start_unix_ns + 1};
    EXPECT_TRUE(runs::write_manifest(place(name), manifest));
    copy_report(name + "/report.json");
  }
  [[nodiscard]] base::Result<model::Side> load(const std::string& written) const {
    return load_side(written, {.root = place("runs").string()});
  }
  [[nodiscard]] std::size_t runs_of(const std::string& written) const {
    const auto side = load(written);
    EXPECT_TRUE(side) << base::to_string(side.error());
    return side ? side->runs.size() : 0;
  }

  base::TemporaryFolder folder_{"rangescope-sides"};
};

TEST_F(Sides, AReportIsOneRun) {
  copy_report("a.json");
  EXPECT_EQ(runs_of(place("a.json").string()), 1u);
}

TEST_F(Sides, AFolderOfReportsHasOneRunEach) {
  copy_report("reports/b.json");
  copy_report("reports/a.json");
  EXPECT_TRUE(base::write_file(place("reports/other.json"), "{}"));
  EXPECT_EQ(runs_of(place("reports").string()), 2u);
}

TEST_F(Sides, ARunWithoutCapturesIsItsReport) {
  make_run("runs/2026-a", 1);
  EXPECT_EQ(runs_of("2026-a"), 1u);
  fs::remove(place("runs/2026-a/report.json"));
  const auto side = load("2026-a");
  ASSERT_FALSE(side);
  EXPECT_EQ(side.error().code, base::Code::kNothingCaptured);
}

TEST_F(Sides, TheRepetitionsOfASeriesAreItsRuns) {
  make_run("runs/2026-a", 1);
  for (const char* number : {"001", "002", "003"})
    make_run("runs/2026-a/repeats/" + std::string(number), 1);
  make_run("runs/2026-b", 2);
  EXPECT_EQ(runs_of("2026-a"), 3u);
  EXPECT_EQ(runs_of(place("runs").string()), 4u);
}

TEST_F(Sides, LatestIsCalledByItsName) {
  make_run("runs/2026-a", 1);
  make_run("runs/2026-b", 2);
  const auto side = load("latest");
  ASSERT_TRUE(side);
  EXPECT_EQ(side->label, "2026-b");
}

TEST_F(Sides, WhatIsNeitherFileNorRunIsCalledSo) {
  EXPECT_EQ(load("no/such.json").error().what, "there is no such file or run: no/such.json");
}

TEST_F(Sides, ABaselineHasAllItsRuns) {
  const auto file =
      save_baseline(place("kept"), "main", {"now", {digest("a"), digest("b"), digest("c")}});
  ASSERT_TRUE(file) << base::to_string(file.error());
  EXPECT_EQ(runs_of(file->string()), 3u);
  const auto baseline = runs::read_baseline(*file);
  ASSERT_TRUE(baseline);
  EXPECT_EQ(baseline->name, "main");
  EXPECT_EQ(baseline->machine, "nvidia-h100");
}

TEST_F(Sides, AProgramThatFailedIsNoBaseline) {
  model::Digest failed = digest("b");
  failed.run.exit_code = 3;
  const auto saved = save_baseline(place("kept"), "main", {"now", {digest("a"), failed}});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, base::Code::kNotComparable);
  EXPECT_EQ(saved.error().where, "b");
  model::Digest killed = digest("c");
  killed.run.exit_code.reset();
  killed.run.signal = 9;
  EXPECT_FALSE(save_baseline(place("kept"), "main", {"now", {killed}}));
  EXPECT_FALSE(fs::exists(place("kept")));
}

TEST_F(Sides, RunsOfTwoProgramsAreNoBaseline) {
  const auto saved =
      save_baseline(place("kept"), "main", {"now", {digest("a"), digest("b", "other")}});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, base::Code::kNotComparable);
}

TEST_F(Sides, AStoreIsNoRunToPush) {
  const auto pushed = load_pushed("postgresql://host/db#main", {});
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code, base::Code::kUsage);
}

TEST_F(Sides, APushIsCalledByItsRunAndSeveralByTheirFolder) {
  copy_report("reports/a.json");
  const auto single = load_pushed(place("reports/").string(), {});
  copy_report("reports/b.json");
  const auto several = load_pushed(place("reports/").string(), {});
  ASSERT_TRUE(single && several);
  EXPECT_EQ(single->label, single->runs.front().run.id);
  EXPECT_EQ(several->label, "reports");
}

/// Files of other tools, and the runs that are made of them.
class Imported : public Sides {
 protected:
  [[nodiscard]] base::Result<fs::path> import(const Words& files) const {
    return import_files(files, place("runs"), {"runs", "import"}, {});
  }
};

TEST_F(Imported, AFileIsCopiedBelowTheNameOfItsTool) {
  const fs::path given = golden("ncu/k_nested.ncu-repz");
  const auto run = import({given.string()});
  ASSERT_TRUE(run) << base::to_string(run.error());
  const auto imports = runs::read_imports(*run);
  ASSERT_TRUE(imports && imports->size() == 1);
  const runs::Import& import = imports->front();
  EXPECT_EQ(import.file, "ncu/k_nested.ncu-repz");
  EXPECT_EQ(import.given_path, given.lexically_normal().string());
  EXPECT_EQ(import.original, "");
  EXPECT_EQ(import.bytes, fs::file_size(given));
  EXPECT_FALSE(import.redacted);
  EXPECT_TRUE(fs::exists(*run / "report.json"));
  const auto status = runs::read_status(*run);
  EXPECT_TRUE(status && status->outcome == "ok");
}

TEST_F(Imported, AnExportOfNsysLosesEnvironmentsAndTheGivenFileStays) {
  const fs::path given = place("work.sqlite");
  fs::copy_file(golden("nsys/work.sqlite"), given);
  const std::string before = base::read_file(given).value_or("");
  const auto run = import({given.string()});
  ASSERT_TRUE(run) << base::to_string(run.error());
  const auto imports = runs::read_imports(*run);
  ASSERT_TRUE(imports && imports->size() == 1);
  EXPECT_EQ(imports->front().file, "nsys/work.sqlite");
  EXPECT_TRUE(imports->front().redacted);
  EXPECT_EQ(base::read_file(given).value_or(""), before);
}

TEST_F(Imported, FilesOfOneNameLieSideBySide) {
  fs::create_directories(place("a"));
  fs::create_directories(place("b"));
  fs::copy_file(golden("ncu/k_nested.ncu-repz"), place("a/x.ncu-repz"));
  fs::copy_file(golden("ncu/k_decode.ncu-repz"), place("b/x.ncu-repz"));
  const auto run = import({place("a/x.ncu-repz").string(), place("b/x.ncu-repz").string()});
  ASSERT_TRUE(run) << base::to_string(run.error());
  const auto imports = runs::read_imports(*run);
  ASSERT_TRUE(imports && imports->size() == 2);
  EXPECT_EQ((*imports)[0].file, "ncu/x.ncu-repz");
  EXPECT_EQ((*imports)[1].file, "ncu/x-2.ncu-repz");
}

TEST_F(Imported, WhatCannotBeReadLeavesNoRun) {
  EXPECT_TRUE(base::write_file(place("notes.txt"), "no recording"));
  const std::string good = golden("ncu/k_nested.ncu-repz").string();
  EXPECT_FALSE(import({good, place("notes.txt").string()}));
  EXPECT_EQ(import({good, good}).error().what, "the same file twice");
  EXPECT_FALSE(fs::exists(place("runs")));
}

TEST_F(Imported, ARunIsNotImportedAgain) {
  make_run("kept/2026-a", 1);
  const auto run = import({place("kept/2026-a").string()});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, base::Code::kUsage);
  EXPECT_EQ(run.error().what, "this is already a run");
}

TEST(JobDigests, SufficeUnlessOccurrencesOrEventsAreAskedFor) {
  EXPECT_TRUE(digests_suffice({}));
  EXPECT_TRUE(digests_suffice({.per_process = false, .device = "h100-sxm", .threads = 4}));
  EXPECT_TRUE(digests_suffice({.top_kernels = 3, .samples = 0}));
  EXPECT_FALSE(digests_suffice({.per_thread = true}));
  EXPECT_FALSE(digests_suffice({.flops = {"decode=1e12"}}));
  EXPECT_FALSE(digests_suffice({.ranges = *model::RangeSelection::parse({"decode"}, {})}));
  EXPECT_FALSE(digests_suffice({.histograms = true}));
}

TEST_F(Sides, ARankWithoutDigestAndCaptureIsALossOfTheJob) {
  const runs::job::Place rank{
      .launcher = "slurm", .name = "slurm-1.0", .key = "1.0", .rank = 3, .world = 4};
  const auto run = runs::job::make_run_dir(folder_.path(), rank, {});
  ASSERT_TRUE(run);
  const auto merged = merge_runs(std::span(&*run, 1));
  ASSERT_TRUE(merged);
  EXPECT_TRUE(merged->processes.empty());
  ASSERT_EQ(merged->losses.size(), 1u);
  EXPECT_EQ(merged->losses[0].rank, 3u);
  EXPECT_EQ(merged->losses[0].kind, "ranks_unreadable");
  const auto job = runs::job::read_job(run->parent_path());
  ASSERT_TRUE(job);
  EXPECT_EQ(analyze_digests(*job, {}).error().code, base::Code::kNothingCaptured);
}

}  // namespace sides_test
}  // namespace rangescope::profile
