#include "config/metric_groups.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"

namespace rangescope::config {
namespace metric_groups_test {

const std::filesystem::path kConf = std::filesystem::path(base::source_dir) / "conf";

base::Error error_of(const std::string& yaml) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("groups-" + std::to_string(::getpid()));
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
    for (const auto& metric : group.metrics)
      EXPECT_FALSE(metric.explain.empty()) << metric.name;
  }
}

TEST(MetricGroups, MistakesAreLocated) {
  constexpr const char* kHead = "name: g\ntitle: t\nexplain: e\ncounters:\n  a: dram__bytes.sum\n";
  auto error = error_of(std::string(kHead) +
                        "metrics:\n  - {name: m, title: t, unit: byte, formula: b, explain: e}\n");
  EXPECT_NE(error.where.find("g.yaml:7"), std::string::npos) << error.where;
  EXPECT_NE(error.what.find("'b'"), std::string::npos);
  error = error_of(std::string(kHead) + "metricss: []\nmetrics: []\n");
  EXPECT_NE(error.hint.find("'metrics'"), std::string::npos);
  error = error_of(std::string(kHead) + "name: again\nmetrics: []\n");
  EXPECT_NE(error.what.find("twice"), std::string::npos);
  error = error_of(std::string(kHead) +
                   "metrics:\n  - {name: m, title: t, unit: byte, formula: a +, explain: e}\n");
  EXPECT_NE(error.where.find("column"), std::string::npos);
  error = error_of("name: [\n");
  EXPECT_NE(error.where.find("g.yaml:"), std::string::npos);
}

TEST(ReplayCosts, AreIntervalsAndTheirLinksAreThoseOfTheCards) {
  ASSERT_EQ(::setenv("RANGESCOPE_CONF", kConf.c_str(), 1), 0);
  const auto costs = replay_costs();
  ::unsetenv("RANGESCOPE_CONF");
  ASSERT_TRUE(costs) << to_string(costs.error());
  for (const model::MeasuredValue& value :
       {costs->tracing_ns, costs->graph_launch_ns, costs->compiled_call_ns, costs->pinned_share}) {
    EXPECT_GT(value.low, 0);
    EXPECT_LE(value.low, value.expected);
    EXPECT_LE(value.expected, value.high);
  }
  EXPECT_LT(costs->pinned_share.high, 1);
  const auto peaks = load_peaks(kConf / "device");
  ASSERT_TRUE(peaks);
  EXPECT_DOUBLE_EQ(find_peaks(*peaks, "NVIDIA H100 80GB HBM3")->host_link_bytes_per_s, 63.0e9);
  EXPECT_DOUBLE_EQ(find_peaks(*peaks, "NVIDIA GeForce RTX 4060 Ti")->host_link_bytes_per_s,
                   15.75e9);
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
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA A10G")->id, "a10g");
  EXPECT_EQ(find_peaks(*peaks, "NVIDIA H20")->id, "h20");
  EXPECT_EQ(find_peaks(*peaks, "GeForce RTX 2080 SUPER")->id, "rtx-2080-super");
  EXPECT_EQ(find_peaks(*peaks, "Some other card"), nullptr);
}

/// The numbers of a source's arithmetic; empty where it has no such sentence.
std::vector<double> numbers_of(const std::string& source, const char* format, int count) {
  double a = 0, b = 0, c = 0;
  for (std::size_t at = 0; at < source.size(); ++at) {
    const bool inside = at > 0 && (std::isdigit(source[at - 1]) || source[at - 1] == '.');
    if (!inside && std::sscanf(source.c_str() + at, format, &a, &b, &c) == count)
      return {a, b, c};
  }
  return {};
}

TEST(Peaks, EachNamesItsSourceAndAddsUp) {
  const auto all = load_peaks(kConf / "device");
  ASSERT_TRUE(all) << to_string(all.error());
  int computed = 0;
  for (const model::Peaks& each : *all) {
    SCOPED_TRACE(each.id);
    EXPECT_TRUE(each.source.starts_with("NVIDIA "));
    bool named = false;
    for (const char* kind : {"data sheet", "white paper", "product page", "product brief"})
      named |= each.source.find(kind) != std::string::npos;
    EXPECT_TRUE(named) << each.source;
    EXPECT_FALSE(each.chip.empty());
    for (const std::string& match : each.match)
      EXPECT_EQ(find_peaks(*all, match), &each);
    const auto rate = [&](const char* kind) {
      const auto at = each.flop_per_s.find(kind);
      return at == each.flop_per_s.end() ? 0 : at->second;
    };
    const double fp32 = rate("fp32"), fp16 = rate("tensor_fp16");
    ASSERT_GT(fp32, 0);
    const auto cores = numbers_of(each.source, "%lf SMs x %lf FP32 x 2 x %lf GHz", 3);
    if (!cores.empty()) {
      EXPECT_NEAR(fp32, cores[0] * cores[1] * 2 * cores[2] * 1e9, 0.01 * fp32);
    }
    const auto pins = numbers_of(each.source, "%lf bits x %lf Gbit/s", 2);
    if (!pins.empty()) {
      EXPECT_NEAR(
          each.memory_bytes_per_s, pins[0] * pins[1] / 8 * 1e9, 0.002 * each.memory_bytes_per_s);
    }
    const auto doubles = numbers_of(each.source, "FP64 1/%lf", 1);
    if (!doubles.empty()) {
      EXPECT_NEAR(rate("fp64"), fp32 / doubles[0], 0.006 * rate("fp64"));
    }
    computed += cores.empty() ? 0 : 1;
    // Dense: of what a card has, half as many bits are twice as fast, or four times where FP32
    // accumulation halves FP16.
    if (rate("tensor_bf16") > 0) {
      EXPECT_EQ(rate("tensor_bf16"), fp16);
    }
    if (rate("tensor_tf32") > 0) {
      EXPECT_NEAR(fp16 / rate("tensor_tf32"), 2, 0.06);
    }
    if (rate("tensor_fp8") > 0) {
      EXPECT_NEAR(rate("tensor_fp8") / fp16, 2, 0.03);
    }
    if (rate("tensor_int8") > 0 && rate("tensor_fp8") > 0) {
      EXPECT_TRUE(rate("tensor_int8") == rate("tensor_fp8") ||
                  std::abs(rate("tensor_int8") / fp16 - 4) < 0.01);
    }
  }
  EXPECT_GT(computed, 30);
}

TEST(Peaks, AnUnknownDeviceIsAnsweredWithItsLikesOnly) {
  ::setenv("RANGESCOPE_CONF", kConf.c_str(), 1);
  ::setenv("XDG_CONFIG_HOME", "/none", 1);  // what was calibrated here
  const auto hint = [](const char* id) {
    const auto checked = check_device(id);
    return checked ? std::string("known") : checked.error().hint;
  };
  EXPECT_EQ(hint("rtx-5090"), "known");
  EXPECT_EQ(hint("h20"), "known");
  EXPECT_EQ(hint("rtx 4070 ti"), "Write rtx-4070-ti.");
  EXPECT_EQ(hint("NVIDIA GeForce RTX 3090"), "Write rtx-3090.");
  EXPECT_EQ(hint("h100"), "Write h100-nvl or h100-pcie or h100-sxm.");
  EXPECT_NE(hint("l40z").find("l40"), std::string::npos);
  for (const char* unknown : {"mi300x", "rtx-5099", "h300"})
    EXPECT_TRUE(hint(unknown).starts_with("Write auto, or one of")) << hint(unknown);
}

}  // namespace metric_groups_test
}  // namespace rangescope::config
