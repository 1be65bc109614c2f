#include "collect/nsight/ladder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "collect/nsight/outcome.hpp"

namespace rangescope::collect {
namespace ladder_test {

Observed recorded(const std::string& tool, const std::string& name, int exit_code) {
  auto text = base::read_file(std::filesystem::path(base::source_dir) / "tests" / "golden" /
                              (tool + "-out") / (name + ".out"));
  EXPECT_TRUE(text.has_value()) << name;
  Observed seen;
  seen.text = text ? *text : "";
  seen.exit_code = exit_code;
  return seen;
}

std::string judged(const std::string& name, int exit_code) {
  const Outcome out = judge_ncu(recorded("ncu", name, exit_code));
  return std::string(result_name(out.result)) + " " + out.why();
}

// Outputs of ncu 2025.3.1 that left no report; exit codes as tests/golden/ncu-out has them in its
// recording's list.
TEST(Outcome, RecordedFailuresOfNcu) {
  EXPECT_EQ(judged("k_miss", 0), "empty ncu.only_push_pop");
  EXPECT_EQ(judged("r_miss", 0), "empty ncu.only_push_pop");
  EXPECT_EQ(judged("k_star", 0), "empty ncu.only_push_pop");
  EXPECT_EQ(judged("k_worker", 0), "empty ncu.only_push_pop");
  EXPECT_EQ(judged("k_semi", 0), "empty ncu.only_start_end");
  EXPECT_EQ(judged("k_comma", 0), "empty ncu.only_push_pop");
  EXPECT_EQ(judged("pt_ncu_noslash", 0), "empty ncu.only_start_end");
  EXPECT_EQ(judged("r_graph", 9), "failed ncu.unsupported_api");
  EXPECT_EQ(judged("r_alloca", 9), "failed ncu.unsupported_api");
  EXPECT_EQ(judged("pt_ncu_range", 9), "failed ncu.unsupported_api");
  EXPECT_EQ(judged("badmetric", 9), "failed ncu.unknown_metric");
  EXPECT_EQ(judged("badsec", 1), "failed ncu.unknown_section");
  EXPECT_EQ(judged("badset", 0), "failed ncu.unknown_set");
  EXPECT_EQ(judged("badmode", 1), "failed ncu.usage");
  EXPECT_EQ(judged("tp1", 1), "failed ncu.usage");
  EXPECT_EQ(judged("psum0", 1), "failed ncu.usage");
  EXPECT_EQ(judged("psum", 1), "failed ncu.usage");
  EXPECT_EQ(judge_ncu(recorded("ncu", "r_alloca", 9)).unsupported_calls,
            std::vector<std::string>{"cuMemAllocAsync"});
  EXPECT_EQ(
      judge_ncu(recorded("ncu", "pt_ncu_range", 9)).message,
      "ncu: the range holds a CUDA call that range replay cannot replay: cuKernelSetAttribute");
}

TEST(Outcome, SuccessIsAReportWithResults) {
  Observed seen = recorded("ncu", "ar_decode", 0);
  EXPECT_EQ(judge_ncu(seen).why(), "empty");  // nobody saw a report
  seen.report = true;
  EXPECT_EQ(judge_ncu(seen).why(), "empty");  // an empty one
  seen.results = 12;
  EXPECT_EQ(judge_ncu(seen).why(), "ok");
  EXPECT_EQ(judge_ncu(seen).message, "ncu: 12 results");
}

TEST(Outcome, TheProgramMayPrintTheSameWords) {
  Observed seen;
  seen.text = "my log: No kernels were profiled. Failed to find metric x\n";
  seen.exit_code = 0;
  EXPECT_EQ(judge_ncu(seen).why(), "empty");
  EXPECT_TRUE(judge_ncu(seen).complaints.empty());
}

TEST(Outcome, AProgramThatFailsUnderNcuIsNoEmptyFilter) {
  Observed seen;
  seen.text =
      "==ERROR== The application returned an error code (11).\n==WARNING== No kernels were "
      "profiled.\n";
  seen.exit_code = 11;
  EXPECT_EQ(judge_ncu(seen).why(), "ncu.program_failed");
  EXPECT_EQ(judge_ncu(seen).complaints.size(), 1u);
}

TEST(Outcome, PermissionAndBusyCounters) {
  Observed seen;
  seen.exit_code = 1;
  seen.text =
      "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
      "Performance Counters on the "
      "target device 0.\n";
  EXPECT_EQ(judge_ncu(seen).code, base::Code::kPermission);
  EXPECT_TRUE(judge_ncu(seen).fatal);
  EXPECT_FALSE(try_again(judge_ncu(seen), 1, 3));
  seen.text =
      "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other "
      "tool is "
      "collecting.\n";
  EXPECT_EQ(judge_ncu(seen).why(), "ncu.counters_held");
  EXPECT_TRUE(try_again(judge_ncu(seen), 1, 1));
  EXPECT_FALSE(try_again(judge_ncu(seen), 2, 1));
  seen.text =
      "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on "
      "path?).\n==ERROR== The "
      "application returned an error code (1).\n==WARNING== No kernels were profiled.\n";
  EXPECT_EQ(judge_ncu(seen).why(), "ncu.no_driver");
}

TEST(Outcome, TimeLimitAndInterruption) {
  Observed seen;
  seen.timed_out = true;
  seen.signal = 15;
  EXPECT_EQ(judge_ncu(seen).why(), "ncu.timeout");
  EXPECT_TRUE(judge_ncu(seen).fatal);
  seen.timed_out = false;
  seen.interrupted = true;
  EXPECT_EQ(judge_nsys(seen).why(), "nsys.interrupted");
  seen.report = true;
  seen.results = 3;
  EXPECT_EQ(judge_nsys(seen).why(), "ok");
}

TEST(Outcome, RecordedOutputsOfNsys) {
  EXPECT_EQ(judge_nsys(recorded("nsys", "g1", 0)).why(), "nsys.never_started");
  EXPECT_EQ(judge_nsys(recorded("nsys", "g4", 0)).why(), "nsys.never_started");
  Observed seen = recorded("nsys", "g2", 0);
  seen.report = true;
  seen.results = 9;
  EXPECT_EQ(judge_nsys(seen).why(), "ok");
}

Abilities modes(std::vector<std::string> values) {
  Abilities out;
  out.version = {2025, 3, 1};
  out.options["--replay-mode"] = std::move(values);
  return out;
}

std::string show(const std::vector<Rung>& rungs) {
  std::string out;
  for (const Rung& rung : rungs)
    out +=
        std::string(step_name(rung.step)) + (rung.take ? " yes: " : " no: ") + rung.reason + "\n";
  return out;
}

TEST(Ladder, NothingKnownTriesAllThatCanWork) {
  Wish wish;
  wish.ranges = wish.sections = true;
  EXPECT_EQ(show(ladder(wish, {}, modes({"kernel", "range", "app-range"}))),
            "native no: sections were asked for; native counters give metrics (metrics=[...] alone "
            "would use them)\n"
            "range yes: the program was not probed\n"
            "app-range yes: relaunches the program for every pass; allows any CUDA call inside\n"
            "kernel yes: each kernel inside the range is replayed; works where ranges cannot\n");
}

TEST(Ladder, WhatTheLookSawDecides) {
  Wish wish;
  wish.ranges = wish.metrics = wish.native_counters = true;
  Evidence evidence;
  evidence.occurrences = 64;
  evidence.kernels = 100;
  evidence.calls = {{"cudaMallocAsync_v11020", 3}, {"cudaLaunchKernel_v7000", 100}};
  evidence.alike = false;
  EXPECT_EQ(
      show(ladder(wish, evidence, modes({"kernel", "range", "app-range"}))),
      "native yes: metrics of a range with enough instances: no replay needed\n"
      "range no: range replay cannot replay what was seen inside: cudaMallocAsync_v11020 (3 times; "
      "stream-ordered allocation)\n"
      "app-range yes: relaunches the program for every pass; allows any CUDA call inside; "
      "instances differ, so "
      "the program must do the same every time\n"
      "kernel yes: each kernel inside the range is replayed; works where ranges cannot\n");
  evidence.calls.clear();
  evidence.graph_launches = 5;
  evidence.occurrences = 1;
  EXPECT_EQ(
      show(ladder(wish, evidence, modes({"kernel", "range"}))),
      "native no: the range has one instance, and native counters take one pass per instance\n"
      "range no: range replay cannot replay what was seen inside: 5 CUDA graph launches\n"
      "app-range no: ncu 2025.3.1 has no app-range replay\n"
      "kernel yes: each kernel inside the range is replayed; works where ranges cannot\n");
}

TEST(Ladder, FiltersNamesAndSingleModes) {
  Wish wish;
  wish.sections = wish.kernel_filter = true;
  wish.ranges = true;
  EXPECT_TRUE(
      show(ladder(wish, {}, modes({"kernel", "range"})))
          .ends_with(
              "kernel yes: each kernel inside the range is replayed; works where ranges cannot\n"));
  wish.mode = "app-range";
  EXPECT_EQ(show(ladder(wish, {}, modes({"kernel"}))), "app-range yes: asked for\n");
  EXPECT_EQ(range_replay_refuses("cudaLaunchKernel_v7000"), "");
  EXPECT_EQ(range_replay_refuses("cuMemcpyAsync_v2_ptsz"), "");
  EXPECT_EQ(range_replay_refuses("cudaGraphLaunch_v10000"), "CUDA graphs");
}

}  // namespace ladder_test
}  // namespace rangescope::collect
