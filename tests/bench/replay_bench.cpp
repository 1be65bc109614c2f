// What the dependence graph of a session costs: `./dev bench replay`.
//
// A training loop of so many operations in two streams: kernels, copies that kernels wait for, and
// a wait at every 20th step. `build` makes the graph, `replay` times it, `predict` is what a report
// asks: the graph, what tracing added taken out, and a change replayed at three values of its
// parameter, for every step. Memory is what the process held at most beyond the session.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "analyze/replay/build.hpp"
#include "analyze/replay/changes.hpp"
#include "analyze/replay/predict.hpp"
#include "analyze/replay/program_test.hpp"

namespace rangescope::analyze::replay {
namespace replay_bench {

/// Of a call: a stretch, the call, the work.
constexpr std::int64_t kOperationsPerLaunch = 3;
constexpr std::int64_t kKernelsPerStep = 10;
constexpr std::int64_t kOperationsPerStep = kOperationsPerLaunch * (kKernelsPerStep + 1);
constexpr std::int64_t kStepsPerWait = 20;

testing::Program training(std::int64_t operations) {
  testing::Program program(2);
  for (std::int64_t step = 0; step < operations / kOperationsPerStep; ++step) {
    program.begin("step");
    program.compute(20'000);
    program.copy(30'000, 1'000'000, 1);
    program.wait_event(1, 0);
    for (std::int64_t kernel = 0; kernel < kKernelsPerStep; ++kernel) {
      program.compute(3'000);
      program.kernel("kernel", 4'000 + 1'000 * kernel);
    }
    if (step % kStepsPerWait == kStepsPerWait - 1)
      program.wait();
    program.end();
  }
  program.wait();
  return program;
}

/// From /proc/self/status: VmRSS, or VmHWM, which is the most since the last reset.
double bytes_of(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":"))
      return 1024 * std::stod(line.substr(field.size() + 1));
  }
  return 0;
}

/// What earlier rounds left to the heap counts for none of the next.
void reset_peak() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

template <class Measured>
void measure(benchmark::State& state, Measured measured) {
  const testing::Program program = training(state.range(0));
  const std::vector<Span> steps = program.spans("step");
  reset_peak();
  const double before_bytes = bytes_of("VmRSS");
  std::uint32_t operations = 0;
  for (auto _ : state)
    operations = measured(program, steps);
  state.counters["operations"] = operations;
  state.counters["MB"] = (bytes_of("VmHWM") - before_bytes) / 1e6;
}

void build(benchmark::State& state) {
  measure(state, [](const testing::Program& program, const std::vector<Span>&) {
    const Graph graph = graph_of(program.session());
    benchmark::DoNotOptimize(graph);
    return graph.size();
  });
}

void build_and_replay(benchmark::State& state) {
  measure(state, [](const testing::Program& program, const std::vector<Span>&) {
    const Graph graph = graph_of(program.session());
    const Times times = replay(graph);
    benchmark::DoNotOptimize(times);
    return graph.size();
  });
}

void predict(benchmark::State& state) {
  measure(state, [](const testing::Program& program, const std::vector<Span>& steps) {
    const Predictor predictor(graph_of(program.session()), 1'300);
    const std::vector<Id> kernels = testing::operations_of(predictor.graph(), Kind::kKernel);
    const Change change = [&](const Graph& graph, double factor) {
      return scaled(graph, kernels, factor);
    };
    const Prediction prediction = predictor.predict(steps, change, {0.5, 0.4, 0.6});
    benchmark::DoNotOptimize(prediction);
    return predictor.graph().size();
  });
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(125'000)->Arg(250'000)->Arg(500'000)->Arg(1'000'000);
  bench->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
}
BENCHMARK(build)->Apply(sizes);
BENCHMARK(build_and_replay)->Apply(sizes);
BENCHMARK(predict)->Apply(sizes);

}  // namespace replay_bench
}  // namespace rangescope::analyze::replay
