// Recorded samples and captures of real programs: what regions and kernels are given, against what
// the programs moved.
#include <gtest/gtest.h>

#include <string>

#include "analyze/analyze.hpp"
#include "read/native/reader.hpp"

namespace rangescope {
namespace {

model::Report report_of(const std::string& name) {
  const auto session = read::native::kReader.read(std::string(GOLDEN) + "/" + name, {});
  EXPECT_TRUE(session) << (session ? "" : session.error().what);
  auto report = analyze::analyze(*session, {});
  EXPECT_TRUE(report);
  return report ? std::move(*report) : model::Report{};
}

const model::Region& region(const model::Report& report, const std::string& name) {
  for (const model::Region& each : report.regions)
    if (each.path.back() == name && !each.process)
      return each;
  static const model::Region none;
  ADD_FAILURE() << "no region " << name;
  return none;
}

constexpr const char* kRead = "dram__bytes_read.sum";
constexpr const char* kWritten = "dram__bytes_write.sum";

void expect_within(const model::Metric& metric,
                   double truth,
                   double share,
                   const std::string& what) {
  EXPECT_EQ(metric.absent, "") << what;
  EXPECT_EQ(metric.source, "sampled") << what;
  EXPECT_NEAR(metric.value, truth, share * truth) << what;
  EXPECT_LE(metric.min, metric.value) << what;
  EXPECT_GE(metric.max, metric.value) << what;
}

TEST(Samples, PartsAddUpToTheWhole) {
  for (const char* name : {"load-10k", "counted-10k", "torch-5k"}) {
    const model::Report report = report_of(name);
    ASSERT_FALSE(report.sampled.empty()) << name;
    for (const model::SampledDevice& device : report.sampled) {
      for (const model::SampledSum& sum : device.sums)
        EXPECT_NEAR(sum.in_ranges + sum.outside + sum.idle, sum.total, 1e-6 * sum.total + 1e-9)
            << name << " " << device.source << " " << sum.metric;
    }
  }
}

TEST(Samples, ClockIsFoundByActivity) {
  for (const char* name : {"load-10k", "counted-10k", "torch-5k"}) {
    const model::Report report = report_of(name);
    ASSERT_FALSE(report.sampled.empty()) << name;
    EXPECT_NE(report.sampled[0].clock.find("by activity"), std::string::npos)
        << report.sampled[0].clock;
  }
}

TEST(Samples, RangeOfLongKernels) {
  const model::Report report = report_of("load-10k");
  const model::Region& copies = region(report, "copies");
  constexpr double kTruth = 10.0 * (1 << 30);
  expect_within(copies.metrics.at(kRead), kTruth, 0.003, "read");
  expect_within(copies.metrics.at(kWritten),
                kTruth,
                0.02,
                "written");  // what the cache holds is written later
  ASSERT_FALSE(report.kernels.empty());
  expect_within(report.kernels[0].metrics.at(kRead), kTruth / 10, 0.003, "a kernel reads");
}

TEST(Samples, RangesNextToEachOther) {
  const model::Report report = report_of("counted-10k");
  expect_within(region(report, "copy").metrics.at(kRead), 256.0 * (1 << 20), 0.03, "copy");
  const model::Metric& fma = region(report, "fma").metrics.at(kRead);
  EXPECT_LT(fma.absent.empty() ? fma.value : fma.min, 3e6) << "fma reads next to nothing";
}

// 260 kernels of 1 to 33 us a step, samples of 200 us.
TEST(Samples, KernelsFarShorterThanASample) {
  const model::Report report = report_of("torch-5k");
  expect_within(region(report, "decode").metrics.at(kRead), 2.28e9, 0.05, "weights of a step");
  struct Truth {
    std::int64_t calls;
    const char* part;
    double bytes;
  };
  for (const Truth& truth :
       {Truth{4224, "64x8_64x16_2x1", 33.55e6},              // gate, up
        Truth{2112, "64x8_64x16_4x1_v_bz_splitK", 33.55e6},  // down
        Truth{4224, "64x8_64x16_4x1_v_bz_TNT", 16.78e6},     // qkv 25.2, attention output 8.4
        Truth{137, "256x8_64x6_2x1", 131.07e6}}) {           // vocabulary
    bool found = false;
    for (const model::KernelRow& row : report.kernels) {
      if (row.calls != truth.calls || row.name.find(truth.part) == std::string::npos)
        continue;
      found = true;
      const model::Metric& metric = row.metrics.at(kRead);
      expect_within(metric, truth.bytes, 0.05, truth.part);
      EXPECT_LE(metric.min, truth.bytes) << truth.part;
      EXPECT_GE(metric.max, truth.bytes) << truth.part;
    }
    EXPECT_TRUE(found) << truth.part;
  }
}

}  // namespace
}  // namespace rangescope
