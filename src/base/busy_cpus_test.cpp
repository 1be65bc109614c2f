#include "base/busy_cpus.hpp"

#include <gtest/gtest.h>

namespace rangescope::base {
namespace {

TEST(BusyCpus, IdleTimeAndWaitsForDisksAreNotBusy) {
  const auto line = parse_cpu_line("cpu12 2000 34 300 22625563 6290 10 5 1 2000 34");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->cpu, 12);
  EXPECT_EQ(line->busy_ticks, 2000 + 34 + 300 + 10 + 5 + 1);
}

TEST(BusyCpus, OtherLinesAreNone) {
  for (const char* line : {"",
                           "cpu  4000 68 600 45251126 12580 20 10 2 0 0",
                           "intr 1462898 0 9",
                           "cpu0 1 2 3",
                           "cpu0 1 2 x 4 5 6 7 8 9 10",
                           "cpux 1 2 3 4 5 6 7 8 9 10",
                           "page 5741 1808"})
    EXPECT_FALSE(parse_cpu_line(line).has_value()) << line;
}

TEST(BusyCpus, OfThisMachineOnlyGrows) {
  const auto before = read_busy_cpus();
  const auto after = read_busy_cpus();
  ASSERT_TRUE(before && after);
  EXPECT_GT(before->cpus, 0);
  EXPECT_GE(after->busy_ns, before->busy_ns);
  EXPECT_GE(after->at_ns, before->at_ns);
}

}  // namespace
}  // namespace rangescope::base
