// Each kind of verdict: one small recording where it must be made, and one beside it where it must
// not.
#include "analyze/verdict/verdict.hpp"

#include <gtest/gtest.h>

#include "analyze/counters/roofline.hpp"
#include "analyze/verdict/program_test.hpp"
#include "model/advice.hpp"

namespace rangescope::analyze {
namespace verdict_test {

model::Report measured(double memory, double compute, std::string_view kind = {}) {
  Program b;
  b.loop("step", 4, 10 * kMs, 1, 9 * kMs);
  model::Report report = b.report();
  report.regions[0].metrics["dram_throughput"] = {memory, "ratio", memory, memory, 1, "cupti", {}};
  report.regions[0].metrics["sm_throughput"] = {compute, "ratio", compute, compute, 1, "cupti", {}};
  add_bounds(report, nullptr);
  finish_rows(report);
  if (!kind.empty())
    report.regions[0].bound->kind = kind;
  judge(report);
  return report;
}

TEST(Bounds, ByTheResourceThatIsUsedMost) {
  const auto memory = measured(0.9, 0.2).verdict;
  EXPECT_NEAR(*of(memory, "memory_bound").saves_ns, 3.6 * kMs, 1);
  EXPECT_TRUE(has(measured(0.2, 0.9).verdict, "compute_bound"));
  EXPECT_TRUE(has(measured(0.8, 0.85).verdict, "balanced"));
  EXPECT_TRUE(has(measured(0.3, 0.2).verdict, "latency_bound"));
  EXPECT_FALSE(has(measured(0.3, 0.2).verdict, "memory_bound"));
  EXPECT_FALSE(has(measured(0.9, 0.2).verdict, "latency_bound"));
  EXPECT_TRUE(has(measured(0.2, 0.9, "compute: tensor bf16").verdict, "compute_bound"));
}

TEST(Bounds, MemoryIsTheLevelNearestToItsPeak) {
  Program b;
  b.loop("step", 4, 10 * kMs, 1, 9 * kMs);
  model::Report report = b.report();
  for (const auto& [name, value] : {std::pair("dram_throughput", 0.3),
                                    std::pair("l2_throughput", 0.4),
                                    std::pair("l1_throughput", 0.93),
                                    std::pair("sm_throughput", 0.2)})
    report.regions[0].metrics[name] = {value, "ratio", value, value, 1, "ncu", {}};
  add_bounds(report, nullptr);
  finish_rows(report);
  judge(report);
  const model::Verdict& one = of(report.verdict, "memory_bound");
  EXPECT_EQ(one.text, "memory-bound (L1/TEX): memory 93 %, compute 20 % of peak");
  EXPECT_TRUE(model::advice_for(one).starts_with("Coalesce"));
}

TEST(Advice, IsOfTheCauseThatTheTextNamesFirst) {
  model::Verdict hot;
  hot.kind = "hot_region";
  hot.text = "100 % self time: 79 % runnable (waiting for a CPU), 18 % waiting: I/O";
  EXPECT_TRUE(model::advice_for(hot).starts_with("Leave CPUs free")) << model::advice_for(hot);
  hot.text =
      "100 % self time: 60 % waiting: I/O, 20 % waiting: lock, 11 % runnable (waiting for a CPU)";
  EXPECT_TRUE(model::advice_for(hot).starts_with("Find what it waits for"))
      << model::advice_for(hot);
  hot.text = "100 % self time: 90 % Python";
  hot.evidence["cpu_python_share"] = 0.9;
  EXPECT_TRUE(model::advice_for(hot).starts_with("Move the hot loop")) << model::advice_for(hot);
}

TEST(Bounds, WithoutCountersAFullGpuIsSaidAndNothingGuessed) {
  const auto full = Program().loop("step", 4, 10 * kMs, 1, 9 * kMs).verdict();
  EXPECT_TRUE(has(full, "gpu_bound"));
  EXPECT_FALSE(has(full, "memory_bound") || has(full, "latency_bound"));
  EXPECT_FALSE(has(Program().loop("step", 4, 10 * kMs, 1, 7 * kMs).verdict(), "gpu_bound"));
  Program load;
  load.loop("load", 4, 10 * kMs);
  for (std::int64_t at = 0; at < 40 * kMs; at += 10 * kMs)
    load.copy(load.launch(load.t, at, at + kUs, model::LaunchKind::kCopy),
              at,
              at + 9 * kMs,
              4096,
              model::CopyKind::kHostToDevice,
              load.gpu);
  EXPECT_FALSE(has(load.verdict(), "gpu_bound")) << "copies are judged by themselves";
}

TEST(Bounds, OfARangeMeasuredWithItsGapsNoLatencyIsClaimed) {
  model::Report report;
  report.regions.emplace_back();
  report.regions[0].path = {"step"};
  report.regions[0].occurrences = 2;
  report.rows.push_back({model::kNone, 0, {0}, 1, {}});
  const auto ratio = [&](const char* name, double value) {
    report.regions[0].metrics[name] = {value, "ratio", value, value, 1, "ncu", {}};
  };
  report.regions[0].metrics["gpu_time_ns"] = {1e6, "ns", 1e6, 1e6, 1, "ncu", {}};
  ratio("dram_throughput", 0.01);
  ratio("sm_throughput", 0.02);
  add_bounds(report, nullptr);
  judge(report);
  EXPECT_TRUE(has(report.verdict, "hardly_used"));
  ratio("sm_throughput", 0.3);
  add_bounds(report, nullptr);
  judge(report);
  EXPECT_TRUE(has(report.verdict, "latency_bound"));
  report.regions[0].metrics.erase("sm_throughput");
  add_bounds(report, nullptr);
  judge(report);
  EXPECT_TRUE(has(report.verdict, "bound_unknown"));
}

TEST(Padding, WhereMoreIsExecutedThanNeeded) {
  const auto padded = [](double executed) {
    Program b;
    b.loop("step", 4, 10 * kMs, 1, 9 * kMs);
    model::Report report = b.report();
    report.regions[0].metrics["flop_fp32"] = {executed, "FLOP", executed, executed, 1, "cupti", {}};
    report.regions[0].utilization.emplace().useful_flop = 1e9;
    judge(report);
    return report.verdict;
  };
  EXPECT_NEAR(*of(padded(8e9), "padding").saves_ns, 36 * kMs * 7.0 / 8, 1);
  EXPECT_FALSE(has(padded(1.4e9), "padding"));
}

TEST(WarmUp, OfTheFirstOccurrence) {
  const auto found = Program().loop("step", 1, 100 * kMs).loop("step", 5, kMs).verdict();
  EXPECT_EQ(found.front().kind, "warm_up");
  EXPECT_NEAR(*found.front().saves_ns, 99 * kMs, 1);
  EXPECT_EQ(found.front().evidence.at("wall_ns.median"), kMs);
  EXPECT_FALSE(has(Program().loop("step", 6, kMs).verdict(), "warm_up"));
}

TEST(WarmUp, IsNoneWhereItComesAgainInEveryStep) {
  Program b;
  for (int step = 0; step < 5; ++step) {
    const std::string name = "ProfilerStep#" + std::to_string(step);
    b.range(b.t, name.c_str(), b.now, b.now + 18 * kMs);
    b.loop("copy", 1, 10 * kMs).loop("copy", 8, kMs);
  }
  EXPECT_FALSE(has(b.verdict(), "warm_up"));
  Program cold;  // here the first of all alone is slow
  for (int step = 0; step < 5; ++step) {
    const std::string name = "ProfilerStep#" + std::to_string(step);
    cold.range(cold.t, name.c_str(), cold.now, cold.now + (step == 0 ? 40 : 9) * kMs);
    cold.loop("copy", 1, step == 0 ? 32 * kMs : kMs).loop("copy", 8, kMs);
  }
  EXPECT_EQ(of(cold.verdict(), "warm_up").evidence.at("left_out"), 1);
}

TEST(Uneven, Occurrences) {
  Program b;
  for (int i = 0; i < 20; ++i)
    b.loop("step", 1, i % 5 == 4 ? 10 * kMs : kMs);
  EXPECT_NEAR(*of(b.verdict(), "uneven_occurrences").saves_ns, 36 * kMs, 1);
  EXPECT_FALSE(has(Program().loop("step", 20, kMs).verdict(), "uneven_occurrences"));
  for (model::Range& range : b.session.ranges)
    range.domain = 1;
  b.session.domains.push_back({b.session.strings.intern("python")});
  EXPECT_FALSE(has(b.verdict(), "uneven_occurrences"))
      << "calls of one function differ in their work";
}

TEST(Uneven, SaysThatWarmUpsAreNotCounted) {
  Program b;
  b.loop("step", 1, 100 * kMs);
  for (int i = 0; i < 20; ++i)
    b.loop("step", 1, i % 5 == 4 ? 10 * kMs : kMs);
  EXPECT_EQ(of(b.verdict(), "uneven_occurrences").text,
            "jitter: median 1.000 ms, p95 10.00 ms, max 10.00 ms of 20 instances in steady state");
}

TEST(Verdict, OccurrencesInOneAnotherAreNoWarmUpAndNotUneven) {  // recursion below kDeepest
  Program b;
  for (int i = 0; i < 1000; ++i)
    b.range(b.t, "f", i * kMs, (2000 - i) * kMs);
  b.session.end_ns = 2000 * kMs;
  for (const model::Verdict& one : b.verdict()) {
    EXPECT_NE(one.kind, "warm_up");
    EXPECT_NE(one.kind, "uneven_occurrences");
    EXPECT_LE(one.saves_ns.value_or(0), 2000 * kMs) << one.text;
  }
}

TEST(HotRegion, IsNothingThatAProfilerDid) {  // Kineto's "overhead" and pictures of GPU streams
  Program b;
  b.session.processes[0].operators = true;
  b.range(b.t, "Activity Buffer Request", 0, 90 * kMs, "overhead");
  b.range(b.t, "step", 90 * kMs, 100 * kMs);
  b.session.end_ns = 100 * kMs;
  for (const model::Verdict& one : b.verdict())
    EXPECT_EQ(one.path.find("overhead"), std::string::npos) << one.text;
}

TEST(Uneven, ProcessesAndThreads) {
  const auto side_by_side = [](bool processes, std::int64_t second) {
    Program b;
    b.range(b.t, "step", 0, 10 * kMs);
    b.range(b.thread(processes ? b.process(5) : b.p, 6), "step", 0, second);
    return b.verdict();
  };
  const auto processes = side_by_side(true, 20 * kMs);
  EXPECT_NEAR(*of(processes, "uneven_processes").saves_ns, 5 * kMs, 1);
  EXPECT_EQ(of(processes, "uneven_processes").process, 1);
  EXPECT_FALSE(has(side_by_side(true, 11 * kMs), "uneven_processes"));
  EXPECT_TRUE(has(side_by_side(false, 20 * kMs), "uneven_threads"));
  EXPECT_FALSE(has(side_by_side(false, 11 * kMs), "uneven_threads"));
}

TEST(Uneven, ThreadsOfAProcessThatWorkAtOnceAreNoLongerTime) {
  Program b;
  for (std::uint32_t i = 0; i < 6; ++i)
    b.range(b.thread(b.p, 10 + i), "job", 0, 200 * kMs);
  for (std::uint32_t i = 0; i < 2; ++i)
    b.range(b.thread(b.process(20 + i), 20 + i), "job", 0, 200 * kMs);
  EXPECT_FALSE(has(b.verdict(), "uneven_processes"));
  b.range(b.thread(b.process(30), 30), "job", 0, 600 * kMs);
  const auto found = b.verdict();
  EXPECT_EQ(of(found, "uneven_processes").text,
            "4 processes take from 200.0 ms to 600.0 ms: process 30 is 100.0 % above the mean");
  EXPECT_NEAR(*of(found, "uneven_processes").saves_ns, 300 * kMs, 1);
}

TEST(Uneven, NobodyWaitsForTheSlowestOfThoseThatFollowOneAnother) {
  for (const bool processes : {true, false}) {
    Program b;
    std::int64_t at = 0;
    for (std::uint32_t i = 0; i < 4; ++i, b.now = at) {
      const std::int64_t each = (i == 2 ? 400 : 100) * kMs;
      b.range(b.thread(processes ? b.process(10 + i) : b.p, 10 + i), "job", at, at + each);
      at += each;
    }
    const auto found = b.verdict();
    EXPECT_FALSE(has(found, "uneven_processes") || has(found, "uneven_threads"));
    EXPECT_EQ(of(found, "hot_region").text, "100.0 % self time (700.0 ms, 4 calls)");
  }
}

TEST(Straggler, OfThreadsThatWorkAtOnceOneWaits) {
  Program b;
  b.session.processes.clear(), b.session.threads.clear();
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto p = b.process(10 + rank);
    b.session.processes[p].rank = rank;
    for (std::uint32_t i = 0; i < 4; ++i)
      b.range(b.thread(p, 10 * rank + i), "step", 0, (rank == 1 ? 130 : 100) * kMs);
  }
  EXPECT_NEAR(*of(b.verdict(), "straggler").saves_ns, 30 * kMs, 1);
}

TEST(ClockLimited, WhereClocksWereHeldDown) {
  for (const double share : {0.4, 0.01}) {
    model::Report made = Program().loop("step", 20, 10 * kMs, 2, 4 * kMs).report();
    model::Metric metric;
    metric.value = share;
    for (model::Region& region : made.regions)
      region.metrics["clock_limited"] = metric;
    judge(made);
    EXPECT_EQ(has(made.verdict, "clock_limited"), share > 0.1);
    if (share > 0.1) {
      EXPECT_DOUBLE_EQ(of(made.verdict, "clock_limited").evidence.at("metrics.clock_limited"),
                       share);
    }
  }
}

// Three ranks of equal kernels; those of rank 1 take `longer`, at 1.2 GHz where the others run
// at 1.7.
TEST(SlowGpu, WithItsClockBesideTheOthers) {
  for (const double longer : {1.3, 1.02}) {
    testing::SessionBuilder b;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const std::uint32_t p = b.process(10 + rank), t = b.thread(p, 10 + rank);
      b.session.processes.back().rank = rank;
      const std::uint32_t device = b.device(p, 0, "GPU-" + std::to_string(rank)),
                          stream = b.stream(p, device, 7);
      const auto length = static_cast<std::int64_t>(2 * kMs * (rank == 1 ? longer : 1));
      for (int step = 0; step < 10; ++step) {
        const std::int64_t at = step * 3 * kMs;
        b.range(t, "step", at, at + length + 10);
        b.kernel(b.launch(t, at, at + kUs), "gemm", at + 10, at + 10 + length, stream, 64);
      }
      model::SampleStream samples{.device = device};
      model::SampledMetric clock{.name = "sm_clock"};
      for (int i = 0; i < 30; ++i) {
        samples.start_ns.push_back(i * kMs);
        samples.end_ns.push_back((i + 1) * kMs);
        clock.values.push_back(rank == 1 ? 1.2e9F : 1.7e9F);
      }
      samples.metrics.push_back(std::move(clock));
      b.session.samples.push_back(std::move(samples));
    }
    model::Report report = std::move(*analyze(b.session));
    finish_rows(report);
    judge(report);
    ASSERT_EQ(has(report.verdict, "slow_gpu"), longer > 1.1) << longer;
    EXPECT_NEAR(report.ranks[1].work.kernel_pace, longer, 1e-6);
    EXPECT_EQ(report.ranks[1].card, "GPU-1");
    if (longer < 1.1)
      continue;
    const model::Verdict& one = of(report.verdict, "slow_gpu");
    EXPECT_NEAR(one.evidence.at("sm_clock_hz"), 1.2e9, 1e3);
    EXPECT_NEAR(one.evidence.at("sm_clock_hz_of_others"), 1.7e9, 1e3);
    EXPECT_NE(one.text.find("the GPU of rank 1, GPU-1 takes 30.0 % longer"), std::string::npos)
        << one.text;
    EXPECT_NE(one.text.find("at 1200 MHz, the others' 1700 MHz"), std::string::npos) << one.text;
    EXPECT_NEAR(*one.saves_ns, 10 * 0.6 * kMs, 10);
  }
}

TEST(Outside, NamesTheCommandThatRanMeanwhile) {
  model::Report report;
  report.run.duration_ns = 2000 * kMs;
  model::Region& step = report.regions.emplace_back();
  step.path = {"step"};
  step.occurrences = 1;
  step.wall.inclusive_ns = step.wall.exclusive_ns = 500 * kMs;
  report.rows.emplace_back().members = {0};
  model::Outside outside;
  outside.wall_ns = 1500 * kMs;
  outside.before_ns = 500 * kMs;
  outside.after_ns = 1000 * kMs;
  report.outside = outside;
  const auto add = [](std::vector<model::ReportProcess>& list,
                      std::uint32_t pid,
                      const char* name,
                      double start_ms,
                      double end_ms) {
    model::ReportProcess& process = list.emplace_back();
    process.pid = pid;
    process.parent_pid = 1;
    process.name = name;
    process.start_ns = start_ms * kMs;
    process.end_ns = end_ms * kMs;
  };
  add(report.processes, 2, "/usr/bin/python3", 100, 1000);
  add(report.other_processes, 1, "/bin/sh", 0, 2000);  // waits for the others
  report.other_processes.back().parent_pid = 0;
  add(report.other_processes, 3, "/bin/cat", 1000, 1050);
  add(report.other_processes, 4, "/usr/bin/gzip", 1000, 1600);
  add(report.other_processes, 5, "/usr/bin/gzip", 1500, 1900);
  std::vector<model::Verdict> found;
  find_outside(Case(report), found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().text,
            "75 % of the run: 500.0 ms before the first range, 0 ns between, 1.000 s after the "
            "last; gzip runs for 900.0 ms of it (2 processes)");
}

TEST(Outside, WhatLiesOutsideEveryRange) {
  const auto start = Program().pause(50 * kMs).loop("step", 5, 10 * kMs, 1, 9 * kMs).verdict();
  EXPECT_EQ(of(start, "outside_ranges").severity, model::Weight::kNote) << "a start is what it is";
  EXPECT_FALSE(of(start, "outside_ranges").saves_ns) << "and nothing to save";
  const auto gaps =
      Program().loop("step", 1, 10 * kMs).pause(50 * kMs).loop("step", 1, 10 * kMs).verdict();
  EXPECT_EQ(of(gaps, "outside_ranges").severity, model::Weight::kWarning);
  EXPECT_NEAR(*of(gaps, "outside_ranges").saves_ns, 50 * kMs, 1);
  EXPECT_FALSE(has(Program().pause(kMs).loop("step", 5, 10 * kMs).verdict(), "outside_ranges"));
  // Ranges around launches alone: the GPU works between them, and nothing there could be saved.
  Program busy;
  for (int i = 0; i < 5; ++i)
    busy.loop("launch", 1, kMs, 1, 20 * kMs).pause(19 * kMs);
  EXPECT_FALSE(has(busy.verdict(), "outside_ranges"));
}

TEST(WithoutRanges, SharesAreOfTheRunAndCopiesCount) {
  Program b;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = i * 10 * kMs;
    b.kernel(b.launch(b.t, at, at + 100), "small", at, at + kMs, b.gpu);
    model::Copy copy;
    copy.start_ns = at + kMs;
    copy.end_ns = at + 9 * kMs;
    copy.bytes = 1 << 30;
    copy.launch = b.launch(b.t, at + kMs, at + kMs + 100, model::LaunchKind::kCopy);
    copy.stream = b.gpu;
    copy.kind = model::CopyKind::kHostToDevice;
    b.session.copies.push_back(copy);
  }
  b.session.end_ns = 100 * kMs;
  const auto found = b.verdict();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().kind, "copies") << found.front().text;
  EXPECT_NEAR(*found.front().saves_share, 0.8, 1e-3);
  EXPECT_NE(of(found, "dominant_kernel").text.find("10 % of the run"), std::string::npos);
  EXPECT_FALSE(of(found, "dominant_kernel").saves_ns);
}

TEST(Stalls, TheMostFrequentWaitOfTheKernelThatItCostsMost) {
  const auto sampled = [](std::uint32_t waits) {
    Program b;
    b.loop("step", 4, 10 * kMs, 2, 4500 * kUs);
    b.session.pc.places.push_back(
        {b.session.kernels[0].name, 0x40, b.session.strings.intern("/src/kernel.cu"), 112});
    b.session.pc.samples = {
        {b.session.kernels[0].launch, 0, b.session.strings.intern("long_scoreboard"), waits},
        {b.session.kernels[0].launch, 0, b.session.strings.intern("not_selected"), 1000 - waits}};
    return b.verdict();
  };
  const model::Verdict one = of(sampled(610), "stalls");
  EXPECT_EQ(one.path, "step");
  EXPECT_EQ(one.text, "61 % long scoreboard at kernel.cu:112, in even");
  EXPECT_NEAR(*one.saves_ns, 0.61 * 18 * kMs, 1);
  EXPECT_FALSE(has(sampled(5), "stalls")) << "too little of the run";
  EXPECT_FALSE(has(sampled(0), "stalls")) << "no wait";
}

TEST(WithoutRanges, AnIdleGpuIsSaid) {
  Program b;
  for (const std::int64_t at : {kMs, 98 * kMs})
    b.kernel(b.launch(b.t, at, at + 100), "small", at, at + kMs, b.gpu);
  b.session.end_ns = 100 * kMs;
  EXPECT_EQ(b.verdict().front().text, "the GPU is idle 98 % of the run: busy 2.000 ms of 100.0 ms");
  b.session.end_ns = 1000 * kMs;
  EXPECT_EQ(b.verdict().front().text,
            "the GPU is idle 98 % of the time from its first to its last work: busy 2.000 ms of "
            "98.00 ms");
  EXPECT_EQ(of(b.verdict(), "start_up").text,
            "start-up and exit are 90 % of the run: all GPU work is within 98.00 ms");
}

TEST(WithoutRanges, StartUpIsNoWaitForTheCpu) {
  const auto judged = [](std::int64_t first, std::int64_t last) {
    Program b;
    b.session.sources.push_back({});
    b.session.sources.back().maker = model::Maker::kRangescope;
    b.kernel(b.launch(b.t, first, first + 100), "first", first, first + 4 * kMs, b.gpu);
    b.kernel(b.launch(b.t, last, last + 100), "last", last, last + 4 * kMs, b.gpu);
    b.session.end_ns = 100 * kMs;
    return b.verdict();
  };
  const auto late = judged(80 * kMs, 85 * kMs);
  EXPECT_EQ(late.front().kind, "start_up");
  EXPECT_NEAR(late.front().evidence.at("start_share"), 0.91, 1e-3);
  EXPECT_FALSE(late.front().saves_ns);
  EXPECT_FALSE(has(late, "waits_for_cpu")) << "between its first and last work the GPU is busy";
  const auto throughout = judged(0, 96 * kMs);
  EXPECT_EQ(throughout.front().kind, "waits_for_cpu");
  EXPECT_NEAR(*throughout.front().saves_ns, 92 * kMs, 1);
  EXPECT_FALSE(has(throughout, "start_up"));
}

TEST(DominantKernel, OfAllKernelsTime) {
  const auto found = Program().loop("step", 4, 10 * kMs, 3, 3 * kMs).verdict();
  EXPECT_EQ(of(found, "dominant_kernel").path, "even");
  Program many;
  for (const char* name : {"a", "b", "c", "d"})
    many.kernel(many.launch(many.t, 1, 2), name, 1, kMs, many.gpu);
  EXPECT_FALSE(has(many.loop("step", 1, 10 * kMs).verdict(), "dominant_kernel"));
}

TEST(HotRegion, OfAProgramWithoutAGpu) {
  const auto found = Program().loop("parse", 1, kMs).loop("solve", 9, 10 * kMs).verdict();
  EXPECT_EQ(found.front().kind, "hot_region");
  EXPECT_EQ(found.front().path, "solve");
  EXPECT_FALSE(has(Program().loop("solve", 9, 10 * kMs, 1, kMs).verdict(), "hot_region"));
}

TEST(HotRegion, AThreadForEachRequestIsAsHotAsOneForAll) {
  const auto requests = [](std::int64_t threads_at_once) {
    Program b;
    std::int64_t end = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      const std::int64_t at = i / threads_at_once * 10 * kMs;
      b.range(
          b.thread(b.p, static_cast<std::uint32_t>(100 + i)), "request", at, end = at + 10 * kMs);
    }
    b.range(b.t, "shutdown", end, end + 150 * kMs);
    return b.verdict();
  };
  EXPECT_EQ(of(requests(1), "hot_region").path, "request");
  EXPECT_EQ(of(requests(1), "hot_region").text, "87 % self time (1.000 s, 100 calls)");
  EXPECT_EQ(of(requests(4), "hot_region").text, "62 % self time (250.0 ms, 100 calls)");
  EXPECT_EQ(of(requests(50), "hot_region").path, "shutdown");
}

TEST(HotRegion, WhereTheGpuHasNextToNothingToDo) {
  const auto compiling =
      Program().loop("compile", 1, 100 * kMs).loop("run", 1, kMs, 1, kMs / 2).verdict();
  EXPECT_EQ(compiling.front().kind, "hot_region");
  EXPECT_EQ(compiling.front().path, "compile");
  EXPECT_NE(compiling.front().text.find("no GPU work"), std::string::npos);
  EXPECT_FALSE(has(Program().loop("wait", 1, 100 * kMs).loop("run", 1, kMs, 1, 90 * kMs).verdict(),
                   "hot_region"))
      << "the GPU works on while the CPU does something else";
}

TEST(HotRegion, AThreadThatWaitsBesideThoseThatWorkCostsNothing) {
  Program b;
  b.loop("step", 10, 10 * kMs, 1, kMs);
  EXPECT_FALSE(has(b.verdict(), "hot_region"));
  const auto monitor = b.thread(b.p, 7);
  b.range(monitor, "wait", 0, 100 * kMs);
  EXPECT_FALSE(has(b.verdict(), "hot_region"));
  b.range(b.t, "compile", 100 * kMs, 900 * kMs);  // in the thread of the steps
  EXPECT_EQ(of(b.verdict(), "hot_region").path, "compile");
}

TEST(HotRegion, ARangeAroundOthersIsNoPlaceToLook) {
  Program b;
  b.range(b.t, "request", 0, 100 * kMs, "", model::RangeKind::kStartEnd);
  b.loop("parse", 1, 10 * kMs).loop("solve", 9, 10 * kMs);
  EXPECT_EQ(of(b.verdict(), "hot_region").path, "solve");
  Program alone;
  alone.range(alone.t, "request", 0, 100 * kMs, "", model::RangeKind::kStartEnd);
  alone.session.end_ns = 100 * kMs;
  EXPECT_EQ(of(alone.verdict(), "hot_region").path, "request [start/end]");
  alone.range(alone.t, "request", 0, 100 * kMs, "", model::RangeKind::kStartEnd);
  EXPECT_TRUE(of(alone.verdict(), "hot_region").text.starts_with("100.0 % self time (100.0 ms"))
      << "two at once";
}

TEST(Bounds, LatencyNamesTheStall) {
  EXPECT_EQ(of(measured(0.3, 0.2).verdict, "latency_bound").text,
            "latency-bound: memory 30 %, compute 20 % of peak");
  Program b;
  b.loop("step", 4, 10 * kMs, 1, 9 * kMs);
  model::Report report = b.report();
  for (const auto& [name, value] : {std::pair("dram_throughput", 0.3),
                                    std::pair("sm_throughput", 0.2),
                                    std::pair("stall_wait", 1.5),
                                    std::pair("stall_long_scoreboard", 4.5)})
    report.regions[0].metrics[name] = {value, "", value, value, 1, "cupti", {}};
  add_bounds(report, nullptr);
  finish_rows(report);
  judge(report);
  EXPECT_NE(of(report.verdict, "latency_bound").text.find("wait mostly for long scoreboard (4.5"),
            std::string::npos);
}

TEST(Profiler, WhatItAddedAndWhatIsTooShortForIt) {
  Program b;
  b.loop("step", 5, kMs).loop("step", 5, 50 * kMs);
  b.session.gpu_pauses.push_back({b.p, 5 * kMs, b.session.end_ns});
  EXPECT_NEAR(of(b.verdict(), "profiler_effect").evidence.at("profiler_ns"), 245 * kMs, 1);
  EXPECT_FALSE(has(Program().loop("step", 10, kMs).verdict(), "profiler_effect"));
  EXPECT_EQ(Program().loop("step", 1000, 40).verdict().front().kind, "too_short");
  EXPECT_FALSE(has(Program().loop("step", 1000, kUs).verdict(), "too_short"));
}

TEST(Profiler, WhatIsTooShortHasTheCountAndMedianOfTheTable) {
  Program b;
  b.loop("step", 1000, 80);
  b.session.processes[b.p].range_own_ns = b.session.processes[b.p].range_pair_ns = 74;
  model::Report report = b.report();
  judge(report);
  const model::Region& step = report.regions[report.rows.front().members.front()];
  EXPECT_EQ(step.wall.per_occurrence_ns.median, 6);
  EXPECT_EQ(step.occurrences, 1000);
  const model::Verdict& one = of(report.verdict, "too_short");
  EXPECT_EQ(one.text,
            "too short to measure: median 6 ns of 1,000 instances, about the profiler's own cost");
  EXPECT_EQ(one.evidence,
            (std::map<std::string, double>{
                {"recording_ns", 74000}, {"wall_ns", 6000}, {"wall_ns.median", 6}}));
}

TEST(Profiler, RangesOfALibraryAreTooShortForNobody) {
  Program b;
  b.loop("step", 1, kMs);
  for (int i = 0; i < 10'000; ++i)
    b.range(b.t, "MPI_Test", i * 100, i * 100 + 40, "MPI");
  EXPECT_FALSE(has(b.verdict(), "too_short"));
}

TEST(CudaCalls, OfARecordingOfNothingElse) {
  Program b;
  for (const std::int64_t from : {20 * kMs, 220 * kMs}) {
    const auto call = b.launch(b.t, from, from + 200 * kMs, model::LaunchKind::kSynchronize);
    b.session.synchronizations.push_back({from, from + 200 * kMs, call});
  }
  b.session.end_ns = 431 * kMs;
  EXPECT_EQ(of(b.verdict(), "cuda_calls").text,
            "2 CUDA calls wait 400.0 ms for the GPU (93 % of the run)");
  b.loop("step", 1, kMs, 1, kMs);
  EXPECT_FALSE(has(b.verdict(), "cuda_calls"));
}

TEST(Overview, OfARunWhereNothingStandsOut) {
  Program b;
  for (int i = 0; i < 12; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + "x";
    b.loop(name.c_str(), 1, 10 * kMs);
  }
  const auto found = b.verdict();
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found.front().kind, "overview");
  EXPECT_TRUE(model::Report{}.verdict.empty());
}

TEST(Verdict, AtMostFiveAndWorstFirst) {
  Program b;
  b.pause(50 * kMs)
      .loop("a", 1, 200 * kMs, 1, kMs)
      .loop("a", 5, 10 * kMs, 3, kMs)
      .loop("b", 12, 10 * kMs, 1, kMs);
  const auto found = b.verdict();
  EXPECT_LE(found.size(), kMostVerdicts);
  double last = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < found.size(); ++i)
    EXPECT_GE(found[i - 1].severity, found[i].severity);
  for (const model::Verdict& one : found) {
    EXPECT_TRUE(!one.saves_ns || one.severity == model::Weight::kWarning) << one.text;
    EXPECT_LE(one.saves_ns.value_or(last), last) << one.text;
    last = one.saves_ns.value_or(last);
  }
}

TEST(Modules, TheDeepestThatHasHalfOfItsPhase) {
  const auto found = layered(6 * kMs, 4 * kMs).verdict();
  const model::Verdict& one = of(found, "modules");
  EXPECT_EQ(one.path, "decode step > Model > model.layers.#.self_attn (Attention) x4");
  EXPECT_EQ(one.text, "60 % of the kernel time of decode step");
  EXPECT_NEAR(one.evidence.at("share_of_phase"), 0.6, 1e-3);
  EXPECT_FALSE(one.saves_ns.has_value());
  EXPECT_FALSE(has(Program().loop("step", 5, 10 * kMs, 2, 4 * kMs).verdict(), "modules"));
}

TEST(Modules, WhatNoneHasHalfOfIsSharedOut) {
  const auto found = layered(5 * kMs, 5 * kMs, 8 * kMs).verdict();
  EXPECT_EQ(of(found, "modules").path, "decode step > Model > model.layers.# (Layer) x4");
  EXPECT_EQ(of(found, "modules").text,
            "83 % of the kernel time of decode step: self_attn 50 %, mlp 50 %");
}

TEST(Modules, AreToldBesideMoreThanAReportShows) {
  Program b = layered(6 * kMs, 4 * kMs);
  for (int i = 0; i < 3; ++i)
    b.pause(200 * kMs).loop(i % 2 == 0 ? "load" : "store", 10, 10 * kMs, 6, kUs);
  model::Report report = b.report();
  judge(report);
  EXPECT_LE(report.verdict.size(), 5u);
  EXPECT_EQ(report.verdict.back().kind, "modules");
}

TEST(Modules, HaveTheirLimit) {
  Program b = layered(6 * kMs, 4 * kMs);
  model::Report report = b.report();
  for (model::Region& region : report.regions) {
    region.bound = model::Bound{"memory: dram", "", 0.71, 0.09};
    region.utilization = model::Utilization{.useful = 0.02, .bandwidth = 0.6};
  }
  finish_rows(report);
  judge(report);
  EXPECT_EQ(
      of(report.verdict, "modules").text,
      "60 % of the kernel time of decode step, memory-bound (memory 71 %, compute 9.0 % of peak)");
  for (model::Region& region : report.regions)
    region.bound.reset();
  finish_rows(report);
  judge(report);
  EXPECT_EQ(of(report.verdict, "modules").text,
            "60 % of the kernel time of decode step, MFU 2.0 %, MBU 60 %");
}

}  // namespace verdict_test
}  // namespace rangescope::analyze
