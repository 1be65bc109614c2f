#include "analyze/replay/build.hpp"

#include <gtest/gtest.h>

#include "analyze/replay/program_test.hpp"

namespace rangescope::analyze::replay {
namespace build_test {

using testing::operations_of;
using testing::Program;
using testing::replayed;

constexpr std::int64_t kMicrosecond = 1'000;

/// Many steps of small kernels: the CPU decides.
Program launches(std::int64_t kernel_ns = 2 * kMicrosecond) {
  Program program;
  program.begin("loop");
  for (int step = 0; step < 20; ++step) {
    program.begin("step");
    for (int kernel = 0; kernel < 10; ++kernel) {
      program.compute(6 * kMicrosecond);
      program.kernel("add", kernel_ns);
    }
    program.end();
  }
  program.wait();
  program.end();
  return program;
}

TEST(ReplayGraph, AThreadIsStretchesAndCalls) {
  Program program;
  program.begin("step");
  program.compute(10 * kMicrosecond);
  program.kernel("add", 50 * kMicrosecond);
  program.wait();
  program.end();
  const Graph graph = graph_of(program.session());

  std::vector<Kind> kinds;
  for (const Operation& operation : graph.operations)
    kinds.push_back(operation.kind);
  EXPECT_EQ(kinds,
            (std::vector<Kind>{Kind::kBegin,
                               Kind::kStretch,
                               Kind::kCall,
                               Kind::kStretch,
                               Kind::kKernel,
                               Kind::kWait,
                               Kind::kStretch}));
}

TEST(ReplayGraph, WhatEachWorkDependsOn) {
  Program program;
  program.kernel("add", 50 * kMicrosecond);
  program.kernel("mul", 50 * kMicrosecond);
  program.wait();
  const Graph graph = graph_of(program.session());

  const auto kernels = operations_of(graph, Kind::kKernel);
  const auto calls = operations_of(graph, Kind::kCall);
  const auto waits = operations_of(graph, Kind::kWait);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(graph.find_dependency(kernels[0], Reason::kLaunch), calls[0]);
  EXPECT_EQ(graph.find_dependency(kernels[0], Reason::kOrder), model::kNone);
  EXPECT_EQ(graph.find_dependency(kernels[1], Reason::kLaunch), calls[1]);
  EXPECT_EQ(graph.find_dependency(kernels[1], Reason::kOrder), kernels[0]);
  EXPECT_EQ(graph.find_dependency(waits[0], Reason::kAwaited), kernels[1]);
}

TEST(ReplayGraph, EachComesAfterWhatItDependsOn) {
  const Program program = launches(40 * kMicrosecond);
  const Graph graph = graph_of(program.session());
  for (Id id = 0; id < graph.size(); ++id) {
    for (const Dependency& dependency : graph.dependencies_of(id))
      EXPECT_LT(dependency.on, id);
  }
}

TEST(ReplayGraph, ReplaysWhatWasRecorded) {
  for (const std::int64_t kernel_ns : {2 * kMicrosecond, 40 * kMicrosecond}) {
    const Program program = launches(kernel_ns);
    const Graph graph = graph_of(program.session());
    EXPECT_EQ(replayed(graph, program, "loop"), program.length("loop"));
    EXPECT_EQ(replayed(graph, program, "step"), program.length("step"));
  }
}

TEST(ReplayGraph, FasterKernelsSaveOnlyWhereTheGpuDecides) {
  const Program gpu_bound = launches(40 * kMicrosecond);
  Graph graph = graph_of(gpu_bound.session());
  for (const Id kernel : operations_of(graph, Kind::kKernel)) {
    graph.operations[kernel].duration_ns = 20 * kMicrosecond;
  }
  EXPECT_EQ(replayed(graph, gpu_bound, "loop"), launches(20 * kMicrosecond).length("loop"));

  const Program cpu_bound = launches(4 * kMicrosecond);
  graph = graph_of(cpu_bound.session());
  for (const Id kernel : operations_of(graph, Kind::kKernel)) {
    graph.operations[kernel].duration_ns = 2 * kMicrosecond;
  }
  EXPECT_EQ(replayed(graph, cpu_bound, "loop"), cpu_bound.length("loop") - 2 * kMicrosecond);
}

TEST(ReplayGraph, CallsWaitWhereTheQueueIsFull) {
  const auto loop = [](std::int64_t kernel_ns) {
    Program program(1, 600);
    program.begin("loop");
    for (int kernel = 0; kernel < 2000; ++kernel) {
      program.begin("step");
      program.compute(6 * kMicrosecond);
      program.kernel("add", kernel_ns);
      program.end();
    }
    program.end();  // without a wait: what the CPU does decides
    return program;
  };
  const Program before = loop(100 * kMicrosecond);
  Graph graph = graph_of(before.session());
  EXPECT_NEAR(static_cast<double>(replayed(graph, before, "loop")),
              static_cast<double>(before.length("loop")),
              0.001 * static_cast<double>(before.length("loop")));

  for (const Id kernel : operations_of(graph, Kind::kKernel)) {
    graph.operations[kernel].duration_ns = 20 * kMicrosecond;
  }
  const auto after_ns = static_cast<double>(loop(20 * kMicrosecond).length("loop"));
  EXPECT_NEAR(static_cast<double>(replayed(graph, before, "loop")), after_ns, 0.01 * after_ns);
}

TEST(ReplayGraph, APageableCopyHoldsItsCall) {
  Program program;
  program.begin("loop");
  for (int step = 0; step < 5; ++step) {
    program.compute(10 * kMicrosecond);
    program.blocking_copy(100 * kMicrosecond, 1 << 20);
    program.kernel("add", 30 * kMicrosecond);
  }
  program.wait();
  program.end();
  Graph graph = graph_of(program.session());
  EXPECT_EQ(operations_of(graph, Kind::kWait).size(), 6u);  // of five copies, and the last
  EXPECT_EQ(replayed(graph, program, "loop"), program.length("loop"));

  for (const Id copy : operations_of(graph, Kind::kCopy)) {
    graph.operations[copy].duration_ns -= 60 * kMicrosecond;
  }
  EXPECT_EQ(replayed(graph, program, "loop"), program.length("loop") - 5 * 60 * kMicrosecond);
}

TEST(ReplayGraph, CallsInsideCallsBelongToTheOuterOne) {
  analyze::testing::SessionBuilder builder;
  const auto process = builder.process(1);
  const auto thread = builder.thread(process, 1);
  builder.stream(process, builder.device(process, 0), 7);
  builder.launch(thread, 1000, 9000);                     // cudaLaunchKernel
  const auto inner = builder.launch(thread, 2000, 8000);  // cuLaunchKernel
  builder.kernel(inner, "add", 10'000, 20'000);
  const Graph graph = graph_of(builder.session);

  const auto calls = operations_of(graph, Kind::kCall);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(graph.operations[calls[0]].end_ns, 9000);
  EXPECT_EQ(graph.find_dependency(operations_of(graph, Kind::kKernel)[0], Reason::kLaunch),
            calls[0]);
}

TEST(ReplayGraph, WorkThatWaitedForAnotherStreamDependsOnIt) {
  Program program(2);
  program.begin("loop");
  program.kernel("slow", 500 * kMicrosecond, 0);
  program.wait_event(0, 1);
  program.kernel("after", 10 * kMicrosecond, 1);
  program.wait();
  program.end();
  Graph graph = graph_of(program.session());
  const auto kernels = operations_of(graph, Kind::kKernel);
  EXPECT_EQ(graph.find_dependency(kernels[1], Reason::kStream), kernels[0]);

  graph.operations[kernels[0]].duration_ns -= 100 * kMicrosecond;
  EXPECT_EQ(replayed(graph, program, "loop"), program.length("loop") - 100 * kMicrosecond);
}

TEST(ReplayGraph, NodesOfAGraphRunSideBySide) {
  analyze::testing::SessionBuilder builder;
  const auto process = builder.process(1);
  const auto thread = builder.thread(process, 1);
  builder.stream(process, builder.device(process, 0), 7);
  const auto launch = builder.launch(thread, 1000, 5000, model::LaunchKind::kGraph);
  const auto fork = builder.kernel(launch, "fork", 7'000, 10'000);
  const auto left = builder.kernel(launch, "left", 11'000, 20'000);
  const auto right = builder.kernel(launch, "right", 11'500, 30'000);
  const auto join = builder.kernel(launch, "join", 31'000, 32'000);
  for (const auto node : {fork, left, right, join})
    builder.session.kernels[node].graph_node = 0;
  const Graph graph = graph_of(builder.session);

  const auto kernels = operations_of(graph, Kind::kKernel);
  EXPECT_EQ(graph.find_dependency(kernels[1], Reason::kOrder), kernels[0]);
  EXPECT_EQ(graph.find_dependency(kernels[2], Reason::kOrder), kernels[0]);
  std::vector<Id> joined;
  for (const Dependency& dependency : graph.dependencies_of(kernels[3])) {
    if (dependency.reason == Reason::kOrder)
      joined.push_back(dependency.on);
  }
  EXPECT_EQ(joined, (std::vector<Id>{kernels[1], kernels[2]}));
}

TEST(ReplayGraph, AThreadWaitsForTheOneThatItHandedOverTo) {
  analyze::testing::SessionBuilder builder;
  const auto process = builder.process(1);
  const auto forward = builder.thread(process, 1);
  const auto backward = builder.thread(process, 2);
  builder.stream(process, builder.device(process, 0), 7);
  std::int64_t now_ns = 1'000;
  const auto calls = [&](std::uint32_t thread, int count) {
    for (int call = 0; call < count; ++call) {
      now_ns += 10'000;
      builder.kernel(
          builder.launch(thread, now_ns, now_ns + 4'000), "k", now_ns + 6'000, now_ns + 7'000);
      now_ns += 4'000;
    }
  };
  builder.range(forward, "begin", 0, 500);
  calls(forward, 10);
  calls(backward, 10);
  calls(forward, 10);
  calls(backward, 10);
  calls(forward, 1);
  Graph graph = graph_of(builder.session);
  const auto end_of = [&](std::uint32_t thread) {
    const Times times = replay(graph);
    return times
        .end_ns[LaneIndex(graph).operations_of(LaneIndex(graph).lane_of_thread(thread)).back()];
  };
  EXPECT_EQ(end_of(forward), now_ns);

  for (const std::uint32_t stretch : operations_of(graph, Kind::kStretch)) {
    const bool of_backward = graph.lanes[graph.operations[stretch].lane].thread == backward;
    if (of_backward)
      graph.operations[stretch].duration_ns /= 2;
  }
  EXPECT_EQ(end_of(forward), now_ns - 20 * 5'000);
}

TEST(ReplayGraph, ThreadsThatCallSideBySideDoNotWaitForEachOther) {
  analyze::testing::SessionBuilder builder;
  const auto process = builder.process(1);
  const auto left = builder.thread(process, 1);
  const auto right = builder.thread(process, 2);
  for (int call = 0; call < 50; ++call) {
    builder.launch(left, 10'000 * call, 10'000 * call + 4'000);
    builder.launch(right, 10'000 * call + 5'000, 10'000 * call + 9'000);
  }
  const Graph graph = graph_of(builder.session);
  for (const Dependency& dependency : graph.dependencies)
    EXPECT_NE(dependency.reason, Reason::kHandOver);
}

TEST(ReplayGraph, WorkWithoutACallBeginsWhenItDid) {
  analyze::testing::SessionBuilder builder;
  const auto process = builder.process(1);
  builder.stream(process, builder.device(process, 0), 7);
  builder.kernel(model::kNone, "add", 5'000, 7'000);
  builder.kernel(model::kNone, "mul", 9'000, 12'000);
  const Graph graph = graph_of(builder.session);
  const Times times = replay(graph);
  for (Id id = 0; id < graph.size(); ++id)
    EXPECT_EQ(times.start_ns[id], graph.operations[id].start_ns);
}

TEST(ReplayGraph, AnEmptySessionIsAnEmptyGraph) {
  const Graph graph = graph_of(model::Session{});
  EXPECT_EQ(graph.size(), 1u);
  EXPECT_EQ(replay(graph).end_ns.size(), 1u);
}

}  // namespace build_test
}  // namespace rangescope::analyze::replay
