#include "base/progress.hpp"

#include <gtest/gtest.h>

namespace rangescope::base::progress_test {

TEST(Progress, AShareAndARateWhereTheyAreKnown) {
  EXPECT_EQ(progress_text("reading a", 50u << 20, 100u << 20, 2), "reading a 50.0 %, 25.00 MiB/s");
  EXPECT_EQ(progress_text("reading a", 300, 200, 1),
            "reading a: 200 B read, joining them, 1.000 s");
  EXPECT_EQ(progress_text("writing a", 1u << 20, 0, 1), "writing a, 1.000 MiB/s");
  EXPECT_EQ(progress_text("analyzing", 0, 0, 3.7), "analyzing, 3.000 s");
}

TEST(Progress, NothingIsDrawnUnasked) {
  testing::internal::CaptureStderr();
  {
    const Work outer("reading", 10), inner("writing");
    Work::done(10);
    Work::clear_line();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace rangescope::base::progress_test
