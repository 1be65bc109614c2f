#include "analyze/samples/samples.hpp"
#include "analyze/analyze.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analyze/samples/sample_row.hpp"
#include "analyze/session_test.hpp"
#include "analyze/statistics/nonnegative.hpp"

namespace rangescope::analyze {
namespace samples_test {

TEST(NonNegative, KeepsAtZeroWhatWouldBeNegative) {
  // x = (1, -1) solves it freely; with x >= 0 the best is (0.5, 0) of [[2, 1], [1, 2]] x = (1, -1).
  Gram gram(2);
  gram.values = {2, 1, 1, 2};
  const NonNegative solved = solve_nonnegative(gram, {1, -1});
  EXPECT_NEAR(solved.x[0], 0.5, 1e-12);
  EXPECT_EQ(solved.x[1], 0);
}

constexpr std::int64_t kUs = 1000, kSample = 100 * kUs, kShift = 3'217'000;

struct Executed {
  std::int64_t start, end;
  double bytes;
};

/// Steps of three kernels in ranges `step` and `step > inner`, and samples of what they move on a
/// clock of its own.
class Program {
 public:
  Program() {
    process_ = built.process(1);
    thread_ = built.thread(process_, 1);
    device_ = built.device(process_, 0, "GPU-1");
    stream_ = built.stream(process_, device_, 7);
    std::mt19937 random(7);
    std::int64_t now = 50'000 * kUs;
    for (int step = 0; step < 400; ++step) {
      const std::int64_t begin = now;
      now += 5 * kUs;
      kernel("gemm", now, 20 * kUs + std::int64_t(random() % 3000), 60e6, now);
      kernel("norm", now, 4 * kUs + std::int64_t(random() % 1000), 0, now);
      const std::int64_t inner = now;
      kernel("copy", now, 9 * kUs + std::int64_t(random() % 2000), 20e6, now);
      built.range(thread_, "inner", inner - 1, now + 1);
      built.range(thread_, "step", begin, now + 2);
      now += std::int64_t(random() % 60) * kUs;
    }
    end_ = now + 50'000 * kUs;
    std::stable_sort(built.session.ranges.begin(),
                     built.session.ranges.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  }

  void sample() {
    model::SampleStream stream;
    stream.source = "test";
    stream.name = "GPU";
    stream.uuid = "GPU-1";
    stream.device = device_;
    stream.interval_ns = kSample;
    stream.other_clock = true;
    stream.offset_ns = -kShift + 40 * kUs;  // the machine's clocks are a little off
    model::SampledMetric active{
        "gr__cycles_active.avg", "ratio", {}, model::SampleKind::kShare, {}};
    model::SampledMetric bytes{"dram__bytes_read.sum", "byte", {}, model::SampleKind::kAmount, {}};
    for (std::int64_t from = 0; from < end_; from += kSample) {
      double busy = 0, moved = 0;
      for (const Executed& each : executed_) {
        const auto both = double(std::min(each.end, from + kSample) - std::max(each.start, from));
        if (both <= 0)
          continue;
        busy += both;
        moved += each.bytes * both / double(each.end - each.start);
      }
      stream.start_ns.push_back(from + kShift);
      stream.end_ns.push_back(from + kShift + kSample);
      active.values.push_back(float(busy / double(kSample)));
      bytes.values.push_back(float(moved));
    }
    stream.metrics = {active, bytes};
    built.session.samples = {std::move(stream)};
  }

  model::Report report() {
    auto done = analyze(built.session, {});
    EXPECT_TRUE(done);
    return done ? std::move(*done) : model::Report{};
  }

  testing::SessionBuilder built;

 private:
  void kernel(
      const char* name, std::int64_t start, std::int64_t length, double bytes, std::int64_t& now) {
    built.kernel(built.launch(thread_, start - 1, start), name, start, start + length, stream_);
    executed_.push_back({start, start + length, bytes});
    now = start + length + kUs;
  }
  std::uint32_t process_, thread_, device_, stream_;
  std::int64_t end_ = 0;
  std::vector<Executed> executed_;
};

const model::Metric& bytes_of(const model::Report& report, const char* name) {
  static const model::Metric none;
  for (const model::Region& region : report.regions)
    if (region.path.back() == name)
      return region.metrics.at("dram__bytes_read.sum");
  for (const model::KernelRow& row : report.kernels)
    if (row.name == name)
      return row.metrics.at("dram__bytes_read.sum");
  ADD_FAILURE() << name;
  return none;
}

bool lost(const model::Report& report, const std::string& kind) {
  return std::any_of(report.losses.begin(), report.losses.end(), [&](const auto& loss) {
    return loss.kind.id() == kind;
  });
}

TEST(AddSamples, BytesOfKernelsAFifthOfASampleAndOfTheirRanges) {
  Program program;
  program.sample();
  const model::Report report = program.report();
  EXPECT_NEAR(bytes_of(report, "gemm").value, 60e6, 0.6e6);
  EXPECT_NEAR(bytes_of(report, "copy").value, 20e6, 0.6e6);
  EXPECT_NEAR(bytes_of(report, "step").value, 80e6, 0.4e6);
  EXPECT_NEAR(bytes_of(report, "inner").value, 20e6, 0.6e6);
  EXPECT_NE(bytes_of(report, "norm").absent, "")
      << "nothing to tell of a kernel that moves nothing";
  ASSERT_EQ(report.sampled.size(), 1u);
  const model::SampledSum& sum = report.sampled[0].sums.back();
  EXPECT_NEAR(sum.in_ranges + sum.outside + sum.idle, sum.total, 1e-6 * sum.total);
  EXPECT_NEAR(sum.total, 400 * 80e6, 1e-3 * 400 * 80e6);
}

TEST(AddSamples, AnotherProcessIsToldAndGivenToNobody) {
  Program program;
  program.sample();
  auto& stream = program.built.session.samples[0];
  for (std::size_t s = 0; s < 400; ++s) {  // long before the program's first kernel
    stream.metrics[0].values[s] = 0.5F;
    stream.metrics[1].values[s] = 100e6F;
  }
  const model::Report report = program.report();
  EXPECT_NEAR(report.sampled[0].other_ns, 200 * kSample, kSample);
  EXPECT_TRUE(lost(report, "other_gpu_activity"));
  EXPECT_NEAR(bytes_of(report, "gemm").value, 60e6, 1.5e6);
  EXPECT_NEAR(report.sampled[0].sums.back().idle, 400 * 100e6, 0.01 * 400 * 100e6);
}

TEST(AddSamples, GapsAreToldAndDoNotLowerValues) {
  Program program;
  program.sample();
  auto& stream = program.built.session.samples[0];
  model::SampleStream thin = stream;
  thin.start_ns.clear();
  thin.end_ns.clear();
  for (auto& metric : thin.metrics)
    metric.values.clear();
  for (std::size_t s = 0; s < stream.start_ns.size(); ++s) {
    if (s % 10 == 3)
      continue;
    thin.start_ns.push_back(stream.start_ns[s]);
    thin.end_ns.push_back(stream.end_ns[s]);
    for (std::size_t m = 0; m < thin.metrics.size(); ++m)
      thin.metrics[m].values.push_back(stream.metrics[m].values[s]);
  }
  stream = std::move(thin);
  const model::Report report = program.report();
  EXPECT_TRUE(lost(report, "sample_gaps"));
  EXPECT_NEAR(bytes_of(report, "gemm").value, 60e6, 0.03 * 60e6);
  EXPECT_NEAR(bytes_of(report, "step").value, 80e6, 0.03 * 80e6);
}

TEST(AddSamples, TooShortIsAbsent) {
  Program program;
  program.built.range(0, "blink", 10 * kUs, 14 * kUs);
  std::rotate(program.built.session.ranges.rbegin(),
              program.built.session.ranges.rbegin() + 1,
              program.built.session.ranges.rend());
  program.built.kernel(program.built.launch(0, 11 * kUs, 12 * kUs), "once", 12 * kUs, 13 * kUs);
  program.sample();
  EXPECT_NE(bytes_of(program.report(), "blink").absent.find("too short"), std::string::npos);
}

TEST(SampledMetric, AShareIsNeverAboveTheWhole) {
  SampledRow row;
  row.unit = "ratio";
  row.sampled_ns = row.total_ns = 1e6;
  row.interval_ns = 1e4;
  row.part.amount = 1.28e6;  // the device was active before and after the kernels, too
  EXPECT_EQ(sampled_metric(row, 1, 1e6, "GPU work").absent,
            "counted for 128 % of its time, including time without its own work");
  row.part.edges = 4e5;
  EXPECT_EQ(sampled_metric(row, 1, 1e6, "GPU work").absent,
            "samples bound it only to 0.88 to 1.68 ratio")
      << "what is within the error may be the whole";
  row.part.edges = 0;
  row.part.amount = 1.01e6;
  const model::Metric whole = sampled_metric(row, 1, 1e6, "GPU work");
  EXPECT_EQ(whole.absent, "");
  EXPECT_EQ(whole.value, 1);
  EXPECT_EQ(whole.max, 1);
}

TEST(AlignSamples, FindsAShiftOfHoursWhereTheClocksAreOfNoUse) {
  Program program;
  program.sample();
  auto& stream = program.built.session.samples[0];
  stream.offset_ns = 7'200'000'000'000;
  const model::Report report = program.report();
  EXPECT_NE(report.sampled[0].clock.find("by activity"), std::string::npos)
      << report.sampled[0].clock;
  EXPECT_NEAR(bytes_of(report, "gemm").value, 60e6, 1.5e6);
}

TEST(DeriveSamples, FormulasOfSampledCounters) {
  Program program;
  program.sample();
  model::MetricGroup group;
  group.counters = {{"read", {"other", "dram__bytes_read.sum"}, {}}};
  model::GroupMetric metric;
  metric.name = "kilobytes";
  metric.unit = "kbyte";
  metric.formula = *base::Formula::parse("read / 1000");
  group.metrics = {metric};
  derive_samples(program.built.session, {&group, 1});
  const auto& metrics = program.built.session.samples[0].metrics;
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].name, "kilobytes");
  EXPECT_EQ(metrics[0].kind, model::SampleKind::kAmount);
  EXPECT_EQ(metrics[1].name, "gr__cycles_active.avg");
}

}  // namespace samples_test
}  // namespace rangescope::analyze
