#include "analyze/gpu/gpu.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace {

using testing::SessionBuilder;

/// A trace of PyTorch: the thread that calls backward(), and the one of the autograd engine.
struct Trace : SessionBuilder {
  Trace() {
    session.processes[process(1)].operators = true;
    (void)stream(0, device(0, 0), 7);
  }
  /// An operator; PyTorch's sequence number where it is not 0.
  void op(std::uint32_t on,
          std::string_view name,
          std::int64_t start,
          std::int64_t end,
          std::int64_t number = 0) {
    const std::uint32_t at = range(on, name, start, end);
    if (number == 0)
      return;
    session.ranges[at].attributes = static_cast<std::uint32_t>(session.attributes.size());
    model::Attributes& with = session.attributes.emplace_back();
    with.payload_type = model::PayloadType::kInt64;
    with.payload_i64 = number;
  }
  /// A call and its kernel of `gpu` ns.
  void call(std::uint32_t on, std::int64_t start, std::int64_t end, std::int64_t gpu) {
    const std::uint32_t at = launch(on, start, end);
    session.launches[at].name = session.strings.intern("cudaLaunchKernel");
    (void)kernel(at, "k", start + 1000, start + 1000 + gpu);
  }
  std::uint32_t main = thread(0, 1), engine = thread(0, 2);
};

std::string operators(const SessionBuilder& trace) {
  model::Report report;
  add_operators(trace.session, report);
  std::string out;
  const auto number = [](double value) {
    return std::isnan(value) ? " -" : ' ' + std::to_string(static_cast<long long>(value));
  };
  for (const model::OperatorRow& row : report.operators)
    out += row.name + " x" + std::to_string(row.calls) + " cpu" + number(row.cpu_ns) +
           number(row.exclusive_cpu_ns) + " gpu" + number(row.gpu_ns) +
           number(row.exclusive_gpu_ns) + '\n';
  return out;
}

TEST(Operators, OfNoLengthAreBesideTheOneThatEndsThere) {  // in traces of whole microseconds
  Trace trace;
  trace.op(trace.main, "aten::empty", 0, 10);
  trace.op(trace.main, "aten::empty", 10, 10);
  trace.op(trace.main, "aten::empty", 10, 10);
  EXPECT_TRUE(operators(trace).starts_with("aten::empty x3 cpu 10 10 ")) << operators(trace);
  const auto report = analyze(trace.session);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->regions.size(), 1u);
  EXPECT_EQ(report->regions[0].occurrences, 3);
}

TEST(Operators, CudaFunctionsThatTouchAreSiblings) {  // in traces of whole microseconds
  Trace trace;
  trace.op(trace.main, "aten::mm", 0, 20);
  for (const auto& [start, end] : {std::pair{2, 3}, {3, 3}, {3, 3}, {20, 20}})
    trace.session.launches[trace.launch(trace.main, start, end)].name =
        trace.session.strings.intern("cudaFuncSetAttribute");
  EXPECT_EQ(operators(trace),
            "aten::mm x1 cpu 20 19 gpu - -\ncudaFuncSetAttribute x4 cpu 1 1 gpu - -\n");
}

TEST(Operators, CallsAreChildrenAndGpuWorkIsTheOperators) {
  Trace trace;
  trace.op(trace.main, "ProfilerStep#1", 0, 100);
  trace.op(trace.main, "aten::linear", 10, 60);
  trace.op(trace.main, "aten::addmm", 20, 50);
  trace.call(trace.main, 25, 30, 7);
  trace.op(trace.main, "ProfilerStep#2", 100, 150);
  EXPECT_EQ(operators(trace),
            "aten::addmm x1 cpu 30 25 gpu 7 7\n"
            "ProfilerStep* x2 cpu 150 100 gpu 7 0\n"
            "aten::linear x1 cpu 50 20 gpu 7 0\n"
            "cudaLaunchKernel x1 cpu 5 5 gpu 0 0\n");
}

TEST(Operators, AnOnlyChildOfTheSameNameIsTheSameCall) {
  Trace trace;
  trace.op(trace.main, "aten::mean", 0, 100);
  trace.op(trace.main, "aten::mean", 10, 90);
  trace.op(trace.main, "aten::mean", 20, 80);
  trace.call(trace.main, 30, 40, 7);
  trace.op(trace.main, "aten::sum", 60, 70);
  EXPECT_EQ(operators(trace),
            "aten::mean x1 cpu 100 80 gpu 7 7\n"
            "aten::sum x1 cpu 10 10 gpu 0 0\n"
            "cudaLaunchKernel x1 cpu 10 10 gpu 0 0\n");
}

TEST(Operators, OneOfTwoChildrenOfTheSameNameCountsTwice) {
  Trace trace;
  trace.op(trace.main, "aten::mul", 0, 100);
  trace.op(trace.main, "aten::mul", 10, 60);
  trace.call(trace.main, 20, 30, 7);
  trace.op(trace.main, "aten::empty", 70, 80);
  EXPECT_EQ(operators(trace),
            "aten::mul x2 cpu 150 80 gpu 14 7\n"
            "aten::empty x1 cpu 10 10 gpu 0 0\n"
            "cudaLaunchKernel x1 cpu 10 10 gpu 0 0\n");
}

TEST(Operators, TheProfilersOwnTimeIsARowOfItsOwn) {
  Trace trace;
  trace.op(trace.main, "aten::mul", 0, 100);
  (void)trace.range(trace.thread(0, 0), "Activity Buffer Request", 20, 60, "overhead");
  (void)trace.range(trace.main, "Linear_0", 0, 100, "nn.Module");
  trace.op(trace.main, "aten::never_ended", 110, model::kOpen);
  trace.op(trace.main, "aten::inside", 120, 130);
  EXPECT_EQ(operators(trace),
            "aten::mul x1 cpu 100 100 gpu - -\n"
            "Activity Buffer Request x1 cpu 40 40 gpu - -\n"
            "aten::inside x1 cpu 10 10 gpu - -\n");
}

std::string kernels(const SessionBuilder& trace, const Options& options = {}) {
  const auto report = analyze(trace.session, options);
  if (!report)
    return base::to_string(report.error());
  std::string out;
  for (const model::Region& region : report->regions)
    if (region.gpu && region.gpu->kernels > 0)
      out += region.domain + '@' + region.path.back() + ' ' + std::to_string(region.gpu->kernels) +
             '\n';
  return out;
}

TEST(Operators, TheBackwardPassBelongsToWhoCalledIt) {
  Trace trace;
  trace.op(trace.main, "forward", 0, 100);
  trace.op(trace.main, "aten::linear", 10, 60);
  trace.op(trace.main, "aten::addmm", 20, 50, 5);
  trace.call(trace.main, 25, 30, 7);
  trace.op(trace.main, "backward", 200, 400);
  trace.op(trace.engine, "autograd::engine::evaluate_function: AddmmBackward0", 210, 300, 5);
  trace.op(trace.engine, "aten::mm", 220, 260, 5);
  trace.call(trace.engine, 230, 240, 9);
  // The GPU's own annotations, and the profiler's, hold no launch.
  (void)trace.range(trace.thread(0, 7), "forward", 90, 500, "gpu_annotation");
  (void)trace.range(trace.thread(0, 0), "Activity Buffer Request", 0, 500, "overhead");
  const std::string own = "@aten::mm 1\n",
                    engine = "@autograd::engine::evaluate_function: AddmmBackward0 1\n" + own;
  EXPECT_EQ(kernels(trace), "@forward 1\n@aten::linear 1\n@aten::addmm 1\n@backward 1\n" + engine);
  Options thread;
  thread.push_pop_scope = PushPopScope::kThread;
  EXPECT_EQ(kernels(trace, thread), "@forward 1\n@aten::linear 1\n@aten::addmm 1\n" + engine);
  Options with_forward;
  with_forward.backward_with_forward = true;
  EXPECT_EQ(kernels(trace, with_forward),
            "@forward 2\n@aten::linear 2\n@aten::addmm 2\n@backward 1\n" + engine);
}

TEST(Operators, SequenceNumbersAreOfTheLatestOperatorBefore) {
  Trace trace;  // numbers begin again in the second step, whose operators come after the first
                // backward pass
  trace.op(trace.main, "first", 0, 20, 5);
  trace.op(trace.engine, "autograd::engine::evaluate_function: A", 30, 50, 5);
  trace.call(trace.engine, 35, 40, 9);
  trace.op(trace.main, "second", 60, 80, 5);
  trace.op(trace.engine, "autograd::engine::evaluate_function: B", 90, 99, 6);
  trace.call(trace.engine, 92, 95, 9);
  Options with_forward;
  with_forward.backward_with_forward = true;
  EXPECT_EQ(kernels(trace, with_forward),
            "@first 1\n@autograd::engine::evaluate_function: A "
            "1\n@autograd::engine::evaluate_function: B 1\n");
}

}  // namespace
}  // namespace rangescope::analyze
