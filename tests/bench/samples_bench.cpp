// What dividing samples of a device among kernels far shorter than a sample costs: `./dev bench
// analyze`.
//
// A session of so many kernels (1 to 33 us, 200 kinds of name and shape, ten a range) and as many
// samples of eight counters. `saturated`: kernels without gaps, so that activity says nothing of
// the clock; `lost_clock`: a clock that is an hour off. What the samples cost is the difference of
// the lines with and without.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace samples_bench {

constexpr int kNames = 40, kShapes = 5, kCounters = 8;

enum class How : std::uint8_t { kWithout, kWith, kSaturated, kLostClock };

model::Session session_of(std::size_t count, How how) {
  const bool saturated = how == How::kSaturated;
  testing::SessionBuilder built;
  const auto process = built.process(1), thread = built.thread(process, 1);
  const auto device = built.device(process, 0, "GPU-1"), stream = built.stream(process, device, 7);
  std::mt19937 random(7);
  std::vector<std::string> names;
  for (int n = 0; n < kNames; ++n)
    names.push_back("kernel" + std::to_string(n));
  std::int64_t now = 1'000'000'000;
  const std::int64_t begin = now;
  for (std::size_t k = 0; k < count; ++k) {
    if (k % 10 == 0)
      built.range(thread, "step", now - 2, now - 1);
    const std::uint32_t kind = random() % (kNames * kShapes);
    const std::int64_t length = 1000 + std::int64_t(kind % 100) * 320 + random() % 200;
    const std::uint32_t launch = built.launch(thread, now, now + 1);
    built.kernel(launch, names[kind % kNames], now, now + length, stream, 1 + kind / kNames);
    now += length + (saturated ? 0 : random() % 8000);
    if (k % 10 == 9 || k + 1 == count)
      built.session.ranges.back().end_ns = now;
  }
  model::SampleStream samples;
  samples.source = samples.name = "bench";
  samples.uuid = "GPU-1";
  samples.device = device;
  samples.other_clock = true;
  samples.offset_ns = how == How::kLostClock ? 3'600'000'000'000 : 0;
  samples.interval_ns = (now - begin) / std::int64_t(count);
  for (int m = 0; m < kCounters; ++m) {
    const bool share = m == 0;
    samples.metrics.push_back({share ? "gr__cycles_active.avg" : "counter" + std::to_string(m),
                               share ? "ratio" : "byte",
                               {},
                               share ? model::SampleKind::kShare : model::SampleKind::kAmount,
                               {}});
  }
  const auto& kernels = built.session.kernels;
  std::size_t next = 0;
  for (std::int64_t from = begin; from < now; from += samples.interval_ns) {
    const std::int64_t to = from + samples.interval_ns;
    float busy = 0, work = 0;
    while (next < kernels.size() && kernels[next].end_ns <= from)
      ++next;
    for (std::size_t k = next; k < kernels.size() && kernels[k].start_ns < to; ++k) {
      const auto both =
          float(std::min(to, kernels[k].end_ns) - std::max(from, kernels[k].start_ns));
      busy += both;
      work += both * float(1 + kernels[k].name % 7);
    }
    samples.start_ns.push_back(from);
    samples.end_ns.push_back(to);
    for (int m = 0; m < kCounters; ++m)
      samples.metrics[m].values.push_back(m == 0 ? busy / float(samples.interval_ns)
                                                 : work * float(m));
  }
  built.session.samples = {std::move(samples)};
  return std::move(built.session);
}

void analyze_samples(benchmark::State& state, How how) {
  model::Session session = session_of(static_cast<std::size_t>(state.range(0)), how);
  const bool with = how != How::kWithout;
  if (!with)
    session.samples.clear();
  for (auto _ : state) {
    auto report = analyze(session);
    if (!report || (with && report->kernels.at(0).metrics.empty()))
      state.SkipWithError("no values");
    benchmark::DoNotOptimize(report);
  }
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(10'000)
      ->Arg(100'000)
      ->Arg(1'000'000)
      ->Unit(benchmark::kMillisecond)
      ->MeasureProcessCPUTime();
}
BENCHMARK_CAPTURE(analyze_samples, without, How::kWithout)->Apply(sizes);
BENCHMARK_CAPTURE(analyze_samples, with, How::kWith)->Apply(sizes);
BENCHMARK_CAPTURE(analyze_samples, saturated, How::kSaturated)->Apply(sizes);
BENCHMARK_CAPTURE(analyze_samples, lost_clock, How::kLostClock)->Apply(sizes);

}  // namespace samples_bench
}  // namespace rangescope::analyze
