// Ranges of a module that differ by what they do are neither jitter nor an imbalance.
#include <gtest/gtest.h>

#include "analyze/verdict/program_test.hpp"

namespace rangescope::analyze {
namespace spread_test {

using verdict_test::has;
using verdict_test::kMs;
using verdict_test::Program;

/// One long range in the first thread, and many short ones of the same name in a second.
std::vector<model::Verdict> forward_and_parts(bool are_modules) {
  Program program;
  const auto engine = program.thread(program.p, 7);
  for (int step = 0; step < 2; ++step) {
    program.range(program.t, "Model", program.now, program.now + 100 * kMs);
    for (int part = 0; part < 8; ++part) {
      const std::int64_t start_ns = program.now + (part + 1) * 10 * kMs;
      program.range(engine, "Model", start_ns, start_ns + kMs);
    }
    program.pause(110 * kMs);
  }
  for (model::Range& range : program.session.ranges)
    range.module = are_modules;
  return program.verdict();
}

TEST(Uneven, AModuleDoesOtherWorkInEachThread) {
  const auto ranges = forward_and_parts(false), modules = forward_and_parts(true);
  EXPECT_TRUE(has(ranges, "uneven_occurrences"));
  EXPECT_TRUE(has(ranges, "uneven_threads"));
  EXPECT_FALSE(has(modules, "uneven_occurrences"));
  EXPECT_FALSE(has(modules, "uneven_threads"));
}

TEST(Uneven, ThreadsThatNeverRanTogetherDoNotWaitForEachOther) {
  const auto judged = [](std::int64_t second_begins_ns) {
    Program program;
    const auto second = program.thread(program.p, 7);
    program.range(program.t, "work", program.now, program.now + 100 * kMs);
    const std::int64_t start_ns = program.now + second_begins_ns;
    program.range(second, "work", start_ns, start_ns + 10 * kMs);
    program.pause(200 * kMs);
    return program.verdict();
  };
  EXPECT_TRUE(has(judged(0), "uneven_threads"));
  EXPECT_TRUE(has(judged(90 * kMs), "uneven_threads"));
  EXPECT_FALSE(has(judged(100 * kMs), "uneven_threads"));
}

TEST(Uneven, PartsOfABackwardPassAreOfDifferentFunctions) {
  const auto judged = [](const char* root) {
    Program program;
    for (int part = 0; part < 20; ++part) {
      const std::int64_t length_ns = part % 5 == 4 ? 10 * kMs : kMs;
      for (const char* name : {root, "Linear"}) {
        const auto range = program.range(program.t, name, program.now, program.now + length_ns);
        program.session.ranges[range].module = true;
      }
      program.pause(length_ns);
    }
    return program.verdict();
  };
  EXPECT_TRUE(has(judged("Model"), "uneven_occurrences"));
  EXPECT_FALSE(has(judged("backward"), "uneven_occurrences"));
}

}  // namespace spread_test
}  // namespace rangescope::analyze
