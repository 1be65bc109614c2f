// Simulated jobs of which everything is known: who is late, by how much, how long a transfer takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analyze/analyze.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/rows.hpp"
#include "analyze/session_test.hpp"
#include "analyze/verdict/verdict.hpp"

namespace rangescope::analyze {
namespace ranks_test {

constexpr std::int64_t kMs = 1'000'000;

struct Job {
  std::uint32_t ranks = 8, steps = 30;
  std::int64_t compute_ns = 100 * kMs, transfer_ns = 2 * kMs;
  double noise = 0.01;  ///< of compute, one standard deviation
  std::uint32_t straggler = kNone;
  std::int64_t late_ns = 0;   ///< more in each of its steps, in a range of its own
  std::int64_t stall_ns = 0;  ///< more in its sixth step, in no range of its own
  bool collectives = true;
  unsigned seed = 1;
};

void give(model::Session& session, std::uint32_t range, std::string_view name, std::uint64_t bits) {
  session.payload_fields.push_back(
      {range, session.strings.intern(name), model::PayloadType::kUint64, bits});
}

/// Steps of compute and an AllReduce of 1 MiB that all leave together. Without collectives nothing
/// waits.
model::Session simulate(const Job& job) {
  testing::SessionBuilder builder;
  std::mt19937 random(job.seed);
  std::normal_distribution<double> noise(0, job.noise);
  std::vector<std::int64_t> at(job.ranks, 0);
  for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
    builder.thread(builder.process(1000 + rank), 1000 + rank);
    builder.session.processes.back().rank = rank;
    builder.session.processes.back().world = job.ranks;
  }
  for (std::uint32_t step = 0; step < job.steps; ++step) {
    std::vector<std::int64_t> begin = at, arrived(job.ranks);
    for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
      const auto length =
          static_cast<std::int64_t>(static_cast<double>(job.compute_ns) * (1 + noise(random)));
      arrived[rank] = at[rank] + length;
      builder.range(rank, "compute", at[rank] + 1000, arrived[rank]);  // inside its step
      if (rank == job.straggler) {
        builder.range(rank, "straggle", arrived[rank], arrived[rank] + job.late_ns);
        arrived[rank] += job.late_ns + (step == 5 ? job.stall_ns : 0);
      }
    }
    const std::int64_t last = *std::max_element(arrived.begin(), arrived.end());
    for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
      at[rank] = job.collectives ? last + job.transfer_ns : arrived[rank];
      if (job.collectives) {
        const std::uint32_t call =
            builder.range(rank, "ncclAllReduce", arrived[rank], at[rank], "NCCL");
        give(builder.session, call, "NCCL communicator ID", 0xabc);
        give(builder.session, call, "Message size [bytes]", 1 << 20);
      }
      builder.range(rank, "step", begin[rank], at[rank]);
    }
  }
  return std::move(builder.session);
}

model::Report judged(const model::Session& session) {
  auto report = analyze(session);
  EXPECT_TRUE(report);
  finish_rows(*report);
  judge(*report);
  return std::move(*report);
}

const model::Verdict* straggler(const model::Report& report) {
  for (const model::Verdict& verdict : report.verdict)
    if (verdict.kind == "straggler")
      return &verdict;
  return nullptr;
}

TEST(Ranks, TwentyOfTwentyStragglersAreNamed) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Job job;
    job.seed = seed;
    job.ranks = 2 + seed % 7;
    job.straggler = seed % job.ranks;
    job.late_ns = 200 * kMs / job.steps;  // 200 ms in all
    job.collectives = seed % 4 != 0 || job.ranks == 2;
    const model::Report report = judged(simulate(job));
    const model::Verdict* found = straggler(report);
    ASSERT_NE(found, nullptr) << "seed " << seed;
    EXPECT_EQ(found->evidence.at("rank"), job.straggler) << "seed " << seed;
    EXPECT_EQ(found->path, job.collectives ? "step > straggle" : found->path) << found->text;
    EXPECT_NE(found->path.find("stra"), std::string::npos) << found->text;
  }
}

TEST(Ranks, TheStragglerIsFirstAndTheCallsInWhichOthersWaitNameIt) {
  Job job;
  job.ranks = 4;
  job.straggler = 2;
  job.late_ns = 400 * kMs;
  const model::Report report = judged(simulate(job));
  ASSERT_FALSE(report.verdict.empty());
  EXPECT_EQ(report.verdict.front().kind, "straggler");
  const auto hot = std::ranges::find(report.verdict, "hot_region", &model::Verdict::kind);
  ASSERT_NE(hot, report.verdict.end());
  EXPECT_EQ(hot->path, "NCCL@ncclAllReduce");
  EXPECT_NE(hot->text.find(" waiting for ranks that arrive later, 100.0 % of that for rank 2"),
            std::string::npos)
      << hot->text;
}

TEST(Ranks, WhatTheNamedCauseDoesNotExplainIsNotSaved) {
  Job job;
  job.ranks = 3;
  job.steps = 10;
  job.noise = 0;
  job.straggler = 1;
  job.late_ns = 40 * kMs;
  job.stall_ns = 300 * kMs;
  const model::Report report = judged(simulate(job));
  const model::Verdict* found = straggler(report);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->path, "step > straggle");
  EXPECT_EQ(found->evidence.at("holds_up_ns"), 660 * kMs);  // of nine calls: the first sets up
  EXPECT_EQ(found->saves_ns, 400 * kMs);
  EXPECT_EQ(found, &report.verdict.front());
}

/// The straggler's time in its own range, sampled each millisecond: it runs in `assemble` for a
/// quarter of it, and then does not run.
void sample_straggler(const Job& job, model::WaitKind rest, model::Session& session) {
  session.cpu.interval_ns = kMs;
  model::CpuFrame assemble;
  assemble.kind = model::FrameKind::kPython;
  assemble.name = session.strings.intern("assemble");
  assemble.file = session.strings.intern("/srv/app/mesh.py");
  assemble.line = 12;
  session.cpu.frames = {assemble};
  session.cpu.stacks = {{kNone, 0}};
  for (std::uint32_t rank = 0; rank < job.ranks; ++rank)
    session.cpu.threads.push_back({.pid = 1000 + rank, .tid = 1000 + rank, .thread = rank});
  for (const model::Range& range : session.ranges) {
    if (session.strings.view(range.name) != "straggle")
      continue;
    const std::int64_t waits_ns = range.start_ns + job.late_ns / 4;
    for (std::int64_t time_ns = range.start_ns; time_ns < waits_ns; time_ns += kMs)
      session.cpu.samples.push_back({time_ns, job.straggler, 0});
    session.cpu.waits.push_back(
        {.start_ns = waits_ns, .end_ns = range.end_ns, .thread = job.straggler, .kind = rest});
  }
}

/// Of three ranks the second is late by 40 ms in each of ten steps.
model::Report report_of_sampled_job(model::WaitKind rest) {
  Job job;
  job.ranks = 3;
  job.steps = 10;
  job.straggler = 1;
  job.late_ns = 40 * kMs;
  model::Session session = simulate(job);
  sample_straggler(job, rest, session);
  return judged(session);
}

TEST(Ranks, AFunctionIsNamedThatWaitsForACpuMostOfTheTimeThatItsRankIsLate) {
  const model::Report report = report_of_sampled_job(model::WaitKind::kPreempted);
  const model::Verdict* found = straggler(report);
  ASSERT_NE(found, nullptr);
  EXPECT_NE(
      found->text.find("assemble (mesh.py:12) takes 100.0 ms more of its CPU time than of the "
                       "others', and waits 300.0 ms longer for a CPU"),
      std::string::npos)
      << found->text;
  EXPECT_EQ(found->evidence.at("function_excess_ns"), 100 * kMs);
  EXPECT_EQ(found->evidence.at("function_waits_ns"), 300 * kMs);
}

TEST(Ranks, AFunctionIsNotNamedWhoseRankSleepsMostOfTheTimeThatItIsLate) {
  const model::Report report = report_of_sampled_job(model::WaitKind::kSleep);
  const model::Verdict* found = straggler(report);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->text.find("assemble"), std::string::npos) << found->text;
}

TEST(Ranks, NoneOfTwentyEvenJobsHasAStraggler) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Job job;
    job.seed = 100 + seed;
    job.ranks = 2 + seed % 7;
    job.collectives = seed % 2 == 0;
    job.noise = 0.002 * (seed % 5);
    const model::Report report = judged(simulate(job));
    EXPECT_EQ(straggler(report), nullptr) << "seed " << seed << ": " << straggler(report)->text;
  }
}

TEST(Ranks, OneLongStallOfOneStepIsNamedToo) {
  Job job;
  job.noise = 0.005;
  model::Session session = simulate(job);
  // Rank 3 arrives 200 ms late at the third call: there the others wait, and all later times move.
  std::vector<int> calls(job.ranks, 0), computes(job.ranks, 0);
  for (model::Range& range : session.ranges) {
    const std::string_view name = session.strings.view(range.name);
    const bool call = name == "ncclAllReduce", mine = range.thread == 3;
    const int ordinal = call                ? calls[range.thread]++
                        : name == "compute" ? computes[range.thread]++
                                            : calls[range.thread] - 1;
    if (ordinal < 2)
      continue;
    const bool begins = ordinal > 2 || (call && mine),
               ends = ordinal > 2 || call || mine || name == "step";
    if (begins)
      range.start_ns += 200 * kMs;
    if (ends)
      range.end_ns += 200 * kMs;
  }
  const model::Report report = judged(session);
  ASSERT_NE(straggler(report), nullptr);
  EXPECT_EQ(straggler(report)->evidence.at("rank"), 3);
}

TEST(Ranks, AJoinedCallHasTransferWaitAndBandwidth) {
  Job job;
  job.ranks = 4;
  job.steps = 10;
  job.noise = 0;
  job.straggler = 2;
  job.late_ns = 5 * kMs;
  const model::Report report = judged(simulate(job));
  ASSERT_EQ(report.collectives.size(), 1u);
  const model::Collective& one = report.collectives[0];
  EXPECT_EQ(one.operation, "AllReduce");
  EXPECT_EQ(one.communicator, "0xabc");
  EXPECT_EQ(one.path, std::vector<std::string>{"step"});
  EXPECT_EQ(one.ranks, 4);
  EXPECT_EQ(one.calls, 10);
  EXPECT_EQ(one.transfer_ns, 10.0 * 2 * kMs);
  EXPECT_EQ(one.wait_ns, 10.0 * 3 * 5 * kMs);
  EXPECT_DOUBLE_EQ(*one.algorithm_bytes_per_s, (1 << 20) / 2e-3);
  EXPECT_DOUBLE_EQ(*one.bus_bytes_per_s, (1 << 20) / 2e-3 * 2 * 3 / 4);
  EXPECT_EQ(one.by_rank[2].last, 10);
  EXPECT_EQ(one.by_rank[2].late_ns, 10.0 * 5 * kMs);
  EXPECT_EQ(one.by_rank[2].wait_ns, 0);
  EXPECT_EQ(one.by_rank[0].wait_ns, 10.0 * 5 * kMs);
  EXPECT_EQ(one.by_rank[2].holds_up_ns, 9.0 * 5 * kMs);  // the first call sets up connections
}

TEST(Ranks, TheFormulasOfNcclTests) {
  Bandwidth rate;
  const double bytes = 1e6, ns = 1e6;  // 1 MB in 1 ms: 1 GB/s
  ASSERT_TRUE(bandwidth_of(Operation::kAllReduce, bytes, 8, ns, rate));
  EXPECT_DOUBLE_EQ(rate.algorithm, 1e9);
  EXPECT_DOUBLE_EQ(rate.bus, 1.75e9);
  ASSERT_TRUE(bandwidth_of(Operation::kAllGather, bytes, 8, ns, rate));
  EXPECT_DOUBLE_EQ(rate.algorithm, 8e9);
  EXPECT_DOUBLE_EQ(rate.bus, 7e9);
  ASSERT_TRUE(bandwidth_of(Operation::kReduceScatter, bytes, 8, ns, rate));
  EXPECT_DOUBLE_EQ(rate.bus, 7e9);
  ASSERT_TRUE(bandwidth_of(Operation::kBroadcast, bytes, 8, ns, rate));
  EXPECT_DOUBLE_EQ(rate.bus, 1e9);
  EXPECT_FALSE(bandwidth_of(Operation::kBarrier, 0, 8, ns, rate));
  EXPECT_FALSE(bandwidth_of(Operation::kAllReduce, bytes, 1, ns, rate));
}

TEST(Ranks, RanksThatCallDifferentThingsAreNotJoined) {
  Job job;
  job.ranks = 2;
  job.steps = 6;
  model::Session session = simulate(job);
  std::size_t seen = 0;
  for (model::Range& range : session.ranges) {
    if (session.strings.view(range.name) == "ncclAllReduce" && range.thread == 1 && ++seen == 4)
      range.name = session.strings.intern("ncclBroadcast");
  }
  const model::Report report = judged(session);
  ASSERT_EQ(report.collectives.size(), 1u);
  EXPECT_EQ(report.collectives[0].calls, 3);
  EXPECT_TRUE(std::any_of(report.losses.begin(), report.losses.end(), [](const model::Loss& loss) {
    return loss.kind == "collectives_unjoined" && loss.count == 3;
  }));
}

TEST(Ranks, GroupedCallsAreOneOfAllTheirBytes) {
  testing::SessionBuilder builder;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto process = builder.process(10 + rank);
    builder.session.processes.back().rank = rank;
    const auto thread = builder.thread(process, 10 + rank);
    const auto stream = builder.stream(process, builder.device(process, rank), 7);
    for (int call = 0; call < 3; ++call) {
      const auto range =
          builder.range(thread, "ncclAllReduce", 100 + call * 10, 105 + call * 10, "NCCL");
      give(builder.session, range, "NCCL communicator ID", 5);
      give(builder.session, range, "Message size [bytes]", 1000);
    }
    builder.kernel(builder.launch(thread, 140, 145),
                   "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                   200 + rank * 50,
                   400,
                   stream);
    const auto alone = builder.range(thread, "ncclAllReduce", 500, 510, "NCCL");
    give(builder.session, alone, "NCCL communicator ID", 5);
    give(builder.session, alone, "Message size [bytes]", 64);
    builder.kernel(builder.launch(thread, 505, 508),
                   "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                   600,
                   620,
                   stream);
  }
  const model::Report report = judged(builder.session);
  ASSERT_EQ(report.collectives.size(), 2u);
  EXPECT_EQ(report.collectives[0].bytes, 3000);
  EXPECT_EQ(report.collectives[0].transfer_ns, 150);
  EXPECT_EQ(report.collectives[0].wait_ns, 50);
  EXPECT_EQ(report.collectives[1].bytes, 64);
  EXPECT_EQ(report.collectives[1].transfer_ns, 20);
}

TEST(Ranks, OwnTimeIsWithoutChildrenAndWithoutWaiting) {
  Job job;
  job.ranks = 2;
  job.steps = 4;
  job.noise = 0;
  job.straggler = 0;
  job.late_ns = 10 * kMs;
  const model::Report report = judged(simulate(job));
  for (const model::Region& region : report.regions) {
    if (region.process || region.path != std::vector<std::string>{"step"})
      continue;
    ASSERT_TRUE(region.ranks);
    EXPECT_EQ(region.ranks->own_by_rank, (std::vector<double>{4000, 4000}));
    EXPECT_EQ(region.ranks->by_rank[0], region.ranks->by_rank[1]);
    return;
  }
  FAIL();
}

}  // namespace ranks_test
}  // namespace rangescope::analyze
