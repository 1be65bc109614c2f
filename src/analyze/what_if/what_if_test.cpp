// Reports of small programs with a supposition, against the same programs written with the change.
#include "analyze/what_if/what_if.hpp"

#include <gtest/gtest.h>

#include "analyze/details.hpp"
#include "analyze/replay/program_test.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace what_if_test {

using replay::testing::Program;

constexpr std::int64_t kMicrosecond = 1'000;

Reference costs() {
  Reference reference;
  reference.replay_costs.graph_launch_ns = {4'000, 3'000, 10'000};
  reference.replay_costs.pinned_share = {0.8, 0.75, 0.85};
  return reference;
}

base::Result<model::Report> supposing(const model::Session& session,
                                      std::vector<std::string> changes) {
  Options options;
  options.what_if = std::move(changes);
  Details details;
  auto report = TRY(analyze(session, options, details));
  const Regions regions{session, options, details.tree, details.keys, details.by_cell};
  TRY(add_what_if(regions, costs(), report));
  return report;
}

base::Result<model::Report> supposing(const Program& program, std::vector<std::string> changes) {
  return supposing(program.session(), std::move(changes));
}

const model::PredictedTime* time_of(const model::Report& report, std::string_view name) {
  for (const model::PredictedRegion& predicted : report.what_if->regions) {
    if (report.regions[predicted.region].path.back() == name)
      return &predicted.time;
  }
  return nullptr;
}

Program training(std::int64_t softmax_ns, std::int64_t launches = 4) {
  Program program;
  program.begin("loop");
  for (int number = 0; number < 30; ++number) {
    program.begin("step");
    program.compute(5 * kMicrosecond);
    program.kernel("softmax_warp_forward", softmax_ns);
    for (std::int64_t launch = 0; launch < launches; ++launch) {
      program.compute(3 * kMicrosecond);
      program.kernel("gemm", 10 * kMicrosecond);
    }
    program.end();
  }
  program.wait();
  program.end();
  return program;
}

TEST(WhatIf, NothingIsPredictedUnlessAsked) {
  const auto report = supposing(training(100 * kMicrosecond), {});
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->what_if);
  EXPECT_FALSE(report->regions.front().metrics.contains(std::string(model::kPredictedWall)));
}

TEST(WhatIf, AFasterKernelInEveryRegion) {
  const Program before = training(400 * kMicrosecond);
  const auto report = supposing(before, {"kernel:softmax*=0.25"});
  ASSERT_TRUE(report) << to_string(report.error());
  ASSERT_EQ(report->what_if->changes.size(), 1u);
  EXPECT_EQ(report->what_if->changes.front().subject, "30 kernel executions, 12.00 ms");
  const model::PredictedTime* loop = time_of(*report, "loop");
  ASSERT_NE(loop, nullptr);
  const auto after_ns = static_cast<double>(training(100 * kMicrosecond).length("loop"));
  EXPECT_NEAR(loop->after_ns, after_ns, 0.02 * after_ns);
  EXPECT_NEAR(loop->now_ns, static_cast<double>(before.length("loop")), 1);
  EXPECT_LE(loop->after_low_ns, loop->after_ns);
  EXPECT_GE(loop->after_high_ns, loop->after_ns);
  EXPECT_FALSE(loop->is_bound);
  EXPECT_NEAR(report->what_if->run.saves_ns(), loop->saves_ns(), 0.02 * loop->saves_ns());

  const model::Region& region = report->regions.front();
  EXPECT_EQ(region.metrics.at("predicted_wall_ns").value, loop->after_ns);
  EXPECT_NEAR(region.metrics.at("predicted_saving").value, loop->saves_ns() / loop->now_ns, 1e-9);
  EXPECT_EQ(report->metric_columns.front().name, "predicted_wall_ns");
}

TEST(WhatIf, AFactorOfOneChangesNothing) {
  const Program program = training(50 * kMicrosecond);
  const auto report = supposing(program, {"kernel:gemm=1"});
  ASSERT_TRUE(report);
  for (const model::PredictedRegion& predicted : report->what_if->regions)
    EXPECT_NEAR(predicted.time.after_ns, predicted.time.now_ns, 1);
}

TEST(WhatIf, ChangesTogetherAreOneProgram) {
  const Program before = training(400 * kMicrosecond, 20);
  const auto together = supposing(before, {"kernel:softmax=0.01", "launches:step=graph"});
  ASSERT_TRUE(together) << to_string(together.error());
  const auto alone = supposing(before, {"kernel:softmax=0.01"});
  ASSERT_TRUE(alone);
  const double together_ns = time_of(*together, "loop")->after_ns;
  EXPECT_LT(together_ns, time_of(*alone, "loop")->after_ns);
  const double gpu_ns = 30.0 * (4 + 20 * 10) * kMicrosecond;
  EXPECT_GT(together_ns, gpu_ns);
  EXPECT_LT(together_ns, 1.1 * gpu_ns);
}

TEST(WhatIf, GraphsAreOfTheRangesThatRepeatAndDoNotWait) {
  const Program before = training(2 * kMicrosecond, 20);  // the loop waits at its end
  const auto chosen = supposing(before, {"launches=graph"});
  const auto named = supposing(before, {"launches:step=graph"});
  ASSERT_TRUE(chosen && named);
  EXPECT_EQ(chosen->what_if->changes.front().subject, "30 instances as a CUDA graph each");
  EXPECT_EQ(time_of(*chosen, "loop")->after_ns, time_of(*named, "loop")->after_ns);
}

TEST(WhatIf, ARegionThatDoesNotHappen) {
  const auto report = supposing(training(100 * kMicrosecond), {"region:step=0"});
  ASSERT_TRUE(report);
  EXPECT_NEAR(time_of(*report, "step")->after_ns, 0, 1);
}

Program copying(bool pinned) {
  Program program(2);
  program.begin("loop");
  for (int number = 0; number < 30; ++number) {
    program.begin("step");
    program.compute(5 * kMicrosecond);
    if (pinned) {
      program.copy(50 * kMicrosecond, 2'000'000, 1);
      program.wait_event(1, 0);
    } else {
      program.blocking_copy(400 * kMicrosecond, 2'000'000);
    }
    program.kernel("gemm", 100 * kMicrosecond);
    program.end();
  }
  program.wait();
  program.end();
  return program;
}

TEST(WhatIf, OverlappedCopiesOfUnknownSpeedKeepTheirTime) {
  const auto report = supposing(copying(false), {"copies=overlapped"});
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->what_if->changes.front().subject, "30 copies, 12.00 ms to the GPU");
  const model::PredictedTime* loop = time_of(*report, "loop");
  EXPECT_NEAR(loop->after_ns, 30 * 401.0 * kMicrosecond, 0.05 * loop->after_ns);
}

TEST(WhatIf, WhatRunsAheadStillBelongsToItsRegion) {
  const Program program = copying(false);
  const auto ahead = supposing(program, {"copies=overlapped"});
  const auto halved = supposing(program, {"copies=overlapped", "region:step=0.5"});
  ASSERT_TRUE(ahead && halved);
  const double ahead_ns = time_of(*ahead, "loop")->after_ns;
  EXPECT_NEAR(time_of(*halved, "loop")->after_ns, ahead_ns / 2, 0.05 * ahead_ns);
}

void give(model::Session& session, std::uint32_t range, const char* name, std::uint64_t value) {
  session.payload_fields.push_back(
      {range, session.strings.intern(name), model::PayloadType::kUint64, value});
}

/// Two ranks whose steps are a kernel of their own length and a reduction, which both leave at
/// once.
model::Session data_parallel(std::int64_t first_ns, std::int64_t second_ns) {
  testing::SessionBuilder builder;
  const std::int64_t lengths_ns[] = {first_ns, second_ns};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto process = builder.process(10 + rank);
    builder.session.processes.back().rank = rank;
    builder.session.processes.back().world = 2;
    const auto thread = builder.thread(process, 10 + rank);
    const auto stream = builder.stream(process, builder.device(process, rank), 7);
    std::int64_t now_ns = 1'000'000;
    for (int step = 0; step < 20; ++step) {
      const std::int64_t reduced_ns = now_ns + 7'000 + std::max(first_ns, second_ns) + 30'000;
      const std::int64_t end_ns = reduced_ns + 5'000;
      builder.range(thread, "step", now_ns, end_ns);
      const auto gemm = builder.launch(thread, now_ns, now_ns + 4'000);
      const std::int64_t computed_ns = now_ns + 6'000 + lengths_ns[rank];
      builder.kernel(gemm, "gemm", now_ns + 6'000, computed_ns, stream);
      const auto call =
          builder.range(thread, "ncclAllReduce", now_ns + 4'000, now_ns + 9'000, "NCCL");
      give(builder.session, call, "NCCL communicator ID", 5);
      give(builder.session, call, "Message size [bytes]", 1000);
      const auto launch = builder.launch(thread, now_ns + 4'500, now_ns + 8'500);
      builder.kernel(launch,
                     "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                     computed_ns + 1'000,
                     reduced_ns,
                     stream);
      builder.launch(thread, now_ns + 9'000, end_ns, model::LaunchKind::kSynchronize);
      now_ns = end_ns;
    }
  }
  return std::move(builder.session);
}

TEST(WhatIf, ASlowRankHoldsUpTheOthers) {
  const model::Session session = data_parallel(400'000, 100'000);
  const auto report = supposing(session, {"rank:0=mean"});
  ASSERT_TRUE(report) << to_string(report.error());
  const model::PredictedTime& run = report->what_if->run;
  const double step_ns = 7'000 + 400'000 + 35'000, mean_ns = 7'000 + 250'000 + 35'000;
  const double run_ns = 20 * step_ns;  // and what was before it
  EXPECT_NEAR(run.saves_ns(), run_ns - 20 * mean_ns, 0.03 * run_ns);

  const auto faster = supposing(session, {"rank:1=0.5"});
  ASSERT_TRUE(faster) << to_string(faster.error());
  EXPECT_LT(faster->what_if->run.saves_ns(), 0.02 * run_ns);
}

TEST(WhatIf, WhatIsNotThereIsAnErrorWithWhatIs) {
  struct Missing {
    const char *change, *what, *hint;
  };
  for (const auto& [change, what, hint] :
       {Missing{"kernel:softmacks=0.5", "no kernel matches", "softmax_warp_forward"},
        Missing{"region:stop=0", "no range matches 'stop'", "'step/'"},
        Missing{"copies=0", "no copy was recorded", ""},
        Missing{"copies=overlapped", "no copy to the GPU was recorded", "cannot run ahead"},
        Missing{"rank:3=mean", "rank 3 was not recorded", "Name a job"},
        Missing{"launches:loop=graph", "without waiting", "'launches:RANGE=graph'"}}) {
    SCOPED_TRACE(change);
    const auto report = supposing(training(100 * kMicrosecond), {change});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, base::Code::kNothingCaptured);
    EXPECT_EQ(report.error().where, "--what-if '" + std::string(change) + "'");
    EXPECT_NE(report.error().what.find(what), std::string::npos) << report.error().what;
    EXPECT_NE(report.error().hint.find(hint), std::string::npos) << report.error().hint;
  }
}

TEST(WhatIf, WithoutCallsNothingCanBePredicted) {
  Program program;
  program.begin("loop");
  program.compute(kMicrosecond);
  program.end();
  const auto report = supposing(program, {"kernel:gemm=0"});
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("has no CUDA calls"), std::string::npos);
}

}  // namespace what_if_test
}  // namespace rangescope::analyze
