#include "analyze/samples/latest_samples.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace rangescope::analyze {
namespace latest_samples_test {

using model::SampleKind;

/// Samples of 250 ms.
model::SampleStream stream(const char* name, SampleKind kind, std::vector<float> values) {
  model::SampleStream out;
  out.name = "H200";
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.start_ns.push_back(static_cast<std::int64_t>(i) * 250'000'000);
    out.end_ns.push_back(out.start_ns.back() + 250'000'000);
  }
  out.metrics.push_back({name, {}, {}, kind, std::move(values)});
  return out;
}

TEST(LatestSamples, AreMeansOfTheLastSecond) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  model::Session session;
  session.devices.resize(2);
  session.devices[1].ordinal = 1;
  session.samples.push_back(
      stream("dram_throughput", SampleKind::kShare, {1, 1, 0.2F, 0.4F, 0.6F, 0.8F}));
  session.samples.push_back(stream("energy", SampleKind::kAmount, {900, 100, 50, 100, none}));
  session.samples[0].device = session.samples[1].device = 1;
  session.samples.push_back(stream("sm_clock", SampleKind::kMean, {1, 2}));
  const auto latest = latest_samples(session);
  ASSERT_EQ(latest.size(), 1u) << "nothing is known of the last one";
  EXPECT_EQ(latest[0].gpu, "GPU 1");
  EXPECT_NEAR(*latest[0].dram, 0.5, 1e-6);
  EXPECT_NEAR(*latest[0].watts, 250 / 0.75, 1e-3) << "joules by the time in which they were read";
  EXPECT_FALSE(latest[0].sm || latest[0].tensor);
  EXPECT_TRUE(latest_samples({}).empty());
}

}  // namespace latest_samples_test
}  // namespace rangescope::analyze
