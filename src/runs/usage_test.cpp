#include "runs/usage.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "runs/manifest.hpp"

namespace rangescope::runs {
namespace usage_test {

using model::ProcessUsage;

class Runs {
 public:
  void add(std::optional<ProcessUsage> usage) {
    const std::filesystem::path run = folder_.path() / std::to_string(runs_.size());
    std::filesystem::create_directory(run);
    Manifest manifest;
    manifest.id = run.filename();
    manifest.usage = usage;
    EXPECT_TRUE(write_manifest(run, manifest));
    runs_.push_back(run);
  }
  void add_unwritten() { runs_.push_back(folder_.path() / "none"); }
  [[nodiscard]] std::optional<ProcessUsage> together() const { return usage_together(runs_); }
  /// "user, system, peak" in ns and bytes.
  [[nodiscard]] std::string usage() const {
    const auto all = together();
    if (!all)
      return "unknown";
    const auto text = [](double value) { return std::to_string(static_cast<long>(value)); };
    return text(all->user_ns) + ", " + text(all->system_ns) + ", " +
           (all->peak_rss_bytes ? text(*all->peak_rss_bytes) : "unknown");
  }

 private:
  base::TemporaryFolder folder_{"rangescope-usage"};
  std::vector<std::filesystem::path> runs_;
};

TEST(Usage, OfRanksIsAllCpuTimeAndTheLargestPeak) {
  Runs runs;
  runs.add(ProcessUsage{100, 10, 7'000});
  runs.add(ProcessUsage{300, 20, 9'000});
  runs.add(ProcessUsage{200, 30, 8'000});
  EXPECT_EQ(runs.usage(), "600, 60, 9000");
}

TEST(Usage, WhatOthersUsedIsOfOneRunAlone) {
  ProcessUsage usage{100, 10, 7'000};
  usage.machine = {4, 1.5};
  Runs runs;
  runs.add(usage);
  ASSERT_TRUE(runs.together() && runs.together()->machine);
  EXPECT_EQ(runs.together()->machine->cpus, 4);
  EXPECT_EQ(runs.together()->machine->busy_with_others, 1.5);
  runs.add(usage);  // to each of two ranks the other one is another program
  ASSERT_TRUE(runs.together());
  EXPECT_FALSE(runs.together()->machine);
}

TEST(Usage, ARankThatDoesNotSayItLeavesTheSumUnknown) {
  Runs runs;
  runs.add(ProcessUsage{100, 10, 7'000});
  runs.add(std::nullopt);
  EXPECT_EQ(runs.usage(), "unknown");
}

TEST(Usage, ARankWithoutAManifestToo) {
  Runs runs;
  runs.add(ProcessUsage{100, 10, 7'000});
  runs.add_unwritten();
  EXPECT_EQ(runs.usage(), "unknown");
}

TEST(Usage, OnePeakThatIsNotKnownLeavesThePeakUnknown) {
  Runs runs;
  runs.add(ProcessUsage{100, 10, std::nullopt});
  runs.add(ProcessUsage{100, 10, 7'000});
  runs.add(ProcessUsage{100, 10, 9'000});
  EXPECT_EQ(runs.usage(), "300, 30, unknown");
}

}  // namespace usage_test
}  // namespace rangescope::runs
