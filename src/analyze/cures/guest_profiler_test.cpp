#include "analyze/cures/guest_profiler.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace rangescope::analyze::cures {
namespace guest_profiler_test {

constexpr double kRun_ns = 100e6;

/// Functions of that file take `profiler_ns` outside ranges.
model::Report program_with(const char* file, double profiler_ns) {
  model::Report report;
  report.run.duration_ns = kRun_ns;
  model::CpuWork& cpu = report.cpu_outside.emplace();
  for (const auto& [name, share] :
       {std::pair("profile.step", 1.0), std::pair("profile.stop", 0.5)}) {
    model::CpuFunction function;
    function.name = name;
    function.file = file;
    function.total_ns = share * profiler_ns;
    cpu.callers.push_back(function);
  }
  return report;
}

TEST(GuestProfiler, WhatItsFunctionsTakeIsALineWithACure) {
  model::Report report =
      program_with("/lib/python3.12/site-packages/torch/profiler/profiler.py", 40e6);
  report.losses.push_back({"cupti_let_go", 1, "PyTorch's profiler began"});
  add_guest_profiler(report);
  ASSERT_EQ(report.verdict.size(), 1u);
  const model::Verdict& line = report.verdict[0];
  EXPECT_EQ(line.text,
            "PyTorch's profiler, which the program runs itself, takes 40.00 ms of CPU time "
            "(profile.step in profiler.py); without the profiler, the run is shorter by about as "
            "much (40.0 %), and GPU work can be recorded");
  EXPECT_EQ(line.saves_ns, 40e6);
  EXPECT_EQ(line.cure, "profiler_in_loop");
  EXPECT_FALSE(line.attempt.empty());
}

TEST(GuestProfiler, NoneWhereItTakesLittleOrALineHasTheCure) {
  model::Report little = program_with("/x/torch/profiler/profiler.py", 4e6);
  add_guest_profiler(little);
  EXPECT_TRUE(little.verdict.empty());

  model::Report other = program_with("/x/my/profiler.py", 40e6);
  add_guest_profiler(other);
  EXPECT_TRUE(other.verdict.empty());

  model::Report named = program_with("/x/torch/profiler/profiler.py", 40e6);
  named.verdict.emplace_back().cure = "profiler_in_loop";
  add_guest_profiler(named);
  EXPECT_EQ(named.verdict.size(), 1u);
}

}  // namespace guest_profiler_test
}  // namespace rangescope::analyze::cures
