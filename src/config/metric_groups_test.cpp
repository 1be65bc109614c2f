#include "config/metric_groups.hpp"

#include <gtest/gtest.h>
#include <filesystem>

#include "base/fs.hpp"

namespace rangescope::config {
namespace metric_groups_test {

const std::filesystem::path kConf = std::filesystem::path(RANGESCOPE_SOURCE_DIR) / "conf";

base::Error error_of(const std::string& yaml) {
  const auto folder = std::filesystem::temp_directory_path() / ("groups-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(base::write_file(folder / "g.yaml", yaml));
  auto groups = load_metric_groups(folder);
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(groups);
  return groups ? base::Error{} : groups.error();
}

TEST(MetricGroups, AllShippedGroupsLoad) {
  const auto groups = load_metric_groups(kConf / "metrics");
  ASSERT_TRUE(groups) << to_string(groups.error());
  EXPECT_GE(groups->size(), 12u);
  for (const auto& group : *groups) {
    EXPECT_EQ(std::filesystem::path(group.file).stem(), group.name);
    EXPECT_FALSE(group.metrics.empty()) << group.name;
    for (const auto& metric : group.metrics) EXPECT_FALSE(metric.explain.empty()) << metric.name;
  }
}

TEST(MetricGroups, MistakesAreLocated) {
  constexpr const char* kHead = "name: g\ntitle: t\nexplain: e\ncounters:\n  a: dram__bytes.sum\n";
  auto error = error_of(std::string(kHead) + "metrics:\n  - {name: m, title: t, unit: byte, formula: b, explain: e}\n");
  EXPECT_NE(error.where.find("g.yaml:7"), std::string::npos) << error.where;
  EXPECT_NE(error.what.find("'b'"), std::string::npos);
  error = error_of(std::string(kHead) + "metricss: []\nmetrics: []\n");
  EXPECT_NE(error.hint.find("'metrics'"), std::string::npos);
  error = error_of(std::string(kHead) + "name: again\nmetrics: []\n");
  EXPECT_NE(error.what.find("twice"), std::string::npos);
  error = error_of(std::string(kHead) + "metrics:\n  - {name: m, title: t, unit: byte, formula: a +, explain: e}\n");
  EXPECT_NE(error.where.find("column"), std::string::npos);
  error = error_of("name: [\n");
  EXPECT_NE(error.where.find("g.yaml:"), std::string::npos);
}

TEST(Peaks, TheLongestNameThatFitsWins) {
  const auto peaks = load_peaks(kConf / "device");
  ASSERT_TRUE(peaks) << to_string(peaks.error());
  ASSERT_NE(find_peaks(*peaks, "NVIDIA H200"), nullptr);
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA H200")->name, "NVIDIA H200 SXM");
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA H200 NVL")->name, "NVIDIA H200 NVL");
  EXPECT_DOUBLE_EQ(find_peaks(*peaks, "NVIDIA H200")->memory_bytes_per_s, 4.8e12);
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA H100 80GB HBM3")->name, "NVIDIA H100 SXM");
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA H100 80GB HBM3")->chip, "GH100");
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA A100-SXM4-80GB")->chip, "GA100");
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA GeForce RTX 5090")->chip, "GB202");
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA GeForce RTX 3090")->id, "rtx-3090");
  for (const auto& each : *peaks) EXPECT_TRUE(!each.source.empty() && each.memory_bytes_per_s > 0) << each.id;
  EXPECT_EQ(find_peaks(*peaks, "Some other card"), nullptr);
}

}  // namespace metric_groups_test
}  // namespace rangescope::config
