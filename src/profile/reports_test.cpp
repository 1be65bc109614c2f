#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "profile/composed_test.hpp"
#include "profile/kernel_figures.hpp"
#include "profile/split_regions.hpp"
#include "profile/stage.hpp"

namespace rangescope::profile {
namespace reports_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string text_of(const fs::path& file) {
  return base::read_file(file).value_or("(no such file)");
}

/// A run that writes its reports of stages that have ended.
class Reports : public testing::Test {
 protected:
  void SetUp() override {
    run_.folder = folder_.path();
    run_.runner.emplace(run_.folder);
    run_.args.talk.report = [this](const Analyzed& analyzed) -> base::Result<void> {
      notes_shown_.push_back(analyzed.report.notes);
      return {};
    };
  }
  const model::Report& write(bool show = true) {
    testing::internal::CaptureStderr();
    written_ = write_reports(run_, analyzed_, show);
    stderr_ = testing::internal::GetCapturedStderr();
    return analyzed_.report;
  }

  base::TemporaryFolder folder_{"rangescope-reports"};
  config::Config config_ = composed({});
  profile::Run run_{config_, {}};
  Analyzed analyzed_;
  base::Result<void> written_;
  std::vector<Words> notes_shown_;
  std::string stderr_;
};

TEST_F(Reports, AStageThatFailedOnTheWayToResultsIsANote) {
  run_.runner->record(
      {.stage = "ncu", .step = "range", .outcome = "failed", .message = "ncu: it was refused"});
  run_.captured = {"ncu"};
  EXPECT_EQ(write().notes, Words{"ncu, range: it was refused"});
  EXPECT_TRUE(analyzed_.report.losses.empty());
}

TEST_F(Reports, AStageThatHasNothingAtAllIsALossWithItsCure) {
  run_.runner->record({.stage = "nsys",
                       .outcome = "failed",
                       .message = "nsys: the disk is full",
                       .cure = "Free some space"});
  run_.runner->record({.stage = "ncu", .step = "kernel", .outcome = "empty", .message = "nothing"});
  const auto& losses = write().losses;
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].kind.id(), "stage_failed");
  EXPECT_EQ(losses[0].detail, "nsys: the disk is full. Free some space");
  EXPECT_EQ(losses[1].kind.id(), "stage_empty");
  EXPECT_EQ(losses[1].detail, "ncu, kernel: nothing");
}

TEST_F(Reports, EqualAttemptsAreOneLossThatCountsThem) {
  for (int attempt = 1; attempt <= 3; ++attempt)
    run_.runner->record(
        {.stage = "nsys", .attempt = attempt, .outcome = "failed", .message = "nsys: busy"});
  const auto& losses = write().losses;
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].count, 3u);
}

TEST_F(Reports, ALossWithAFindingRefersToIt) {
  run_.findings.push_back({.id = "ncu.busy"});
  run_.runner->record({.stage = "ncu", .outcome = "failed", .why = "ncu.busy", .message = "busy"});
  run_.runner->record({.stage = "ncu", .step = "range", .outcome = "failed", .why = "busy"});
  const auto& losses = write().losses;
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].detail, "ncu captured nothing: see ncu.busy");
  EXPECT_EQ(losses[1].detail, "ncu, range captured nothing: see ncu.busy");
  EXPECT_EQ(analyzed_.report.findings.size(), 1u);
}

TEST_F(Reports, ALookThatSawNothingIsNoLoss) {
  run_.runner->record({.stage = "look", .outcome = "empty", .message = "native: no range"});
  EXPECT_EQ(write().notes, Words{"look: native: no range"});
  EXPECT_TRUE(analyzed_.report.losses.empty());
}

TEST_F(Reports, StepsThatWereRefusedOrWorkedAreNeither) {
  run_.runner->record({.stage = "ncu", .step = "native", .outcome = "refused", .message = "no"});
  run_.runner->record({.stage = "ncu", .step = "range", .outcome = "ok", .message = "3 results"});
  EXPECT_TRUE(write().notes.empty());
  EXPECT_TRUE(analyzed_.report.losses.empty());
}

TEST_F(Reports, NotesThatWerePrintedAreNotShownAgainButKept) {
  run_.notes = {"native: 3 ranges"};
  analyzed_.report.notes = {"times are of run 2"};
  run_.args.talk.report_shows_findings = true;
  (void)write();
  ASSERT_EQ(notes_shown_.size(), 1u);
  EXPECT_EQ(notes_shown_[0], Words{"times are of run 2"});
  EXPECT_NE(text_of(folder_.path() / "report.json").find("native: 3 ranges"), std::string::npos);
}

TEST_F(Reports, WithoutResultsTheyAreWrittenAndNotShown) {
  (void)write(false);
  EXPECT_TRUE(written_);
  EXPECT_TRUE(notes_shown_.empty());
  for (const char* file : {"kernels.md", "summary.md", "summary.svg", "report.json", "report.md"})
    EXPECT_TRUE(fs::exists(folder_.path() / file)) << file;
  EXPECT_FALSE(fs::exists(folder_.path() / "operators.md"));
  EXPECT_FALSE(fs::exists(folder_.path() / "ncu"));
}

TEST_F(Reports, WhereTheyCannotBeWrittenTheyAreShownAllTheSame) {
  fs::create_directory(folder_.path() / "summary.md");
  (void)write();
  EXPECT_FALSE(written_);
  EXPECT_EQ(notes_shown_.size(), 1u);
}

TEST_F(Reports, CountersThatAreIncompleteAreSaidWhereNobodyChoseHow) {
  run_.counters.emplace();
  run_.args.counters.passes = "auto";
  analyzed_.report.losses.push_back({"counters_incomplete", 1, "decode lacks 2 passes"});
  (void)write();
  EXPECT_EQ(stderr_, "rangescope: decode lacks 2 passes\n");
  run_.args.counters.passes = "occurrence";
  (void)write();
  EXPECT_EQ(stderr_, "");
}

/// A report of step > (copy, eval::a/b), and of results inside.
class Regions : public testing::Test {
 protected:
  void SetUp() override {
    add({"step"}, 0);
    add({"step", "copy"}, 1);
    add({"eval::a/b"}, 0);
    model::Session& session = analyzed_.session;
    session.metrics = {{.name = "dram__bytes.sum", .unit = "byte"}};
    session.kernel_names.push_back({.demangled = session.strings.intern("gemm<int, 4>()"),
                                    .short_name = session.strings.intern("gemm")});
    session.measurements.resize(2);
    session.measurements[0].kernel_name = 0;
    session.measurements[0].ranges.resize(1);
    session.measurements[0].occurrence = 2;
    session.measurements[0].values = {{0, 4096}};
    session.measurements[1].scope = model::MeasuredScope::kRange;
    session.measurements[1].values = {{0, 512}};
    region("copy").results = {0};
  }
  void add(const Words& path, std::uint32_t depth) {
    auto& regions = analyzed_.report.regions;
    model::Region region;
    region.id = static_cast<std::uint32_t>(regions.size());
    region.parent = depth == 0 ? model::kNone : region.id - 1;
    region.depth = depth;
    region.path = path;
    region.occurrences = 5;
    regions.push_back(std::move(region));
  }
  model::Region& region(std::string_view name) {
    auto& regions = analyzed_.report.regions;
    return *std::ranges::find_if(
        regions, [&](const model::Region& other) { return other.path.back() == name; });
  }
  std::size_t split(bool measured_only = false) {
    const auto count = split_regions(out_.path(), analyzed_, measured_only);
    EXPECT_TRUE(count) << base::to_string(count.error());
    return count.value_or(0);
  }
  [[nodiscard]] Words folders() const {
    Words names;
    for (const auto& entry : fs::directory_iterator(out_.path()))
      if (entry.is_directory())
        names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return text_of(out_.path() / name);
  }

  base::TemporaryFolder out_{"rangescope-regions"};
  Analyzed analyzed_;
};

TEST_F(Regions, EachHasAFolderAndSoHasWhatLiesOutside) {
  EXPECT_EQ(split(), 4u);
  EXPECT_EQ(folders(),
            (Words{base::sanitize_component("(outside all ranges)"),
                   base::sanitize_component("eval::a/b"),
                   "step",
                   base::sanitize_component("step > copy")}));
}

TEST_F(Regions, WithoutResultsCanBeLeftOut) {
  EXPECT_EQ(split(true), 2u);
  EXPECT_FALSE(fs::exists(out_.path() / "step"));
}

TEST_F(Regions, HoldWhatLiesBelowThem) {
  (void)split();
  EXPECT_NE(file("step/report.json").find("\"copy\""), std::string::npos);
  EXPECT_EQ(file("step/report.json").find("eval"), std::string::npos);
  const std::string copy = base::sanitize_component("step > copy");
  EXPECT_EQ(file(copy + "/report.json").find("eval"), std::string::npos);
}

TEST_F(Regions, TableHasTheRowsOfEachResult) {
  (void)split();
  const std::string copy = file(base::sanitize_component("step > copy") + "/metrics.csv");
  EXPECT_TRUE(copy.starts_with("result,what,occurrence,metric,unit,value\n,(region),,"));
  EXPECT_TRUE(copy.ends_with("\n0,\"gemm<int, 4>()\",2,dram__bytes.sum,byte,4096\n")) << copy;
  EXPECT_EQ(file(base::sanitize_component("(outside all ranges)") + "/metrics.csv"),
            "result,what,occurrence,metric,unit,value\n1,(range),,dram__bytes.sum,byte,512\n");
}

TEST_F(Regions, AreListedUnderTheNamesOfOtherScripts) {
  (void)split();
  const std::string list = file("report.json");
  EXPECT_NE(list.find("\"rangescope.regions/1\""), std::string::npos);
  EXPECT_NE(list.find("\"step__copy\""), std::string::npos) << list;
  EXPECT_NE(list.find("\"eval__a_b\""), std::string::npos) << list;
}

TEST_F(Regions, OneThatIsNamedAsTheListIsDistinct) {
  add({"report.json"}, 0);
  EXPECT_EQ(split(), 5u);
  EXPECT_TRUE(fs::is_regular_file(out_.path() / "report.json"));
}

TEST_F(Regions, OfNothingThereIsNoList) {
  analyzed_ = {};
  EXPECT_EQ(split(), 0u);
  EXPECT_TRUE(fs::is_empty(out_.path()));
}

/// A kernel of the run, and what was measured of it.
void add_kernel(model::Report& report, const std::string& name, double bytes) {
  report.kernels.push_back({.name = name, .calls = 3, .total_ns = 600, .share = 0.5});
  model::KernelCounters& counters = report.kernel_counters.emplace_back();
  counters.name = name;
  counters.metrics["dram__bytes.sum"] = {.value = bytes, .unit = "byte"};
  counters.metrics["sm__lost.avg"] = {.absent = "not on this chip"};
}

TEST(KernelFigures, ATableHasARowForEachKernel) {
  const base::TemporaryFolder folder("rangescope-figures");
  model::Report report;
  add_kernel(report, "gemm", 100);
  add_kernel(report, "softmax", 300);
  report.kernel_counters[0].roofline = {
      {.level = "l2", .precision = "fp64", .flops = 99},
      {.level = "dram", .precision = "fp32", .flops = 1, .intensity = 4, .flop_per_s = 8},
      {.level = "dram",
       .precision = "tensor bf16",
       .flops = 2,
       .intensity = 16,
       .flop_per_s = 32,
       .roof_flop_per_s = 64}};
  ASSERT_TRUE(write_kernel_figures(folder.path(), report));
  EXPECT_EQ(text_of(folder.path() / "kernels.csv"),
            "kernel,calls,total_ns,share,bound,precision,flop_per_byte,flop_per_s,"
            "attainable_flop_per_s,dram__bytes.sum\r\n"
            "gemm,3,600,0.5,,tensor bf16,16,32,64,100\r\n"
            "softmax,3,600,0.5,,,,,,300\r\n");
  EXPECT_TRUE(fs::exists(folder.path() / "dram__bytes.sum.svg"));
  EXPECT_FALSE(fs::exists(folder.path() / "sm__lost.avg.svg"));
}

TEST(KernelFigures, WithoutCountersThereIsNoFolder) {
  const base::TemporaryFolder folder("rangescope-figures");
  ASSERT_TRUE(write_kernel_figures(folder.path() / "metrics", {}));
  EXPECT_FALSE(fs::exists(folder.path() / "metrics"));
}

}  // namespace reports_test
}  // namespace rangescope::profile
