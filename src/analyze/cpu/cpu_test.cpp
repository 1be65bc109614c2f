#include "analyze/cpu/cpu.hpp"
#include "analyze/verdict/rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace {

/// One thread, sampled every 10 ns, in a program with functions of its own, of a library and of
/// Python.
struct Sampled : testing::SessionBuilder {
  std::uint32_t p = process(1), t = thread(p, 2);
  Sampled() {
    session.cpu.interval_ns = 10;
    session.cpu.threads.push_back({1, 2, 0, t});
  }
  std::uint32_t stack(std::uint32_t parent,
                      std::string_view name,
                      std::string_view module,
                      model::FrameKind kind = model::FrameKind::kNative) {
    model::CpuFrame frame;
    frame.kind = kind;
    frame.name = session.strings.intern(name);
    frame.module = session.strings.intern(module);
    std::uint32_t number = 0;
    const auto same = [&](const model::CpuFrame& f) {
      return f.name == frame.name && f.module == frame.module;
    };
    const auto at = std::find_if(session.cpu.frames.begin(), session.cpu.frames.end(), same);
    number = static_cast<std::uint32_t>(at - session.cpu.frames.begin());
    if (at == session.cpu.frames.end())
      session.cpu.frames.push_back(frame);
    session.cpu.stacks.push_back({parent, number});
    return static_cast<std::uint32_t>(session.cpu.stacks.size() - 1);
  }
  void samples(std::int64_t from, std::int64_t to, std::uint32_t stack) {
    for (std::int64_t at = from + 5; at < to; at += 10)
      session.cpu.samples.push_back({at, 0, stack});
  }
  void wait(std::int64_t from, std::int64_t to, model::WaitKind kind) {
    session.cpu.waits.push_back({from, to, 0, kNone, kind});
  }
  std::uint32_t main = stack(kNone, "main", "/bin/app");
};

const model::Region& named(const model::Report& report, const std::string& name) {
  return *std::find_if(report.regions.begin(),
                       report.regions.end(),
                       [&](const model::Region& region) { return region.path.back() == name; });
}

double part(const model::Region& region, const std::string& kind, const std::string& name) {
  for (const model::CpuPart& each : region.cpu->parts)
    if (each.kind == kind && each.name == name)
      return each.ns;
  return 0;
}

TEST(Cpu, PartsAddUpToTheWallTimeAndAreRightInEachRange) {
  Sampled program;
  program.range(program.t, "outer", 0, 1000);
  program.range(program.t, "inner", 200, 600);
  const auto python = program.stack(program.main, "forward", "", model::FrameKind::kPython);
  const auto gemm = program.stack(python, "gemm", "/lib/libblas.so.3");
  program.samples(0, 200, python);
  program.samples(200, 400, gemm);
  program.wait(400, 600, model::WaitKind::kLock);
  program.samples(600, 1000, program.main);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region &outer = named(*report, "outer"), &inner = named(*report, "inner");
  ASSERT_TRUE(outer.cpu && inner.cpu);
  EXPECT_EQ(outer.cpu->samples, 80);
  EXPECT_NEAR(outer.cpu->python.ns, 200, 1e-9);
  EXPECT_NEAR(outer.cpu->native.ns, 600, 1e-9);
  EXPECT_NEAR(outer.cpu->waiting.ns, 200, 1e-9);
  EXPECT_EQ(outer.cpu->cuda.ns, 0);
  EXPECT_NEAR(part(outer, "native", "libblas.so.3"), 200, 1e-9);
  EXPECT_NEAR(part(outer, "native", "app"), 400, 1e-9);
  EXPECT_NEAR(part(inner, "native", "libblas.so.3"), 200, 1e-9);
  EXPECT_NEAR(part(inner, "waiting", "lock"), 200, 1e-9);
  EXPECT_TRUE(std::isnan(outer.cpu->python.gpu_idle_ns));  // no GPU was recorded
  EXPECT_EQ(outer.cpu->callers.front().name, "main");
  EXPECT_NEAR(outer.cpu->callers.front().total_ns, 800, 1e-9);
  EXPECT_NEAR(outer.cpu->callers.front().self_ns, 400, 1e-9);
  // What flame graphs draw counts each sample once.
  std::int64_t drawn = 0;
  for (const model::Region& region : report->regions)
    if (region.cpu)
      for (const auto& count : region.cpu->stacks)
        drawn += count.samples;
  EXPECT_EQ(drawn, 80);
}

TEST(Cpu, WhatNoRangeHoldsHasASplitAndFunctionsToo) {
  Sampled program;
  program.range(program.t, "step", 200, 400);
  const auto setup = program.stack(program.main, "setup", "/lib/libsetup.so");
  program.samples(0, 200, setup);
  program.samples(200, 400, program.main);
  program.wait(400, 700, model::WaitKind::kIo);
  const auto stream = program.stream(program.p, program.device(program.p, 0), 7);
  program.kernel(program.launch(program.t, 700, 750), "late", 760, 800, stream);
  program.session.cpu.threads.push_back({1, 3, 0, kNone});  // neither ranges nor calls
  for (const std::int64_t at : {100, 780})
    program.session.cpu.samples.push_back({at, 1, setup});
  for (const bool aggregate : {true, false}) {
    Options options;
    options.aggregate = aggregate;
    const auto report = analyze(program.session, options);
    ASSERT_TRUE(report && report->cpu_outside);
    const model::CpuWork& outside = *report->cpu_outside;
    EXPECT_EQ(outside.samples, 22);
    EXPECT_NEAR(outside.native.ns, 220, 1e-9);
    EXPECT_NEAR(outside.native.gpu_idle_ns, 210, 1e-9);
    EXPECT_NEAR(outside.waiting.ns, 300, 1e-9);
    EXPECT_NEAR(outside.cuda.ns, 50, 1e-9);
    ASSERT_EQ(outside.functions.size(), 1u);  // main called it, and ran itself in the range alone
    EXPECT_EQ(outside.functions[0].name, "setup");
    EXPECT_NEAR(outside.functions[0].self_ns,
                270,
                1e-9);  // also the call, in which no sample was taken
    ASSERT_EQ(outside.stacks.size(), 1u);
    EXPECT_EQ(outside.stacks[0].samples, 22);
  }
}

TEST(Cpu, CallsAreTheirOwnPartAndHoldTheirWaits) {
  Sampled program;
  program.range(program.t, "step", 0, 1000);
  const auto stream = program.stream(program.p, program.device(program.p, 0), 7);
  program.kernel(program.launch(program.t, 100, 150), "gemm", 300, 700, stream);
  program.launch(program.t, 400, 700, model::LaunchKind::kSynchronize);
  program.samples(0, 400, program.main);
  program.wait(450, 700, model::WaitKind::kOther);
  program.samples(700, 1000, program.main);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& step = named(*report, "step");
  ASSERT_TRUE(step.cpu);
  EXPECT_NEAR(part(step, "cuda", "launch"), 50, 1e-9);
  EXPECT_NEAR(part(step, "cuda", "synchronize"), 300, 1e-9);
  EXPECT_NEAR(step.cpu->waiting.ns, 0, 1e-9);
  EXPECT_NEAR(step.cpu->native.ns, 650, 1e-9);
  // The GPU was busy from 300 to 700: in all of the synchronization, and in 100 of 650 of the
  // program's own.
  EXPECT_NEAR(step.cpu->cuda.gpu_idle_ns, 50, 1e-9);
  EXPECT_NEAR(step.cpu->native.gpu_idle_ns, 550, 15);
}

TEST(Cpu, WithoutSamplesOfTheKernelTimeInItIsWhatIsMissing) {
  Sampled program;
  program.session.cpu.kernel = false;
  program.range(program.t, "step", 0, 100'000);
  program.samples(0, 60'000, program.main);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_NEAR(part(named(*report, "step"), "native", "[kernel]"), 40'000, 1e-6);
  EXPECT_NEAR(part(named(*report, "step"), "native", "app"), 60'000, 1e-6);
}

/// Records of a counter, every 10 ns.
std::uint32_t add_counter(Sampled& program, std::string_view name, double period, double weight) {
  program.session.cpu.counters.push_back({program.session.strings.intern(name), period, weight, 1});
  return static_cast<std::uint32_t>(program.session.cpu.counters.size() - 1);
}

TEST(CpuCounters, BelongToTheRangeOfTheirThreadAndMakeMetrics) {
  Sampled program;
  program.range(program.t, "outer", 0, 40'000);
  program.range(program.t, "inner", 10'000, 20'000);
  program.range(program.t, "inner", 30'000, 40'000);
  program.samples(0, 20'000, program.main);
  const auto cycles = add_counter(program, "cycles", 1000, 1100),
             instructions = add_counter(program, "instructions", 1000, 1000),
             faults = add_counter(program, "page-faults", 1, 1);
  for (std::int64_t at = 0; at < 20'000; at += 20)
    program.session.cpu.counts.push_back({at, 0, cycles});
  for (std::int64_t at = 0; at < 20'000; at += 10)
    program.session.cpu.counts.push_back({at, 0, instructions});
  program.session.cpu.counts.push_back({15'000, 0, faults});
  Reference reference;
  model::MetricGroup group;
  group.counters = {
      {"c", {"cycles"}, {}}, {"i", {"instructions"}, {}}, {"m", {"cache-misses"}, {}}};
  group.metrics.push_back({"cpu_ipc", "IPC", "1/cycle", *base::Formula::parse("i / c"), "", true});
  group.metrics.push_back(
      {"cpu_llc_mpki", "MPKI", "count", *base::Formula::parse("1000 * m / i"), "", true});
  reference.cpu.push_back(std::move(group));
  const auto report = answer(program.session, {}, reference);
  ASSERT_TRUE(report);
  const auto &outer = named(*report, "outer"), &inner = named(*report, "inner");
  const model::Metric& ipc = inner.metrics.at("cpu_ipc");
  EXPECT_NEAR(ipc.value, 1000.0 * 1000 / (500 * 1100), 1e-9);
  EXPECT_TRUE(ipc.min < ipc.value && ipc.value < ipc.max);
  EXPECT_NEAR(ipc.max / ipc.value - 1, 1.96 * std::sqrt(1 / 1000.0 + 1 / 500.0), 0.01);
  EXPECT_EQ(ipc.source, "CPU events, sampled: i / c");
  EXPECT_EQ(ipc.rounds, 500);
  EXPECT_FALSE(inner.metrics.contains("cpu_llc_mpki"));  // not counted: absent, and never 0
  ASSERT_EQ(report->metric_columns.size(), 1u);
  EXPECT_EQ(report->metric_columns[0].title, "IPC");
  // Of two occurrences: half of it each. What is recorded each time is exact, also where it is 0.
  EXPECT_NEAR(inner.metrics.at("cpu_cycles").value, 500 * 1100 / 2.0, 1e-6);
  EXPECT_EQ(outer.metrics.at("cpu_page_faults").value, 1);
  EXPECT_EQ(outer.metrics.at("cpu_page_faults").source, "CPU events");
  EXPECT_EQ(inner.metrics.at("cpu_page_faults").value, 0.5);
}

TEST(CpuCounters, AFewRecordsAreNoNumber) {
  Sampled program;
  program.range(program.t, "short", 0, 100);
  program.range(program.t, "none", 200, 300);
  program.samples(0, 300, program.main);
  const auto cycles = add_counter(program, "cycles", 1000, 1000);
  for (std::int64_t at = 0; at < 40; at += 10)
    program.session.cpu.counts.push_back({at, 0, cycles});
  const auto report = answer(program.session, {}, Reference());
  ASSERT_TRUE(report);
  const model::Metric& few = named(*report, "short").metrics.at("cpu_cycles");
  EXPECT_FALSE(few.absent.empty());
  EXPECT_EQ(few.rounds, 4);
  EXPECT_FALSE(named(*report, "none").metrics.contains("cpu_cycles"));
}

TEST(CpuCounters, ALostRecordCostsLittleOfTheOthers) {
  Sampled program;
  program.range(program.t, "sleeps", 0, 1000);
  program.range(program.t, "runs", 2000, 3000);
  program.samples(0, 3000, program.main);
  const auto switches =
      add_counter(program, "context-switches", 1, 101 / 100.0);  // the kernel counted 101
  for (std::int64_t at = 0; at < 1000; at += 10)
    program.session.cpu.counts.push_back({at, 0, switches});
  const auto report = answer(program.session, {}, Reference());
  ASSERT_TRUE(report);
  const model::Metric& many = named(*report, "sleeps").metrics.at("cpu_context_switches");
  EXPECT_EQ(many.absent, "");
  EXPECT_NEAR(many.value, 101, 1e-9);
  EXPECT_NEAR(many.max - many.value, 1.96 * std::sqrt(101 * 0.01), 1e-9);
  EXPECT_EQ(named(*report, "runs").metrics.at("cpu_context_switches").value, 0);
}

TEST(Cpu, KindsOfCudaFunctions) {
  EXPECT_EQ(cuda_kind("cudaLaunchKernel"), "launch");
  EXPECT_EQ(cuda_kind("cuMemcpyHtoDAsync_v2"), "copy");
  EXPECT_EQ(cuda_kind("cudaMalloc"), "allocate");
  EXPECT_EQ(cuda_kind("cudaStreamSynchronize"), "synchronize");
  EXPECT_EQ(cuda_kind("cuModuleLoadDataEx"), "load");
  EXPECT_EQ(cuda_kind("cudaGetDevice"), "other");
}

TEST(Cpu, CausesAreNamedInWords) {
  Sampled program;
  program.range(program.t, "decode", 0, 1000);
  program.samples(0, 700, program.stack(program.main, "forward", "", model::FrameKind::kPython));
  program.session.cpu.frames.back().file =
      program.session.strings.intern("/site-packages/llama.py");
  program.wait(700, 1000, model::WaitKind::kIo);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_EQ(cpu_causes(named(*report, "decode"), report->run),
            "70 % Python, 30 % waiting: I/O; hottest function llama.py:forward, 70 %");
}

TEST(Cpu, TheHottestFunctionOfALibraryIsNamedWithItsCaller) {
  Sampled program;
  program.range(program.t, "decode", 0, 1000);
  const auto python = [&](std::uint32_t caller, const char* name) {
    const std::uint32_t stack = program.stack(caller, name, "", model::FrameKind::kPython);
    program.session.cpu.frames.back().file = program.session.strings.intern("/app/step.py");
    return stack;
  };
  const std::uint32_t run = python(program.main, "run"), step = python(run, "step");
  program.samples(0, 880, program.stack(step, "sha256", "/lib/libcrypto.so.3"));
  program.samples(880, 940, step);
  program.samples(940, 1000, run);
  auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_EQ(cpu_causes(named(*report, "decode"), report->run),
            "88 % libcrypto.so.3, 12 % Python; hottest function sha256, 88 %, "
            "called from step (step.py)");
  // Called from two functions alike, it is named without a caller: what covers both says nothing.
  program.samples(1000, 2000, program.stack(python(run, "other"), "sha256", "/lib/libcrypto.so.3"));
  program.range(program.t, "both", 1000, 2000);
  program.samples(2000, 3000, program.stack(step, "sha256", "/lib/libcrypto.so.3"));
  program.range(program.t, "both", 2000, 3000);
  report = analyze(program.session);
  ASSERT_TRUE(report);
  const std::string causes = cpu_causes(named(*report, "both"), report->run);
  EXPECT_EQ(causes, "100.0 % libcrypto.so.3; hottest function sha256, 100.0 %");
}

TEST(Cpu, WhoHasTheCpusIsNamedWhereNoneIsLeft) {
  Sampled program;
  program.range(program.t, "decode", 0, 1000);
  program.samples(0, 100, program.main);
  program.wait(100, 700, model::WaitKind::kPreempted);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const auto causes_with = [&](double own_cpus, std::optional<double> others) {
    model::RunInfo run;
    run.duration_ns = 1000;
    model::ProcessUsage& usage = run.usage.emplace();
    usage.user_ns = own_cpus * run.duration_ns;
    if (others)
      usage.machine = {2, *others};
    return cpu_causes(named(*report, "decode"), run);
  };
  EXPECT_EQ(causes_with(0.4, 1.5),
            "60 % runnable (waiting for a CPU: other programs used 1.5 of 2)");
  EXPECT_EQ(causes_with(1.9, 0.1),
            "60 % runnable (waiting for a CPU: its own threads used 1.9 of 2)");
  EXPECT_EQ(causes_with(0.4, 0.1), "60 % runnable (waiting for a CPU)");  // a limit of its own
  EXPECT_EQ(causes_with(0.4, std::nullopt), "60 % runnable (waiting for a CPU)");
}

TEST(Cpu, WhatARegionDoesItselfIsWithoutThoseInside) {
  Sampled program;
  program.range(program.t, "outer", 0, 1000);
  program.range(program.t, "inner", 600, 1000);
  program.samples(0, 600, program.stack(program.main, "prepare", "/bin/app"));
  program.samples(600, 700, program.stack(program.main, "load", "/bin/app"));
  program.wait(700, 1000, model::WaitKind::kSleep);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_EQ(cpu_causes(own_cpu_work(*report, named(*report, "outer")), 0, report->run),
            "100.0 % app; hottest function prepare, 100.0 %");
}

TEST(Cpu, RecordedWaitsAreNamedWithoutSamples) {
  Sampled program;
  program.range(program.t, "join", 0, 1000);
  program.samples(0, 100, program.main);
  program.wait(100, 700, model::WaitKind::kLock);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_EQ(cpu_causes(named(*report, "join"), report->run),
            "60 % waiting: lock");  // ten samples name nothing
}

TEST(Cpu, OfAStartEndRangeAllThreadsAddUp) {
  Sampled program;
  const auto other = program.thread(program.p, 3);
  program.session.cpu.threads.push_back({1, 3, 0, other});
  program.range(program.t, "span", 0, 10'000, "", model::RangeKind::kStartEnd);
  program.range(other, "part", 0, 10'000);
  program.wait(0, 10'000, model::WaitKind::kLock);
  program.session.cpu.waits.push_back({4000, 10'000, 1, kNone, model::WaitKind::kSleep});
  for (std::int64_t at = 5; at < 4000; at += 10)
    program.session.cpu.samples.push_back({at, 1, program.main});
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region &span = named(*report, "span"), &in = named(*report, "part");
  ASSERT_TRUE(span.cpu && in.cpu);
  EXPECT_NEAR(in.cpu->whole_ns(), 10'000, 1e-6);
  EXPECT_NEAR(span.cpu->waiting.ns, 16'000, 1e-6);
  EXPECT_NEAR(span.cpu->native.ns, 4000, 1e-6);
}

TEST(Cpu, APoolWorksForTheRangeOfWhoStartedIt) {
  Sampled program;
  program.session.cpu.threads.push_back({1, 3, 0, kNone, 0});
  program.range(program.t, "fit", 0, 1000);
  program.samples(0, 1000, program.main);
  const auto begin = program.stack(kNone, "gomp_thread_start", "/lib/libgomp.so.1");
  const auto works = program.stack(begin, "fit._omp_fn.0", "/bin/app");
  const auto spins = program.stack(begin, "gomp_team_barrier_wait_end", "/lib/libgomp.so.1");
  for (std::int64_t at = 5; at < 600; at += 10)
    program.session.cpu.samples.push_back({at, 1, works});
  for (std::int64_t at = 605; at < 2000; at += 10)
    program.session.cpu.samples.push_back({at, 1, at < 1500 ? spins : works});
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& fit = named(*report, "fit");
  EXPECT_EQ(fit.cpu->samples, 100);
  EXPECT_EQ(fit.cpu->pool_samples, 60);
  EXPECT_EQ(fit.cpu->pool_ns, 600);
  EXPECT_NEAR(fit.cpu->whole_ns(), 1000, 1e-9);
  EXPECT_EQ(fit.cpu->functions[1].name, "fit._omp_fn.0");
  EXPECT_NEAR(fit.cpu->functions[1].self_ns, 600, 1e-9);
  ASSERT_TRUE(report->cpu_outside);
  EXPECT_EQ(report->cpu_outside->samples, 140);  // what it spins, and works behind the range
}

TEST(Cpu, APoolWorksForTheThreadThatUsesIt) {
  Sampled program;
  const auto user = program.thread(program.p, 3);
  program.session.cpu.threads.push_back({1, 3, 0, user});
  program.session.cpu.threads.push_back({1, 4, 0, kNone, 0});  // the first thread started it
  program.range(program.t, "reads", 0, 1000);
  program.range(user, "fits", 0, 1000);
  const auto own = program.stack(program.stack(program.main, "GOMP_parallel", "/lib/libgomp.so.1"),
                                 "fit._omp_fn.0",
                                 "/bin/app");
  const auto begin = program.stack(kNone, "gomp_thread_start", "/lib/libgomp.so.1");
  const auto works = program.stack(begin, "fit._omp_fn.0", "/bin/app");
  program.samples(0, 1000, program.main);
  for (std::int64_t at = 5; at < 600; at += 10)
    program.session.cpu.samples.push_back({at, 1, own});
  for (std::int64_t at = 605; at < 1000; at += 10)
    program.session.cpu.samples.push_back({at, 1, program.main});
  for (std::int64_t at = 5; at < 800; at += 10)
    program.session.cpu.samples.push_back({at, 2, works});
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_NEAR(named(*report, "fits").cpu->pool_samples, 60, 1);
  EXPECT_NEAR(named(*report, "reads").cpu->pool_samples, 20, 1);  // nobody else was in the library
}

TEST(Cpu, TheLastWorkerOfAPoolIsNamed) {
  Sampled program;
  constexpr std::int64_t kMs = 1'000'000;
  program.session.cpu.interval_ns = kMs;
  program.session.cpu.threads.push_back({1, 3, program.session.strings.intern("quick"), kNone, 0});
  program.session.cpu.threads.push_back({1, 4, program.session.strings.intern("slow"), kNone, 0});
  program.range(program.t, "fit", 0, 100 * kMs);
  const auto inside = program.stack(program.main, "GOMP_parallel", "/lib/libgomp.so.1");
  const auto spins = program.stack(inside, "gomp_team_barrier_wait_end", "/lib/libgomp.so.1");
  const auto works = program.stack(inside, "fit._omp_fn.0", "/bin/app");
  const auto begin = program.stack(kNone, "gomp_thread_start", "/lib/libgomp.so.1");
  const auto worker = program.stack(begin, "fit._omp_fn.0", "/bin/app");
  for (int at = 0; at < 30; ++at)
    program.session.cpu.samples.push_back({at * kMs, 0, at < 20 ? works : spins});
  program.session.cpu.waits.push_back({30 * kMs, 90 * kMs, 0, spins, model::WaitKind::kLock});
  for (int at = 0; at < 40; ++at)
    program.session.cpu.samples.push_back({at * kMs, 1, worker});
  for (int at = 0; at < 90; ++at)
    program.session.cpu.samples.push_back({at * kMs + 1, 2, worker});
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& fit = named(*report, "fit");
  ASSERT_EQ(fit.cpu->holders.size(), 1u);
  const model::CpuHolder& holder = fit.cpu->holders[0];
  EXPECT_EQ(holder.kind + ": " + holder.thread + " running " + holder.doing,
            "pool: slow (4) running fit._omp_fn.0");
  EXPECT_NEAR(holder.ns, 70e6, 1e6);
}

TEST(Cpu, WhoHasALockIsNamedWithItsRangeAndFunction) {
  Sampled program;
  const auto other = program.thread(program.p, 3);
  program.session.cpu.threads.push_back({1, 3, program.session.strings.intern("loader"), other});
  program.range(program.t, "decode", 0, 1000);
  program.range(other, "load", 0, 2000);
  program.samples(0, 400, program.main);
  model::CpuWait wait{400, 1000, 0, kNone, model::WaitKind::kGil};
  wait.holder = 1;
  program.session.cpu.waits.push_back(wait);
  const auto parse = program.stack(
      program.stack(kNone, "parse", "", model::FrameKind::kPython), "strtod", "/lib/libc.so.6");
  for (std::int64_t at = 5; at < 2000; at += 10)
    program.session.cpu.samples.push_back({at, 1, parse});
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& decode = named(*report, "decode");
  EXPECT_NEAR(part(decode, "waiting", "GIL"), 600, 1e-9);
  ASSERT_EQ(decode.cpu->holders.size(), 1u);
  const model::CpuHolder& holder = decode.cpu->holders[0];
  EXPECT_EQ(holder.kind + ": " + holder.thread + " in " + holder.range + " running " + holder.doing,
            "GIL: loader (3) in load running parse");
  EXPECT_NEAR(holder.ns, 600, 1e-9);
}

TEST(Cpu, SamplesOfPythonThatWereNotReadAreStoodForByTheOthers) {
  Sampled program;
  program.range(program.t, "step", 0, 1000);
  const auto loop = program.stack(program.main, "loop", "", model::FrameKind::kPython);
  const auto lost = program.stack(program.main, model::kNotRead, "", model::FrameKind::kPython);
  program.samples(0, 600, loop);
  program.samples(600, 1000, lost);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& step = named(*report, "step");
  ASSERT_EQ(step.cpu->functions.size(), 1u);
  EXPECT_EQ(step.cpu->functions[0].name, "loop");
  EXPECT_NEAR(step.cpu->functions[0].self_ns, 1000, 1e-9);
  EXPECT_NEAR(step.cpu->functions[0].total_ns, 1000, 1e-9);
}

TEST(Cpu, AWorkerRunsBesideAFirstThreadThatWaits) {
  Sampled program;
  program.session.processes[program.p].parent_pid = 0;
  program.session.end_ns = 1000;
  program.session.cpu.threads.push_back({1, 1, 0, kNone});
  program.samples(0, 1000, program.main);
  program.session.cpu.waits.push_back({0, 1000, 1, kNone, model::WaitKind::kSleep});
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& whole = named(*report, "program");
  EXPECT_NEAR(part(whole, "waiting", "sleep"), 1000, 1e-9);
  EXPECT_NEAR(whole.cpu->native.ns, 1000, 1e-9);
}

TEST(Cpu, ThreadsThatWaitForTheGilAreOfTheProgramWithoutRanges) {
  Sampled program;
  program.session.processes[program.p].parent_pid = 0;
  program.session.end_ns = 1000;
  for (const std::uint32_t tid : {1u, 5u, 6u})
    program.session.cpu.threads.push_back({1, tid, 0, kNone});
  for (int i = 0; i < 50; ++i)
    program.session.cpu.samples.push_back({i * 20, i % 2 == 0 ? 2u : 3u, program.main});
  program.session.cpu.waits = {{0, 1000, 1, kNone, model::WaitKind::kLock},  // join()
                               {0, 1000, 2, kNone, model::WaitKind::kGil},
                               {0, 1000, 3, kNone, model::WaitKind::kGil},
                               {0, 1000, 3, kNone, model::WaitKind::kSleep}};
  program.session.cpu.waits[1].holder = 3;
  program.session.cpu.waits[2].holder = 2;
  auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& whole = named(*report, "program");
  EXPECT_NEAR(part(whole, "waiting", "GIL"), 2000, 1e-9);
  EXPECT_NEAR(part(whole, "waiting", "lock"), 1000, 1e-9);
  EXPECT_EQ(part(whole, "waiting", "sleep"), 0);  // it may have nothing to do
  ASSERT_EQ(whole.cpu->holders.size(), 2u);
  EXPECT_EQ(whole.cpu->holders[0].ns, 1000);
  // What a child does meanwhile is of the program, as far as it was recorded.
  program.session.cpu.waits = {{0, 1000, 1, kNone, model::WaitKind::kChild}};
  report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_NEAR(part(named(*report, "program"), "waiting", "child"), 1000, 1e-9);
  model::Process child = program.session.processes[program.p];
  child.pid = 2;
  child.parent_pid = 1;
  child.end_ns = 1000;
  program.session.processes.push_back(child);
  report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_EQ(part(named(*report, "program"), "waiting", "child"), 0);
}

// `sh -c 'sleep | work'`: while the shell waits, one child sleeps from 100 to 700, the other reads
// until it works.
TEST(Cpu, WhatChildrenWaitForIsWhatTheirParentWaitsFor) {
  Sampled program;
  program.session.processes[program.p].parent_pid = 0;
  program.session.end_ns = 1000;
  for (const std::uint32_t pid : {2u, 3u}) {
    model::Process child = program.session.processes[program.p];
    child.pid = pid;
    child.parent_pid = 1;
    child.start_ns = 100;
    child.end_ns = pid == 2 ? 700 : 900;
    program.session.processes.push_back(child);
  }
  for (const std::uint32_t pid : {1u, 2u, 3u})
    program.session.cpu.threads.push_back({pid, pid, 0, kNone});
  program.session.cpu.waits = {{50, 950, 1, kNone, model::WaitKind::kChild},
                               {100, 700, 2, kNone, model::WaitKind::kSleep},
                               {100, 800, 3, kNone, model::WaitKind::kIo}};
  for (int at = 805; at < 900; at += 10)
    program.session.cpu.samples.push_back({at, 3, program.main});
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& whole = named(*report, "program");
  EXPECT_NEAR(part(whole, "waiting", "sleep"), 600, 1e-9);
  EXPECT_NEAR(part(whole, "waiting", "I/O"), 100, 1e-9);
  EXPECT_NEAR(part(whole, "waiting", "child"),
              100,
              1e-9);  // before they began and after they ended
  EXPECT_NEAR(whole.cpu->native.ns, 100, 1e-9);
}

// Where /proc is read, a wait can seem to begin before the range that it is in.
TEST(Cpu, WaitsAreDividedWhereRangesBegin) {
  Sampled program;
  program.session.cpu.unwinding = "none";
  program.range(program.t, "sleeps", 100, 400);
  program.wait(90, 400, model::WaitKind::kSleep);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_NEAR(part(named(*report, "sleeps"), "waiting", "sleep"), 300, 1e-9);
  EXPECT_EQ(named(*report, "sleeps").cpu->native.ns, 0);
}

TEST(Cpu, ScaledWaitsComeToWhatSamplesLeave) {
  Sampled program;
  program.range(program.t, "pings", 0, 10'000);
  program.samples(0, 6000, program.main);
  model::CpuWait wait{7000, 7500, 0, kNone, model::WaitKind::kIo};
  wait.weight = 10;  // 5,000 of the 4,000 that are left
  program.session.cpu.waits.push_back(wait);
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  const model::Region& pings = named(*report, "pings");
  EXPECT_NEAR(pings.cpu->whole_ns(), 10'000, 1e-6);
  EXPECT_NEAR(pings.cpu->waiting.ns, 4000, 1e-6);
  EXPECT_NEAR(pings.cpu->native.ns, 6000, 1e-6);
}

TEST(Cpu, ARangeThatNeverEndedHasWhatWasRecorded) {
  Sampled program;
  program.range(program.t, "all", 0, model::kOpen);
  program.range(program.t, "step", 0, 1000);
  program.range(program.t, "step", 1000, model::kOpen);
  program.samples(0, 2000, program.main);
  program.wait(2000, 9000, model::WaitKind::kSleep);
  program.session.end_ns = 9000;
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  for (const char* name : {"all", "step"}) {
    const model::Region& region = named(*report, name);
    ASSERT_TRUE(region.cpu) << name;
    EXPECT_EQ(region.cpu->samples, 200);
    EXPECT_NEAR(region.cpu->native.ns, 2000, 1e-6);
    EXPECT_NEAR(region.cpu->waiting.ns, 7000, 1e-6);
    EXPECT_EQ(cpu_causes(region, report->run),
              "78 % waiting: sleep, 22 % app; hottest function main, 22 %");
  }
}

TEST(Cpu, LongNamesStandInCausesWithoutArguments) {
  Sampled program;
  program.range(program.t, "decode", 0, 1000);
  const std::string mapper = "Eigen::internal::const_blas_data_mapper<float, long, 1>";
  program.samples(0,
                  1000,
                  program.stack(program.main,
                                "Eigen::internal::product<long, " + mapper + ", " + mapper +
                                    ">::run(long, " + mapper + " const&)",
                                "app"));
  const auto report = analyze(program.session);
  ASSERT_TRUE(report);
  EXPECT_EQ(cpu_causes(named(*report, "decode"), report->run),
            "100.0 % app; hottest function Eigen::internal::product::run, 100.0 %");
}

}  // namespace
}  // namespace rangescope::analyze
