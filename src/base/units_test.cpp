// Numbers as people read them.
#include "base/units.hpp"

#include <gtest/gtest.h>

namespace rangescope::base {
namespace units_test {

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
