// The gate: its rules on made-up numbers, and its error rates on recorded runs
// (tests/golden/noise/README.md).
#include "analyze/compare/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "analyze/compare/compare.hpp"
#include "analyze/statistics/spread.hpp"
#include "base/source_dir.hpp"

namespace rangescope::analyze {
namespace gate_test {

using model::Digest;
using model::DigestRegion;
using model::GateVerdict;
using model::Side;

/// All runs of one kind of a recording: lines `kind run path | occurrence in ns ...`.
std::vector<Digest> recorded(const std::string& file, const std::string& kind) {
  std::ifstream in(std::string(base::source_dir) + "/tests/golden/noise/" + file);
  std::map<int, Digest> runs;
  std::string line;
  while (std::getline(in, line)) {
    const auto bar = line.find(" | ");
    std::istringstream head(line.substr(0, bar)), tail(line.substr(bar + 3));
    std::string what, part;
    int run = 0;
    head >> what >> run;
    if (what != kind)
      continue;
    DigestRegion region;
    while (head >> part) {
      if (part != ">")
        region.path.push_back(part);
    }
    for (double value = 0; tail >> value;)
      region.wall_ns.push_back(value);
    region.occurrences = static_cast<std::int64_t>(region.wall_ns.size());
    std::vector<double> sorted = region.wall_ns;
    region.values["wall_ns.median"] = median_of(sorted);
    region.values["wall_ns.min"] = sorted.front();
    runs[run].regions.push_back(std::move(region));
  }
  std::vector<Digest> out;
  for (auto& [number, run] : runs)
    out.push_back(std::move(run));
  return out;
}

/// In how many of `trials` the gate fires: each draws `n` runs a side at random, without putting
/// back.
int fired(const std::vector<Digest>& before,
          const std::vector<Digest>& after,
          std::size_t n,
          int trials,
          const std::string& region = "") {
  std::mt19937 random(7);
  int count = 0;
  const bool same = &before == &after;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<std::size_t> a(before.size()), b(after.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = i;
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = i;
    std::shuffle(a.begin(), a.end(), random);
    std::shuffle(b.begin(), b.end(), random);
    std::vector<Side> sides = {{"before", {}}, {"after", {}}};
    for (std::size_t i = 0; i < n; ++i) {
      sides[0].runs.push_back(before[a[i]]);
      sides[1].runs.push_back(after[same ? a[n + i] : b[i]]);  // never a run on both sides
    }
    CompareOptions options;
    options.deals = 2000;  // enough for 0.025, and quick
    auto comparison = compare(sides, options);
    if (!comparison)
      ADD_FAILURE() << comparison.error().what;
    const auto judged = gate(std::move(*comparison), {.max_regression = 0.05}, false);
    if (!judged)
      ADD_FAILURE() << judged.error().what;
    const bool found = std::any_of(
        judged->checks.begin(), judged->checks.end(), [&](const model::GateCheck& check) {
          const auto& path = judged->comparison.regions[check.region].path;
          return check.verdict == GateVerdict::kRegressed &&
                 (region.empty() || path.back() == region);
        });
    if (found)
      ++count;
  }
  return count;
}

constexpr int kTrials = 200;
constexpr std::size_t kRuns = 10;

TEST(GateErrorRate, WithoutAChangeItFiresInAtMostFivePercent) {
  for (const char* file : {"steady.txt", "busy.txt"}) {
    const auto runs = recorded(file, "base");
    ASSERT_GE(runs.size(), 2 * kRuns) << file;
    for (const std::size_t n : {std::size_t{4}, std::size_t{5}, kRuns})
      EXPECT_LE(fired(runs, runs, n, kTrials), kTrials * 5 / 100)
          << file << ", " << n << " runs a side";
  }
}

TEST(GateErrorRate, ARealSlowdownOfFivePercentIsFoundInNinetyFivePercent) {
  const auto before = recorded("steady.txt", "base"), after = recorded("steady.txt", "slow");
  ASSERT_GE(before.size(), kRuns);
  ASSERT_GE(after.size(), kRuns);
  EXPECT_GE(fired(before, after, kRuns, kTrials, "mlp"), kTrials * 95 / 100);
  EXPECT_GE(fired(before, after, 5, kTrials, "mlp"),
            kTrials * 80 / 100);  // what `--repeat 5` can see on this machine
}

/// Two sides with one region of the given values in each run.
base::Result<model::Gate> judged(const std::vector<double>& a,
                                 const std::vector<double>& b,
                                 double limit,
                                 const std::string& tag = "wall_ns.median") {
  std::vector<Side> sides = {{"a", {}}, {"b", {}}};
  for (std::size_t s = 0; s < 2; ++s) {
    for (const double value : s == 0 ? a : b) {
      Digest run;
      DigestRegion region;
      region.path = {"r"};
      region.occurrences = 1;
      region.values[tag] = value;
      run.regions.push_back(region);
      sides[s].runs.push_back(run);
    }
  }
  CompareOptions options;
  options.values = {tag};
  auto comparison = compare(sides, options);
  if (!comparison)
    return base::fail(std::move(comparison));
  return gate(std::move(*comparison), {.max_regression = limit}, false);
}

// Times of `sleep` as recorded, in ms: 2.9 times as long.
TEST(Gate, FiveRunsASideDecideWhereTheChangeIsFarBeyondTheNoise) {
  const auto done =
      judged({2.130, 2.135, 2.131, 2.139, 2.137}, {6.127, 6.120, 6.139, 6.125, 6.131}, 0.05);
  EXPECT_EQ(done->verdict, GateVerdict::kRegressed) << done->checks.at(0).text;
}

TEST(Gate, LimitAndNoise) {
  const std::vector<double> before = {100, 100.2, 99.8, 100.1, 99.9};
  const auto verdict = [&](const std::vector<double>& after, double limit) {
    return judged(before, after, limit)->checks.at(0);
  };
  const std::vector<double> five = {105, 105.2, 104.8, 105.1, 104.9};
  EXPECT_EQ(verdict(five, 0.05).verdict, GateVerdict::kRegressed);  // exactly the limit is found
  EXPECT_EQ(verdict(five, 0.10).verdict, GateVerdict::kPassed);     // stands out, and is allowed
  EXPECT_EQ(verdict({95, 95.2, 94.8, 95.1, 94.9}, 0.05).verdict, GateVerdict::kPassed);
  const auto wide = verdict({90, 120, 100, 97, 115}, 0.05);
  EXPECT_EQ(wide.verdict, GateVerdict::kUndecided);
  EXPECT_TRUE(wide.hidden);
  EXPECT_NE(wide.text.find("too wide for the limit"), std::string::npos);
  EXPECT_GT(wide.runs_to_decide.value(), 5u);
  EXPECT_EQ(judged(before, {90, 120, 100, 97, 115}, 0.05)->verdict, GateVerdict::kUndecided);
  // Far beyond the limit, and still not beyond the noise.
  const auto far = judged({100, 180, 120, 160, 90}, {150, 320, 95, 260, 110}, 0.05);
  EXPECT_EQ(far->checks.at(0).verdict, GateVerdict::kUndecided);
  EXPECT_GT(far->checks.at(0).runs_to_decide.value_or(0), 5u);
}

TEST(Gate, ARateOfWhichMoreIsBetterIsRefused) {
  const std::vector<double> before = {100, 100.2, 99.8, 100.1, 99.9},
                            more = {200, 200.2, 199.8, 200.1, 199.9};
  const auto rate = judged(before, more, 0.05, "metrics.tokens/s");
  ASSERT_FALSE(rate);
  EXPECT_NE(rate.error().what.find("more of 'tokens/s' is better"), std::string::npos);
  EXPECT_NE(rate.error().hint.find("wall_ns.median"), std::string::npos);
  EXPECT_EQ(judged(before, more, 0.05, "metrics.J/token")->verdict, GateVerdict::kRegressed);
}

TEST(Gate, AnotherMachineIsRefused) {
  const auto code = [](const std::vector<std::string>& devices_a,
                       const std::vector<std::string>& devices_b,
                       const std::string& cpu_b,
                       bool any = false) {
    std::vector<Side> sides = {{"a", {}}, {"b", {}}};
    for (std::size_t s = 0; s < 2; ++s) {
      Digest run;
      run.devices = s == 0 ? devices_a : devices_b;
      run.run.environment["cpu"] = s == 0 ? "one" : cpu_b;
      DigestRegion region;
      region.path = {"r"};
      region.occurrences = 1;
      region.values["wall_ns.median"] = 1;
      run.regions.push_back(region);
      sides[s].runs.push_back(run);
    }
    auto comparison = compare(sides);
    if (!comparison)
      return base::exit_code(comparison.error().code);
    const auto done = gate(std::move(*comparison), {.any_machine = any}, false);
    return done ? 0 : base::exit_code(done.error().code);
  };
  EXPECT_EQ(code({}, {}, "one"), 0);
  EXPECT_EQ(code({}, {}, "two"), 82);
  EXPECT_EQ(code({}, {}, "two", true), 0);
  EXPECT_EQ(code({"H100"}, {"H100"}, "two"), 0);  // the GPU is the machine
  EXPECT_EQ(code({"H100"}, {"H200"}, "one"), 82);
}

TEST(Gate, SingleRunsWithoutOccurrencesAreUndecided) {
  const auto done = judged({100}, {200}, 0.05);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->verdict, GateVerdict::kUndecided);
}

TEST(Gate, CountedBytesNeedOneRunASide) {
  const auto verdict = [](double before, double after, double limit) {
    return judged({before}, {after}, limit, "memory.peak_bytes")->verdict;
  };
  EXPECT_EQ(verdict(1000, 1050, 0.05), GateVerdict::kRegressed) << "exactly the limit";
  EXPECT_EQ(verdict(1000, 1049, 0.05), GateVerdict::kPassed);
  EXPECT_EQ(verdict(1050, 1000, 0.05), GateVerdict::kPassed);
  EXPECT_EQ(verdict(1000, 1000, 0), GateVerdict::kPassed) << "equal is no growth";
  EXPECT_EQ(verdict(1000, 1001, 0), GateVerdict::kRegressed);
  EXPECT_EQ(verdict(0, 512, 0.05), GateVerdict::kRegressed) << "from nothing";
  const auto repeated = judged(
      {900, 1000, 1100, 950, 1050}, {950, 1050, 1150, 1000, 1100}, 0.05, "memory.peak_bytes");
  EXPECT_EQ(repeated->verdict, GateVerdict::kUndecided) << "repeated runs show that it varies";
}

/// Runs of one instance each, of so many ns.
Side side_of(const std::string& label, const std::vector<double>& wall) {
  Side side{label, {}};
  for (const double ns : wall) {
    Digest& run = side.runs.emplace_back();
    run.run.duration_ns = ns;
    DigestRegion& region = run.regions.emplace_back();
    region.path = {"program"};
    region.occurrences = 1;
    region.wall_ns = {ns};
    for (const char* tag : {"wall_ns.min", "wall_ns.median", "wall_ns.inclusive"})
      region.values[tag] = ns;
  }
  return side;
}

TEST(Gate, ThreeRunsSayWhatItTakes) {
  const std::vector<Side> sides = {side_of("before", {100, 101, 102}),
                                   side_of("after", {135, 136, 137})};
  auto comparison = compare(sides);
  ASSERT_TRUE(comparison);
  const auto judged = gate(std::move(*comparison), {.max_regression = 0.05}, false);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->verdict, GateVerdict::kUndecided);
  EXPECT_EQ(judged->checks.front().runs_to_decide, 5u);
  EXPECT_EQ(judged->checks.front().text.rfind("+34.7 % so far; ", 0), 0u)
      << judged->checks.front().text;
  EXPECT_NE(judged->checks.front().text.find("5 runs per side decide"), std::string::npos);
}

// `swinging` has its own two speeds. One other deal of its runs separates them, so with 4 runs
// nothing is significant.
TEST(Gate, BeyondTheLimitAndNotSignificantIsNoQuestionOfWidth) {
  std::vector<Side> sides = {side_of("before", {100, 101, 102, 103}),
                             side_of("after", {150, 151, 152, 153})};
  for (Side& side : sides) {
    for (std::size_t i = 0; i < side.runs.size(); ++i) {
      DigestRegion swinging = side.runs[i].regions[0];
      swinging.path = {"swinging"};
      for (const char* tag : {"wall_ns.min", "wall_ns.median"})
        swinging.values[tag] = i < 2 ? 100 : 500;
      side.runs[i].regions.push_back(swinging);
    }
  }
  auto comparison = compare(sides);
  ASSERT_TRUE(comparison);
  const auto judged = gate(std::move(*comparison), {.max_regression = 0.05}, false);
  ASSERT_TRUE(judged);
  const auto found = std::find_if(
      judged->checks.begin(), judged->checks.end(), [&](const model::GateCheck& check) {
        return judged->comparison.regions[check.region].path.back() == "program";
      });
  ASSERT_NE(found, judged->checks.end());
  EXPECT_EQ(found->verdict, GateVerdict::kUndecided);
  EXPECT_EQ(found->runs_to_decide, 10u);
  EXPECT_NE(found->text.find("not significant among all values, though beyond the limit"),
            std::string::npos)
      << found->text;
}

TEST(Gate, RunsAreEnoughWhereTheyDifferLittle) {
  const auto enough = [](std::vector<double> wall) {
    return enough_runs(side_of("", wall).runs, 0.05);
  };
  EXPECT_FALSE(enough({100, 100, 100, 100}));  // no test has so few
  EXPECT_TRUE(enough({100, 101, 100, 99, 100}));
  EXPECT_FALSE(enough({100, 130, 90, 110, 100}));
}

}  // namespace gate_test
}  // namespace rangescope::analyze
