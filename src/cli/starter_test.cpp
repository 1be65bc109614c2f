#include "cli/starter.hpp"

#include <gtest/gtest.h>

namespace rangescope::cli {
namespace starter_test {

using Path = std::vector<std::string>;

doctor::SeenRange seen(Path path, std::uint64_t occurrences, std::uint64_t kernels) {
  doctor::SeenRange range;
  range.path = std::move(path);
  range.occurrences = occurrences;
  range.kernels = kernels;
  range.total_ns = static_cast<std::int64_t>(occurrences) * 1000;
  return range;
}

doctor::ProgramFacts program_of(std::vector<doctor::SeenRange> ranges) {
  doctor::ProgramFacts facts;
  for (const doctor::SeenRange& range : ranges)
    if (range.path.size() == 1)
      facts.kernels += range.kernels;
  facts.ranges = std::move(ranges);
  return facts;
}

std::vector<std::string> chosen_of(const doctor::ProgramFacts& facts) {
  std::vector<std::string> expressions;
  for (const StarterRange& range : ranges_worth_measuring(facts))
    expressions.push_back(range.expression);
  return expressions;
}

using Expressions = std::vector<std::string>;

TEST(StarterRanges, OutermostRangesWithGpuWorkTheMostFirst) {
  EXPECT_EQ(chosen_of(program_of({seen({"prefill"}, 5, 10),
                                  seen({"decode"}, 50, 100),
                                  seen({"decode", "attention"}, 50, 60),
                                  seen({"log"}, 50, 0)})),
            (Expressions{"decode/", "prefill/"}));
}

TEST(StarterRanges, OfAProgramWithoutGpuTheLongestFirst) {
  EXPECT_EQ(chosen_of(program_of({seen({"read"}, 5, 0), seen({"solve"}, 50, 0)})),
            (Expressions{"solve/", "read/"}));
}

TEST(StarterRanges, InsteadOfOneAroundEverythingThoseInsideIt) {
  EXPECT_EQ(
      chosen_of(program_of(
          {seen({"main"}, 1, 100), seen({"main", "step"}, 20, 92), seen({"main", "setup"}, 1, 3)})),
      (Expressions{"[main/step", "[main/setup"}));
}

// Measuring only what is inside would lose more than a tenth of the work.
TEST(StarterRanges, OneAroundWorkOfItsOwnStays) {
  EXPECT_EQ(chosen_of(program_of({seen({"main"}, 1, 100), seen({"main", "step"}, 20, 89)})),
            (Expressions{"main/"}));
}

TEST(StarterRanges, OneThatRepeatsIsNotOpened) {
  EXPECT_EQ(chosen_of(program_of({seen({"step"}, 2, 100), seen({"step", "forward"}, 2, 100)})),
            (Expressions{"step/"}));
}

TEST(StarterRanges, RangesThatNeverEndedCannotBeMeasured) {
  doctor::SeenRange open = seen({"serve"}, 1, 100);
  open.unclosed = 1;
  EXPECT_EQ(chosen_of(program_of({open, seen({"load"}, 2, 5)})), (Expressions{"load/"}));
}

TEST(StarterRanges, NamesThatAFileCannotHoldAreLeftOut) {
  EXPECT_EQ(chosen_of(program_of({seen({"a\x1b[2J"}, 2, 9), seen({""}, 2, 9), seen({"b"}, 2, 5)})),
            (Expressions{"b/"}));
}

TEST(StarterRanges, FourThatDifferInNumbersAreOnePattern) {
  const auto ranges = ranges_worth_measuring(program_of({seen({"layer 0"}, 3, 10),
                                                         seen({"layer 7"}, 3, 10),
                                                         seen({"layer 12"}, 3, 10),
                                                         seen({"layer 31"}, 2, 10)}));
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].expression, "regex:^layer [0-9]+$/");
  EXPECT_EQ(ranges[0].occurrences, 11u);
  EXPECT_EQ(ranges[0].kernels, 40u);
}

TEST(StarterRanges, ThreeAlikeAreNamed) {
  EXPECT_EQ(chosen_of(program_of({seen({"a1"}, 3, 30), seen({"a2"}, 3, 20), seen({"a3"}, 3, 10)})),
            (Expressions{"a1/", "a2/", "a3/"}));
}

TEST(StarterRanges, APatternIsOfOneDomainAndKind) {
  std::vector<doctor::SeenRange> ranges;
  for (const char* name : {"r1", "r2", "r3", "r4"}) {
    doctor::SeenRange range = seen({name}, 3, 10);
    range.domain = "LLM (v2)";
    range.kind = model::RangeKind::kStartEnd;
    ranges.push_back(range);
  }
  ranges.push_back(seen({"r5"}, 3, 5));
  EXPECT_EQ(chosen_of(program_of(ranges)), (Expressions{"regex:^LLM \\(v2\\)$@^r[0-9]+$", "r5/"}));
}

TEST(StarterRanges, AreTenAtMost) {
  std::vector<doctor::SeenRange> ranges;
  for (char name = 'a'; name <= 'l'; ++name)
    ranges.push_back(seen({std::string(1, name)}, 2, 10));
  ranges.push_back(seen({"main"}, 2, 99));
  const Expressions chosen = chosen_of(program_of(ranges));
  ASSERT_EQ(chosen.size(), 10u);
  EXPECT_EQ(chosen.front(), "main/");
  EXPECT_EQ(chosen.back(), "i/");
}

// 32 layers of 9 kernels are more work than any range of 10.
TEST(StarterRanges, APatternHasTheWorkOfAllItsRanges) {
  std::vector<doctor::SeenRange> ranges;
  for (char name = 'a'; name <= 'j'; ++name)
    ranges.push_back(seen({std::string(1, name)}, 2, 10));
  for (int layer = 0; layer < 32; ++layer)
    ranges.push_back(seen({"layer " + std::to_string(layer)}, 2, 9));
  EXPECT_EQ(chosen_of(program_of(ranges)).front(), "regex:^layer [0-9]+$/");
}

}  // namespace starter_test
}  // namespace rangescope::cli
