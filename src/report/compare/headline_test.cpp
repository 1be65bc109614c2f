// The first sentence of a comparison, of made-up numbers.
#include <gtest/gtest.h>

#include "report/compare/document.hpp"

namespace rangescope::report {
namespace headline_test {

using model::ComparedRegion;
using model::ComparedValue;
using model::Comparison;
using model::Standing;

ComparedValue value(
    const char* tag, double before, double after, double low, double high, Standing standing) {
  ComparedValue out;
  out.tag = tag;
  out.unit = "ns";
  out.values = {before, after};
  model::Change& change = out.changes.emplace_back();
  change.difference = after - before;
  change.ratio = after / before;
  change.low = low;
  change.high = high;
  change.standing = standing;
  return out;
}

ComparedRegion region(std::vector<std::string> path, const ComparedValue& wall) {
  ComparedRegion out;
  out.path = std::move(path);
  out.occurrences = {1, 1};
  out.values = {wall};
  return out;
}

Comparison two_sides(std::vector<ComparedRegion> regions) {
  Comparison out;
  out.sides.resize(2);
  for (model::ComparedSide& side : out.sides)
    side.runs = 10;
  out.regions = std::move(regions);
  return out;
}

TEST(Headline, NamesAFunctionThatHasAName) {
  ComparedRegion program =
      region({"program"}, value("wall_ns.median", 1e6, 1.01e6, 0.98, 1.03, Standing::kNoise));
  for (const char* name :
       {"+0x5dcc20", "libc.so.6+0x174e80", "memcpy [libc.so.6]", "load (train.py)"}) {
    model::ComparedFunction& function = program.functions.emplace_back();
    function.name = name;
    function.self = value("self_ns", 10e3, 12e3, 1.18, 1.22, Standing::kMore);
  }
  const std::string headline = comparison_headline(two_sides({program}));
  EXPECT_NE(headline.find("load (train.py) in program is slower"), std::string::npos) << headline;
  EXPECT_EQ(headline.find("+0x"), std::string::npos) << headline;
  EXPECT_EQ(headline.find("memcpy"), std::string::npos) << headline;
}

TEST(Headline, TheFirstSentenceNamesTheProgramsOwnFunction) {
  const auto with_function = [](ComparedRegion region, double count) {
    region.occurrences = {count, count};
    model::ComparedFunction& dedup = region.own_functions.emplace_back();
    dedup.name = "dedup (quad.py)";
    dedup.place = {"dedup", "/home/u/quad.py", 2};
    dedup.self = value("cpu_ns", 100e6, 381e6, 3.7, 3.9, Standing::kMore);
    return region;
  };
  const auto wall = value("wall_ns.median", 600e6, 880e6, 1.4, 1.5, Standing::kMore);
  EXPECT_EQ(comparison_headline(two_sides({with_function(region({"program"}, wall), 1)})),
            "program is slower: wall time from 600.0 ms to 880.0 ms (+46.7 %); dedup (quad.py:2) "
            "takes 381.0 ms of CPU time instead of 100.0 ms (+281 %). No other change is "
            "statistically significant.");
  const auto same = value("wall_ns.median", 600e6, 606e6, 0.98, 1.03, Standing::kNoise);
  EXPECT_EQ(comparison_headline(two_sides({with_function(region({"step"}, same), 8)})),
            "No statistically significant change of a range: 1 value in 1 region. dedup "
            "(quad.py:2) takes 381.0 ms of CPU time per instance instead of 100.0 ms (+281 %) in "
            "step.");
}

TEST(Headline, NamesAKernelWhereNoRangeChanged) {
  Comparison comparison = two_sides(
      {region({"decode"}, value("wall_ns.median", 1e6, 1.01e6, 0.98, 1.03, Standing::kNoise))});
  EXPECT_EQ(comparison_headline(comparison),
            "No statistically significant change of a range: 1 value in 1 region.");
  model::ComparedKernel& kernel = comparison.kernels.emplace_back();
  kernel.name = "gemm";
  kernel.per_call = value("ns_per_call", 10e3, 12e3, 1.18, 1.22, Standing::kMore);
  EXPECT_EQ(comparison_headline(comparison),
            "No statistically significant change of a range: 1 value in 1 region. gemm is slower: "
            "from 10.00 us to "
            "12.00 us per call (+20.0 %).");
}

TEST(Headline, IsWorseOrBetterAsItsLargestChange) {
  const auto of = [](double after, double low, double high, Standing standing) {
    return headline_standing(two_sides(
        {region({"decode"}, value("wall_ns.median", 1e6, after, low, high, standing)),
         region({"load"}, value("wall_ns.median", 1e6, 0.99e6, 0.97, 0.999, Standing::kLess))}));
  };
  EXPECT_EQ(of(1.5e6, 1.4, 1.6, Standing::kMore), Standing::kMore);
  EXPECT_EQ(of(0.5e6, 0.4, 0.6, Standing::kLess), Standing::kLess);
  EXPECT_EQ(of(1.5e6, 0.9, 2.1, Standing::kNoise), Standing::kLess);
  EXPECT_EQ(headline_standing(two_sides({})), Standing::kNoise);
}

TEST(Headline, OfRunsInTurnsIsHowMuchFaster) {
  const auto step =
      region({"step"}, value("wall_ns.median", 100e6, 80e6, 0.79, 0.81, Standing::kLess));
  const auto decode = region({"step", "decode"},
                             value("wall_ns.median", 80e6, 59.2e6, 0.73, 0.75, Standing::kLess));
  const auto load =
      region({"step", "load"}, value("wall_ns.median", 20e6, 20e6, 0.99, 1.01, Standing::kNoise));
  const auto run_of = [](double low, double ratio, double high, Standing standing) {
    ComparedRegion row =
        region({"whole run"}, value("wall_ns.median", 1e9, ratio * 1e9, low, high, standing));
    row.is_whole_run = true;
    return row;
  };
  Comparison faster =
      two_sides({step, decode, load, run_of(1 / 1.40, 1 / 1.36, 1 / 1.32, Standing::kLess)});
  faster.in_turns = true;
  EXPECT_EQ(comparison_headline(faster), "B is 1.36 ± 0.04 times faster; decode -26.0 %.");
  Comparison slower = two_sides({run_of(1.15, 1.2, 1.25, Standing::kMore)});
  slower.in_turns = true;
  EXPECT_EQ(comparison_headline(slower), "B is 1.20 ± 0.05 times slower.");
  Comparison same = two_sides({load, run_of(0.98, 1.01, 1.03, Standing::kNoise)});
  same.in_turns = true;
  EXPECT_EQ(
      comparison_headline(same),
      "A and B take the same time, as far as 10 runs show: B takes 0.98 to 1.03 times as long.");
}

}  // namespace headline_test
}  // namespace rangescope::report
