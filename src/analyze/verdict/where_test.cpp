#include <gtest/gtest.h>

#include "analyze/verdict/program_test.hpp"
#include "model/advice.hpp"

namespace rangescope::analyze {
namespace where_test {

using verdict_test::has;
using verdict_test::kMs;
using verdict_test::of;
using verdict_test::Program;

TEST(Compilation, OfXla) {
  Program program;
  program.loop("XlaCompile: jit_init", 1, 10 * kMs);
  program.loop("XlaCompile: jit_step", 1, 30 * kMs);
  program.loop("XlaModule: jit_step", 50, kMs);
  program.pause(10 * kMs);
  const model::Verdict once = of(program.verdict(), "compilation");
  EXPECT_EQ(once.text,
            "XLA compiles 2 programs in 40.00 ms, 40 % of the run; jit_step takes 30.00 ms");
  EXPECT_EQ(model::advice_for(once).substr(0, 4), "Keep");
  program.loop("XlaCompile: jit_step", 3, 10 * kMs);
  const model::Verdict again = of(program.verdict(), "compilation");
  EXPECT_EQ(
      again.text,
      "XLA compiles 5 programs in 70.00 ms, 54 % of the run; jit_step takes 60.00 ms (4 times)");
  EXPECT_EQ(model::advice_for(again).substr(0, 4), "Give");
  EXPECT_FALSE(has(program.loop("step", 1, 10000 * kMs).verdict(), "compilation"));
}

}  // namespace where_test
}  // namespace rangescope::analyze
