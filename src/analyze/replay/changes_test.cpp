// Each change against the program that it predicts, written out.
#include "analyze/replay/changes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "analyze/replay/build.hpp"
#include "analyze/replay/predict.hpp"
#include "analyze/replay/program_test.hpp"

namespace rangescope::analyze::replay {
namespace changes_test {

using testing::operations_of;
using testing::Program;
using testing::replayed;

constexpr std::int64_t kMicrosecond = 1'000;
constexpr int kSteps = 20;

/// A loop of equal steps, and a wait at its end.
Program loop(const std::function<void(Program&)>& step, std::uint32_t streams = 1) {
  Program program(streams);
  program.begin("loop");
  for (int number = 0; number < kSteps; ++number) {
    program.begin("step");
    step(program);
    program.end();
  }
  program.wait();
  program.end();
  return program;
}

/// The operations of a kind in runs of `count`: those of each step.
std::vector<std::vector<Id>> by_step(const Graph& graph, Kind kind, std::size_t count) {
  const auto operations = operations_of(graph, kind);
  std::vector<std::vector<Id>> steps;
  for (std::size_t first = 0; first + count <= operations.size(); first += count) {
    steps.emplace_back(operations.begin() + static_cast<std::ptrdiff_t>(first),
                       operations.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  return steps;
}

void expect_near(std::int64_t predicted_ns, const Program& after, double tolerance) {
  const auto real_ns = static_cast<double>(after.length("loop"));
  EXPECT_NEAR(static_cast<double>(predicted_ns), real_ns, tolerance * real_ns);
}

TEST(ReplayChanges, ScaledWork) {
  const auto step = [](std::int64_t gemm_ns) {
    return [gemm_ns](Program& program) {
      program.compute(6 * kMicrosecond);
      program.kernel("gemm", gemm_ns);
    };
  };
  const Program before = loop(step(400 * kMicrosecond));
  const Graph graph = graph_of(before.session());
  const Graph faster = scaled(graph, operations_of(graph, Kind::kKernel), 0.125);
  expect_near(replayed(faster, before, "loop"), loop(step(50 * kMicrosecond)), 0.001);
}

TEST(ReplayChanges, RemovedWorkTakesItsCallAlong) {
  const auto with = [](Program& program) {
    program.compute(5 * kMicrosecond);
    program.kernel("gemm", 8 * kMicrosecond);
    program.compute(5 * kMicrosecond);
    program.kernel("cast", 8 * kMicrosecond);
  };
  const auto gemm_only = [](Program& program) {
    program.compute(5 * kMicrosecond);
    program.kernel("gemm", 8 * kMicrosecond);
  };
  const Program before = loop(with);
  const Graph graph = graph_of(before.session());
  std::vector<Id> casts;
  for (const auto& kernels : by_step(graph, Kind::kKernel, 2))
    casts.push_back(kernels[1]);
  const Graph changed = without(graph, casts);
  EXPECT_EQ(operations_of(changed, Kind::kCall).size(), std::size_t{kSteps});
  expect_near(replayed(changed, before, "loop"), loop(gemm_only), 0.001);
}

TEST(ReplayChanges, ALongStretchBeforeRemovedWorkIsTheProgramsOwn) {
  const Program before = loop([](Program& program) {
    program.compute(5 * kMicrosecond);
    program.kernel("add", 2 * kMicrosecond);
    program.compute(5 * kMicrosecond);
    program.kernel("add", 2 * kMicrosecond);
    program.compute(900 * kMicrosecond);
    program.kernel("cast", 2 * kMicrosecond);
  });
  const Graph graph = graph_of(before.session());
  std::vector<Id> casts;
  for (const auto& kernels : by_step(graph, Kind::kKernel, 3))
    casts.push_back(kernels[2]);
  EXPECT_GT(replayed(without(graph, casts), before, "loop"), kSteps * 890 * kMicrosecond);
}

TEST(ReplayChanges, RemovedWaits) {
  const auto step = [](bool waits) {
    return [waits](Program& program) {
      program.compute(6 * kMicrosecond);
      program.kernel("gemm", 30 * kMicrosecond);
      if (waits)
        program.wait();
    };
  };
  const Program before = loop(step(true));
  const Graph graph = graph_of(before.session());
  auto waits = operations_of(graph, Kind::kWait);
  waits.pop_back();  // the loop's own
  expect_near(replayed(without(graph, waits), before, "loop"), loop(step(false)), 0.02);
}

TEST(ReplayChanges, ACaptureOfTheStep) {
  const auto step = [](int kernels) {
    return [kernels](Program& program) {
      for (int kernel = 0; kernel < kernels; ++kernel) {
        program.compute(8 * kMicrosecond);
        program.kernel("add", 3 * kMicrosecond);
      }
    };
  };
  const Program before = loop(step(50));
  const Graph graph = graph_of(before.session());
  const GraphCost cost{10 * kMicrosecond, 0};
  const std::int64_t gpu_ns = kSteps * 50 * 3 * kMicrosecond;
  const std::int64_t predicted_ns =
      replayed(as_graph_launches(graph, captures_of(before.spans("step")), cost), before, "loop");
  EXPECT_NEAR(static_cast<double>(predicted_ns),
              static_cast<double>(gpu_ns),
              0.05 * static_cast<double>(gpu_ns));
}

TEST(ReplayChanges, AStepThatWaitsIsNotCaptured) {
  const Program before = loop([](Program& program) {
    for (int kernel = 0; kernel < 5; ++kernel)
      program.kernel("add", 3 * kMicrosecond);
    program.wait();
  });
  const Graph graph = graph_of(before.session());
  const Graph changed =
      as_graph_launches(graph, captures_of(before.spans("step")), {10 * kMicrosecond, 0});
  EXPECT_EQ(replayed(changed, before, "loop"), before.length("loop"));
}

TEST(ReplayChanges, OneKernelForAChain) {
  const auto step = [](int kernels) {
    return [kernels](Program& program) {
      for (int kernel = 0; kernel < kernels; ++kernel) {
        program.compute(5 * kMicrosecond);
        program.kernel("elementwise", 180 * kMicrosecond);
      }
    };
  };
  const Program before = loop(step(8));
  const Graph graph = graph_of(before.session());
  std::vector<Fusion> fusions;
  for (const auto& kernels : by_step(graph, Kind::kKernel, 8))
    fusions.push_back({kernels, 180 * kMicrosecond});
  expect_near(replayed(fused(graph, fusions), before, "loop"), loop(step(1)), 0.01);
}

TEST(ReplayChanges, CallingTheOneKernelTakesAThreadAsLongAsSaidButNoLongerThanBefore) {
  const auto step = [](int kernels, std::int64_t more_ns) {
    return [kernels, more_ns](Program& program) {
      for (int kernel = 0; kernel < kernels; ++kernel) {
        program.compute(5 * kMicrosecond);
        program.kernel("elementwise", kMicrosecond);
      }
      program.compute(more_ns);
    };
  };
  const Program before = loop(step(8, 0));
  const Graph graph = graph_of(before.session());
  const auto after = [&](std::int64_t call_ns) {
    std::vector<Fusion> fusions;
    for (const auto& kernels : by_step(graph, Kind::kKernel, 8))
      fusions.push_back({kernels, kMicrosecond, call_ns});
    return replayed(fused(graph, fusions), before, "loop");
  };
  const std::int64_t longer_ns = 30 * kMicrosecond;
  expect_near(after(testing::kCall_ns + longer_ns), loop(step(1, longer_ns)), 0.01);
  expect_near(after(1'000 * kMicrosecond), before, 0.01);
}

TEST(ReplayChanges, CopiesAheadAreAsSlowAsTheLongerOfCopyAndWork) {
  for (const std::int64_t kernel_ns : {100 * kMicrosecond, 900 * kMicrosecond}) {
    const Program before = loop([&](Program& program) {
      program.compute(20 * kMicrosecond);
      program.blocking_copy(2'000 * kMicrosecond, 1 << 24);
      program.wait();
      program.kernel("gemm", kernel_ns);
    });
    const Graph graph = graph_of(before.session());
    const auto copies = operations_of(graph, Kind::kCopy);
    const std::vector<std::int64_t> durations_ns(copies.size(), 400 * kMicrosecond);
    const Graph changed = copied_ahead(graph, copies, durations_ns, 2);
    const std::int64_t longer_ns = std::max(kernel_ns, 400 * kMicrosecond);
    const auto expected_ns = static_cast<double>(kSteps * longer_ns);
    EXPECT_NEAR(
        static_cast<double>(replayed(changed, before, "loop")), expected_ns, 0.07 * expected_ns);
  }
}

TEST(ReplayChanges, ABufferIsNotFilledBeforeItsDataIsUsed) {
  const Program before = loop([](Program& program) {
    program.blocking_copy(400 * kMicrosecond, 1 << 20);
    program.kernel("gemm", 900 * kMicrosecond);
  });
  const Graph graph = graph_of(before.session());
  const auto copies = operations_of(graph, Kind::kCopy);
  const std::vector<std::int64_t> durations_ns(copies.size(), 10 * kMicrosecond);
  const Graph changed = copied_ahead(graph, copies, durations_ns, 2);
  const Times times = replay(changed);
  const auto ahead = operations_of(changed, Kind::kCopy);
  const auto kernels = operations_of(changed, Kind::kKernel);
  for (std::size_t step = 2; step < ahead.size(); ++step) {
    EXPECT_GE(times.start_ns[ahead[step]], times.end_ns[kernels[step - 2]]);
  }
}

TEST(ReplayChanges, BatchesMadeAhead) {
  const Program before = loop([](Program& program) {
    program.compute(4'000 * kMicrosecond);
    program.kernel("gemm", 1'000 * kMicrosecond);
    program.wait();
  });
  const Graph graph = graph_of(before.session());
  std::vector<Id> batches;
  for (const Id stretch : operations_of(graph, Kind::kStretch)) {
    if (graph.operations[stretch].duration_ns > 3'000 * kMicrosecond)
      batches.push_back(stretch);
  }
  ASSERT_EQ(batches.size(), std::size_t{kSteps});

  const auto one_worker_ns =
      static_cast<double>(replayed(moved_ahead(graph, batches, 1, 2), before, "loop"));
  EXPECT_NEAR(one_worker_ns, kSteps * 4e6, 0.02 * kSteps * 4e6);
  const auto many_workers_ns =
      static_cast<double>(replayed(moved_ahead(graph, batches, 8, 2), before, "loop"));
  EXPECT_NEAR(many_workers_ns, 4e6 + kSteps * 1e6, 0.03 * kSteps * 1e6);
}

TEST(ReplayChanges, SmallChainsSideBySide) {
  const Program before = loop([](Program& program) {
    for (int kernel = 0; kernel < 6; ++kernel)
      program.kernel("small", 200 * kMicrosecond);
  });
  const Graph graph = graph_of(before.session());
  const auto first_step = by_step(graph, Kind::kKernel, 6).front();
  const auto predicted_ns = [&](double room) {
    std::vector<Chain> chains(2);
    chains[0] = {{first_step.begin(), first_step.begin() + 3}, room};
    chains[1] = {{first_step.begin() + 3, first_step.end()}, room};
    return replayed(side_by_side(graph, chains), before, "loop");
  };
  const auto saved_ns = [&](double room) { return before.length("loop") - predicted_ns(room); };
  EXPECT_NEAR(static_cast<double>(saved_ns(0.3)),
              600e3,
              10e3);  // they fit: the time of three of the six
  EXPECT_NEAR(static_cast<double>(saved_ns(1.0)), 0, 10e3);  // each fills the GPU
}

TEST(ReplayChanges, WhatTracingAddedToCalls) {
  const Program program = loop([](Program& each) {
    each.compute(6 * kMicrosecond);
    each.kernel("add", 2 * kMicrosecond);
  });
  const Graph graph = graph_of(program.session());
  const std::int64_t untraced_ns = replayed(without_tracing(graph, kMicrosecond), program, "loop");
  EXPECT_EQ(untraced_ns, program.length("loop") - kSteps * kMicrosecond);
}

TEST(ReplayChanges, APredictionHasAnInterval) {
  const Program before = loop([](Program& program) { program.kernel("gemm", 400 * kMicrosecond); });
  const Predictor predictor(graph_of(before.session()), 0);
  const auto gemms = operations_of(predictor.graph(), Kind::kKernel);
  const Change change = [&](const Graph& recorded, double factor) {
    return scaled(recorded, gemms, factor);
  };
  const Prediction prediction = predictor.predict(before.spans("loop"), change, {0.5, 0.4, 0.8});

  EXPECT_FALSE(prediction.is_bound);
  EXPECT_NEAR(prediction.saves_share(), 0.5, 0.02);
  EXPECT_NEAR(prediction.saves_low_ns() / prediction.before_ns, 0.2, 0.02);
  EXPECT_NEAR(prediction.saves_high_ns() / prediction.before_ns, 0.6, 0.02);
}

TEST(ReplayChanges, TwoTogetherSaveWhatIsLeftAfterEach) {
  const Program before = loop([](Program& program) {
    program.compute(100 * kMicrosecond);
    program.kernel("gemm", 120 * kMicrosecond);
  });
  const Predictor predictor(graph_of(before.session()), 0);
  const auto saves_ns = [&](const Change& change) {
    return predictor.predict(before.spans("loop"), change).saves_ns();
  };
  const Change faster_gpu = [](const Graph& recorded, double) {
    return scaled(recorded, operations_of(recorded, Kind::kKernel), 0.25);
  };
  const Change faster_cpu = [](const Graph& recorded, double) {
    return scaled(recorded, operations_of(recorded, Kind::kStretch), 0.25);
  };
  const Change both = [&](const Graph& recorded, double) {
    return faster_cpu(faster_gpu(recorded, 1), 1);
  };
  EXPECT_LT(saves_ns(faster_cpu), 0.05 * static_cast<double>(before.length("loop")));
  EXPECT_GT(saves_ns(both), 2 * (saves_ns(faster_gpu) + saves_ns(faster_cpu)));
}

TEST(ReplayChanges, ARecordingThatDoesNotReplayGivesBounds) {
  Program before = loop([](Program& program) { program.kernel("gemm", 400 * kMicrosecond); });
  Graph recorded = graph_of(before.session());
  for (Operation& operation : recorded.operations) {
    if (operation.kind == Kind::kKernel)
      operation.duration_ns /= 2;
  }
  const Predictor predictor(std::move(recorded), 0);
  const Change nothing = [](const Graph& graph, double) { return graph; };
  EXPECT_TRUE(predictor.predict(before.spans("loop"), nothing).is_bound);
}

/// Two ranks, which compute and then reduce together; both leave a reduction at the same moment.
class Ranks {
 public:
  explicit Ranks(std::array<std::int64_t, 2> compute_ns) {
    for (Id rank = 0; rank < 2; ++rank) {
      const Id process = builder_.process(1 + rank);
      threads_.push_back(builder_.thread(process, 1 + rank));
      builder_.stream(process, builder_.device(process, rank), 7);
    }
    std::int64_t now_ns = 1'000'000;
    for (int step = 0; step < kSteps; ++step)
      now_ns = add_step(now_ns, compute_ns);
    for (const Id thread : threads_)
      builder_.range(thread, "loop", 1'000'000, now_ns);
    end_ns_ = now_ns;
  }

  [[nodiscard]] Graph graph() const { return graph_of(builder_.session, collectives_); }
  [[nodiscard]] std::int64_t length_ns() const { return end_ns_ - 1'000'000; }
  [[nodiscard]] std::vector<Span> loop(Id rank) const {
    return {{threads_[rank], 1'000'000, end_ns_}};
  }

 private:
  static constexpr std::int64_t kTransfer_ns = 30'000;

  /// Launches in 10 us, a kernel of the rank's own length, the reduction, and a wait for it.
  std::int64_t add_step(std::int64_t now_ns, std::array<std::int64_t, 2> compute_ns) {
    std::array<std::int64_t, 2> arrivals_ns = {};
    for (Id rank = 0; rank < 2; ++rank)
      arrivals_ns[rank] =
          now_ns + testing::kCall_ns + testing::kLaunch_ns + compute_ns[rank] + testing::kOrder_ns;
    const std::int64_t reduced_ns = std::max(arrivals_ns[0], arrivals_ns[1]) + kTransfer_ns;
    const std::int64_t end_ns = reduced_ns + testing::kReturn_ns;
    CollectiveKernels reduction;
    for (Id rank = 0; rank < 2; ++rank) {
      const std::int64_t launched_ns = now_ns + testing::kCall_ns;
      const Id gemm = builder_.launch(threads_[rank], now_ns, launched_ns);
      const std::int64_t start_ns = launched_ns + testing::kLaunch_ns;
      builder_.kernel(gemm, "gemm", start_ns, start_ns + compute_ns[rank], rank);
      const Id reduce =
          builder_.launch(threads_[rank], launched_ns, launched_ns + testing::kCall_ns);
      reduction.push_back(
          builder_.kernel(reduce, "ncclAllReduce", arrivals_ns[rank], reduced_ns, rank));
      builder_.launch(
          threads_[rank], launched_ns + testing::kCall_ns, end_ns, model::LaunchKind::kSynchronize);
    }
    collectives_.push_back(reduction);
    return end_ns;
  }

  analyze::testing::SessionBuilder builder_;
  std::vector<Id> threads_;
  std::vector<CollectiveKernels> collectives_;
  std::int64_t end_ns_ = 0;
};

std::int64_t length_of(const Graph& graph, const std::vector<Span>& spans) {
  return static_cast<std::int64_t>(compare(ReplayedClock(graph, replay(graph)), spans).replayed_ns);
}

TEST(ReplayChanges, RanksThatWaitForOneAnotherReplay) {
  const Ranks ranks({400 * kMicrosecond, 100 * kMicrosecond});
  const Graph graph = ranks.graph();
  for (Id rank = 0; rank < 2; ++rank)
    EXPECT_NEAR(static_cast<double>(length_of(graph, ranks.loop(rank))),
                static_cast<double>(ranks.length_ns()),
                0.01 * ranks.length_ns());
}

TEST(ReplayChanges, ASlowRankAsFastAsTheMeanHelpsAllRanks) {
  const Ranks before({400 * kMicrosecond, 100 * kMicrosecond});
  const Graph graph = before.graph();
  const Graph halved = with_rank_scaled(graph, 0, 0.5);
  const Ranks after({200 * kMicrosecond, 100 * kMicrosecond});
  for (Id rank = 0; rank < 2; ++rank)
    EXPECT_NEAR(static_cast<double>(length_of(halved, before.loop(rank))),
                static_cast<double>(after.length_ns()),
                0.03 * after.length_ns());

  const double factor = factor_to_mean(graph, 0);
  EXPECT_NEAR(factor, 250.0 / 400, 0.04);
  const Ranks mean({250 * kMicrosecond, 100 * kMicrosecond});
  const Graph as_mean = with_rank_scaled(graph, 0, factor);
  EXPECT_NEAR(static_cast<double>(length_of(as_mean, before.loop(1))),
              static_cast<double>(mean.length_ns()),
              0.03 * mean.length_ns());
}

TEST(ReplayChanges, AFasterRankThatWaitsSavesNothing) {
  const Ranks before({400 * kMicrosecond, 100 * kMicrosecond});
  const Graph faster = with_rank_scaled(before.graph(), 1, 0.5);
  EXPECT_NEAR(static_cast<double>(length_of(faster, before.loop(0))),
              static_cast<double>(before.length_ns()),
              0.02 * before.length_ns());
}

}  // namespace changes_test
}  // namespace rangescope::analyze::replay
