// Numbers as people read them.
#include "base/units.hpp"

#include <gtest/gtest.h>

namespace rangescope::base {
namespace units_test {

TEST(Units, AnErrorHasTheUnitAndTheDigitsOfItsValue) {
  EXPECT_EQ(format_ns_interval(51.9e6, 2.6e6), "51.9 ± 2.6 ms");
  EXPECT_EQ(format_ns_interval(369e6, 25e6), "369 ± 25 ms");
  EXPECT_EQ(format_ns_interval(34.79e6, 686.2e3), "34.8 ± 0.7 ms");
  EXPECT_EQ(format_ns_interval(-1.5e3, 20), "-1.50 ± 0.02 us");
  EXPECT_EQ(format_ns_interval(745e3, 0), "745 ± 0 us");
}

TEST(Units, AnErrorIsNeverRoundedToNothing) {
  EXPECT_EQ(format_ns_interval(250e6, 0.3e6), "250.0 ± 0.3 ms");
  EXPECT_EQ(format_ns_interval(250e6, 3e3), "250.000 ± 0.003 ms");
}

TEST(Units, AnErrorLargerThanItsValueGivesTheUnit) {
  EXPECT_EQ(format_ns_interval(3e3, 2e6), "0.00 ± 2.00 ms");
  EXPECT_EQ(format_ns_interval(0, 0), "0 ns");
}

TEST(Units, ACountAgreesWithItsNoun) {
  EXPECT_EQ(counted(1, "kernel"), "1 kernel");
  EXPECT_EQ(counted(0, "kernel"), "0 kernels");
  EXPECT_EQ(counted(12345, "kernel"), "12,345 kernels");
  EXPECT_EQ(counted(2, "copy"), "2 copies");
  EXPECT_EQ(counted(2, "key"), "2 keys");
  EXPECT_EQ(counted(2, "pass"), "2 passes");
  EXPECT_EQ(counted(2, "graph launch"), "2 graph launches");
  EXPECT_EQ(counted(1, "range has", "ranges have"), "1 range has");
  EXPECT_EQ(counted(3, "range has", "ranges have"), "3 ranges have");
}

}  // namespace units_test
}  // namespace rangescope::base
