// Where lines with a cure stand among the others.
#include <gtest/gtest.h>

#include "analyze/verdict/program_test.hpp"

namespace rangescope::analyze {
namespace cure_lines_test {

using verdict_test::has;
using verdict_test::kMs;
using verdict_test::kUs;
using verdict_test::Program;

model::Verdict cure_that_saves(double ns) {
  model::Verdict line;
  line.kind = "cure";
  line.cure = "fp32_products";
  line.severity = model::Weight::kWarning;
  line.saves_ns = ns;
  return line;
}

TEST(Verdict, ACureStandsFirstAndReplacesWhatItExplains) {
  Program program;
  program.loop("step", 20, kMs, 2, 10 * kUs);
  ASSERT_EQ(program.verdict().front().kind, "waits_for_cpu");
  model::Report report = program.report();
  report.verdict.push_back(cure_that_saves(kMs));
  judge(report);
  EXPECT_EQ(report.verdict.front().cure, "fp32_products");
  EXPECT_FALSE(has(report.verdict, "waits_for_cpu"));
}

TEST(Verdict, WhatHappensOnceIsANoteBehindACure) {
  Program program;
  program.pause(500 * kMs).loop("step", 20, kMs, 2, 900 * kUs, 900 * kUs);
  ASSERT_TRUE(has(program.verdict(), "outside_ranges"));
  model::Report report = program.report();
  report.verdict.push_back(cure_that_saves(kMs));
  judge(report);
  ASSERT_GE(report.verdict.size(), 2u);
  EXPECT_EQ(report.verdict.front().cure, "fp32_products");
  EXPECT_EQ(report.verdict.back().kind, "outside_ranges");
  EXPECT_EQ(report.verdict.back().severity, model::Weight::kNote);
  EXPECT_FALSE(report.verdict.back().saves_ns);
}

TEST(Verdict, SavingsTogetherDoNotExceedTheRun) {
  Program program;
  program.loop("step", 20, kMs, 2, 10 * kUs);
  model::Report report = program.report();
  report.verdict.push_back(cure_that_saves(15 * kMs));
  report.verdict.push_back(cure_that_saves(10 * kMs));
  judge(report);
  EXPECT_EQ(report.verdict[0].saves_ns, 15 * kMs);
  EXPECT_FALSE(report.verdict[1].saves_ns);
}

}  // namespace cure_lines_test
}  // namespace rangescope::analyze
