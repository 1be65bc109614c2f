#include "analyze/samples/wall_samples.hpp"

#include <gtest/gtest.h>
#include <cmath>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace wall_samples_test {

using testing::SessionBuilder;

constexpr std::int64_t kMs = 1'000'000;

/// Samples of 1 ms: 10 J and full activity in every one from 20 ms to 60 ms, 1 J and none else.
/// Steps of 10 ms.
struct Light : SessionBuilder {
  explicit Light(const std::string& schema = "native-trace 1.2, light") {
    session.sources.push_back({"x", "native", "rangescope", schema, model::Maker::kRangescope});
    const auto t = thread(process(1), 1);
    for (int i = 0; i < 8; ++i)
      range(t, i < 2 || i >= 6 ? "load" : "step", i * 10 * kMs, (i + 1) * 10 * kMs);
    session.begin_ns = 0;
    session.end_ns = 100 * kMs;
    add("GPU-1", true);
  }
  void add(const std::string& uuid, bool works) {
    model::SampleStream stream;
    stream.source = "test";
    stream.name = "GPU";
    stream.uuid = uuid;
    stream.interval_ns = kMs;
    model::SampledMetric active{"gpu_active", "ratio", "", model::SampleKind::kShare, {}};
    model::SampledMetric energy{"energy", "J", "energy", model::SampleKind::kAmount, {}};
    model::SampledMetric memory{"memory_used", "byte", "", model::SampleKind::kMax, {}};
    for (int ms = 0; ms < 100; ++ms) {
      const bool on = works && ms >= 20 && ms < 60;
      stream.start_ns.push_back(ms * kMs);
      stream.end_ns.push_back((ms + 1) * kMs);
      active.values.push_back(on ? 1 : 0);
      energy.values.push_back(on ? 10 : 1);
      memory.values.push_back(static_cast<float>(ms));
    }
    stream.metrics = {active, energy, memory};
    session.samples.push_back(std::move(stream));
  }
  model::Report report(std::vector<std::string> work = {}) {
    Options options;
    options.work = std::move(work);
    auto made = answer(session, options, Reference{});
    EXPECT_TRUE(made) << base::to_string(made.error());
    return made ? std::move(*made) : model::Report{};
  }
};

const model::Region& named(const model::Report& report, const std::string& name) {
  for (const model::Region& region : report.regions)
    if (!region.process && region.path.back() == name)
      return region;
  static const model::Region kNone;
  ADD_FAILURE() << "no region " << name;
  return kNone;
}

bool notes(const model::Report& report, const std::string& text) {
  return std::any_of(report.notes.begin(), report.notes.end(), [&](const std::string& note) {
    return note.find(text) != note.npos;
  });
}

TEST(WallSamples, ARangeHasWhatTheDeviceDidWhileItWasOpen) {
  const auto report = Light().report({"step=5 tokens"});
  const auto& step = named(report, "step");
  EXPECT_FALSE(step.gpu) << "kernels are unknown, not 0";
  EXPECT_DOUBLE_EQ(step.metrics.at("gpu_active").value, 1);
  EXPECT_DOUBLE_EQ(named(report, "load").metrics.at("gpu_active").value, 0);
  EXPECT_DOUBLE_EQ(step.metrics.at("energy").value, 100) << "10 samples of 10 J an occurrence";
  EXPECT_DOUBLE_EQ(step.metrics.at("memory_used").value, 59);
  EXPECT_EQ(step.metrics.at("energy").source, "sampled over wall time");
  EXPECT_DOUBLE_EQ(step.metrics.at("J/token").value, 20);
  EXPECT_DOUBLE_EQ(step.metrics.at("tokens/s").value, 500);
  ASSERT_EQ(report.sampled.size(), 1u);
  const auto& energy = report.sampled[0].sums.at(1);
  EXPECT_DOUBLE_EQ(energy.total, 460);
  EXPECT_DOUBLE_EQ(energy.in_ranges, 440);
  EXPECT_DOUBLE_EQ(energy.in_ranges + energy.outside + energy.idle, energy.total);
  EXPECT_TRUE(notes(report, "kernels, copies and CUDA calls were not recorded"));
  const auto column = [&](const char* name) {
    return std::any_of(report.metric_columns.begin(),
                       report.metric_columns.end(),
                       [&](const auto& each) { return each.name == name; });
  };
  EXPECT_TRUE(column("gpu_active"));
}

TEST(WallSamples, WhatASampleAtAnEndGivesIsUnsure) {
  Light light;
  for (model::Range& range : light.session.ranges) {  // each end lies in the middle of a sample
    range.start_ns += kMs / 2;
    range.end_ns += kMs / 2;
  }
  const auto report = light.report();
  const auto& energy = named(report, "step").metrics.at("energy");
  // 40 ms of four steps hold 39.5 samples of 10 J and half a sample of 1 J.
  EXPECT_DOUBLE_EQ(energy.value, (39.5 * 10 + 0.5) / 4);
  // Seven ends in samples of 10 J and one in 1 J, each unsure by a^2 / 4.
  const double wide = 1.96 * std::sqrt((7 * 100 + 1) / 4.0) / 4 + 0.005 * energy.value;
  EXPECT_NEAR(energy.max - energy.value, wide, 1e-9);
  EXPECT_NEAR(energy.value - energy.min, wide, 1e-9);
}

TEST(WallSamples, AClockOfItsOwnMayBeOffByASample) {
  Light light;
  light.session.samples[0].other_clock = true;
  for (model::Range& range : light.session.ranges)
    range.end_ns -= kMs;  // ends where it works, begins there too
  auto& step = light.session.ranges[5];
  step.end_ns = 61 * kMs;  // ends where it does not
  const auto report = light.report();
  const auto& energy = named(report, "step").metrics.at("energy");
  EXPECT_DOUBLE_EQ(energy.value, (3 * 90 + 100 + 1) / 4.0);
  EXPECT_NEAR(energy.max - energy.value, 0.005 * energy.value + (10 - 1) / 4.0, 1e-9);
}

TEST(WallSamples, ADeviceThatTheProgramLeftAloneIsNotCounted) {
  Light light;
  light.add("GPU-2", false);
  const auto report = light.report();
  EXPECT_EQ(report.sampled.size(), 1u);
  EXPECT_DOUBLE_EQ(named(report, "step").metrics.at("energy").value, 100);
}

TEST(WallSamples, OnlyOfALightRun) {
  const auto report = Light("native-trace 1.2").report();
  EXPECT_FALSE(named(report, "step").metrics.contains("gpu_active"))
      << "a program without CUDA: others were active";
}

TEST(WallSamples, WithoutSamplesTheNoteSaysSo) {
  Light light;
  light.session.samples.clear();
  EXPECT_TRUE(notes(light.report(), "no GPU was sampled"));
}

}  // namespace wall_samples_test
}  // namespace rangescope::analyze
