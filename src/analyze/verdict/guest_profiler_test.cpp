#include <gtest/gtest.h>

#include "analyze/verdict/program_test.hpp"

namespace rangescope::analyze {
namespace guest_profiler_test {

using verdict_test::has;
using verdict_test::kMs;
using verdict_test::of;
using verdict_test::Program;

/// Ten steps in 100 ms, of which functions of that file take `profiler_ns` outside ranges.
model::Report program_with(const char* file, double profiler_ns) {
  Program program;
  program.loop("step", 10, 10 * kMs);
  model::Report report = program.report();
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
      program_with("/lib/python3.12/site-packages/torch/profiler/profiler.py", 40 * kMs);
  report.losses.push_back({"cupti_let_go", 1, "PyTorch's profiler began"});
  judge(report);
  const model::Verdict& line = of(report.verdict, "guest_profiler");
  EXPECT_NE(line.text.find("takes 40.00 ms of CPU time, 40 % of the run (profile.step in "
                           "profiler.py); from its start on"),
            std::string::npos)
      << line.text;
  EXPECT_EQ(line.saves_ns, 40 * kMs);
  EXPECT_FALSE(line.attempt.empty());
}

TEST(GuestProfiler, NoneWhereItTakesLittleOrACureNamesIt) {
  model::Report little = program_with("/x/torch/profiler/profiler.py", 0.01 * kMs);
  judge(little);
  EXPECT_FALSE(has(little.verdict, "guest_profiler"));

  model::Report other = program_with("/x/my/profiler.py", 40 * kMs);
  judge(other);
  EXPECT_FALSE(has(other.verdict, "guest_profiler"));

  model::Report named = program_with("/x/torch/profiler/profiler.py", 40 * kMs);
  model::Verdict cure;
  cure.kind = "cure";
  cure.cure = "profiler_in_loop";
  cure.saves_ns = 30 * kMs;
  named.verdict.push_back(cure);
  judge(named);
  EXPECT_FALSE(has(named.verdict, "guest_profiler"));
}

}  // namespace guest_profiler_test
}  // namespace rangescope::analyze
