// Notes of runs in sequence, and functions of repeated runs: what the gate makes of them.
#include "analyze/compare/series/sequence.hpp"

#include <gtest/gtest.h>

#include "analyze/compare/compare.hpp"
#include "analyze/compare/gate.hpp"

namespace rangescope::analyze {
namespace sequence_test {

using model::Digest;
using model::DigestRegion;
using model::GateVerdict;
using model::Side;
using model::Standing;

constexpr double kSpread[] = {1, 1.002, 0.998, 1.001, 0.999};

/// Five runs from `start` on, with ranges of these times.
Side ranges_of(const std::string& label, std::int64_t start, const std::vector<double>& times_ns) {
  Side side{label, {}};
  for (const double factor : kSpread) {
    Digest& run = side.runs.emplace_back();
    run.run.start_unix_ns = start++;
    for (std::size_t i = 0; i < times_ns.size(); ++i) {
      DigestRegion& region = run.regions.emplace_back();
      region.path = {"step", "part" + std::to_string(i)};
      region.occurrences = 1;
      region.values["wall_ns.median"] = times_ns[i] * factor;
    }
  }
  return side;
}

bool has_note(const std::vector<Side>& sides, bool in_turns = false) {
  CompareOptions options;
  options.in_turns = in_turns;
  const auto done = compare(sides, options);
  EXPECT_TRUE(done);
  return std::ranges::any_of(done->notes, [](const std::string& note) {
    return note.find("moved alike") != std::string::npos &&
           note.find("compare --measure") != std::string::npos;
  });
}

TEST(Sequence, RangesThatAllMovedAlikeAreNoted) {
  const Side before = ranges_of("a", 100, {100, 50, 20});
  EXPECT_TRUE(has_note({before, ranges_of("b", 200, {104, 52, 20.7})}));
  EXPECT_TRUE(has_note({ranges_of("a", 300, {100, 50, 20}), ranges_of("b", 200, {96, 48, 19.3})}));
  EXPECT_FALSE(has_note({before, ranges_of("b", 200, {104, 50, 20})})) << "one range changed";
  EXPECT_FALSE(has_note({before, ranges_of("b", 200, {104, 52, 19})})) << "one the other way";
  EXPECT_FALSE(has_note({before, ranges_of("b", 200, {100.1, 50.1, 20})})) << "nothing changed";
  EXPECT_FALSE(has_note({before, ranges_of("b", 102, {104, 52, 20.7})})) << "the runs overlap";
  EXPECT_FALSE(has_note({before, ranges_of("b", 200, {104, 52})})) << "two ranges";
  EXPECT_FALSE(has_note({before, ranges_of("b", 200, {104, 52, 20.7})}, true));
}

/// Five runs, sampled each millisecond, in which `encode` takes its own time and `other` half a
/// second.
Side functions_of(const std::string& label,
                  const std::vector<double>& encode_ns,
                  double small_ns = 1e6) {
  Side side{label, {}};
  for (const double self_ns : encode_ns) {
    Digest& run = side.runs.emplace_back();
    run.run.duration_ns = 1e9;
    DigestRegion& region = run.regions.emplace_back();
    region.path = {"step"};
    region.occurrences = 1;
    region.values["wall_ns.inclusive"] = region.values["wall_ns.median"] = 1e9;
    region.cpu_interval_ns = 1e6;
    region.functions = {{"encode", "", "/opt/app", false, self_ns},
                        {"other", "", "/opt/app", false, 500e6},
                        {"small", "", "/opt/app", false, small_ns}};
  }
  return side;
}

const model::ComparedFunction& function(const model::Comparison& comparison,
                                        const std::string& name) {
  for (const auto& function : comparison.regions.front().functions)
    if (function.name == name)
      return function;
  throw std::runtime_error("no such function");
}

TEST(FunctionsByRuns, WhatDiffersFromRunToRunIsNoise) {
  const Side before = functions_of("a", {300e6, 302e6, 301e6, 299e6, 300e6});
  const auto slower = compare(
      std::vector<Side>{before, functions_of("b", {380e6, 382e6, 381e6, 379e6, 380e6}, 8e6)});
  ASSERT_TRUE(slower);
  const auto& encode = function(*slower, "encode");
  EXPECT_EQ(encode.self.changes[0].standing, Standing::kMore);
  EXPECT_NEAR(*encode.self.changes[0].ratio, 380.0 / 300, 0.01);
  EXPECT_LE(*encode.self.changes[0].p, 0.05);
  EXPECT_EQ(slower->regions.front().functions.front().name, "encode");
  EXPECT_EQ(function(*slower, "small").self.changes[0].standing, Standing::kUntested);
  // As far apart on the whole, and no more than runs of one side are.
  const auto noisy =
      compare(std::vector<Side>{functions_of("a", {200e6, 500e6, 300e6, 250e6, 450e6}),
                                functions_of("b", {480e6, 260e6, 520e6, 470e6, 350e6})});
  ASSERT_TRUE(noisy);
  EXPECT_EQ(function(*noisy, "encode").self.changes[0].standing, Standing::kNoise);
}

TEST(FunctionsByRuns, TheGateFailsASlowerFunctionOfAnUnchangedRange) {
  const Side before = functions_of("a", {300e6, 302e6, 301e6, 299e6, 300e6});
  const auto judged = [&](const Side& after) {
    auto comparison = compare(std::vector<Side>{before, after});
    EXPECT_TRUE(comparison);
    return *gate(std::move(*comparison), {.max_regression = 0.05}, false);
  };
  const model::Gate slower = judged(functions_of("b", {380e6, 382e6, 381e6, 379e6, 380e6}));
  EXPECT_EQ(slower.verdict, GateVerdict::kRegressed);
  ASSERT_FALSE(slower.checks.empty());
  const model::GateCheck& first = slower.checks.front();
  ASSERT_TRUE(first.function);
  EXPECT_EQ(region_of(slower, first).functions[*first.function].name, "encode");
  EXPECT_EQ(value_of(slower, first).tag, "self_ns");
  // Though the noise of the range itself hides the limit.
  Side noisy = functions_of("b", {380e6, 382e6, 381e6, 379e6, 380e6});
  for (std::size_t i = 0; i < noisy.runs.size(); ++i)
    noisy.runs[i].regions.front().values["wall_ns.median"] =
        0.9e9 + 0.08e9 * static_cast<double>(i);
  EXPECT_EQ(judged(noisy).verdict, GateVerdict::kRegressed);
  EXPECT_EQ(judged(functions_of("b", {301e6, 299e6, 300e6, 302e6, 300e6})).verdict,
            GateVerdict::kPassed);
}

/// Five runs of a program without ranges, in which `dedup` of quad.py takes so much CPU time,
/// nearly all of it in the interpreter's library.
Side runs_of_program(const std::string& label, const std::vector<double>& dedup_ns) {
  Side side{label, {}};
  for (const double cpu_ns : dedup_ns) {
    Digest& run = side.runs.emplace_back();
    run.run.duration_ns = 500e6 + cpu_ns;
    DigestRegion program;
    program.path = {"program"};
    program.occurrences = 1;
    for (const char* tag : {"wall_ns.inclusive", "wall_ns.median", "wall_ns.min"})
      program.values[tag] = run.run.duration_ns;
    program.cpu_interval_ns = 1e6;
    program.functions = {{"list_contains", "", "/usr/lib/libpython3.11.so", false, cpu_ns},
                         {"dedup", "/home/u/quad.py", "", true, 1e6}};
    program.own_functions = {{{"dedup", "/home/u/quad.py", "", true, cpu_ns + 1e6, 2},
                              {"load", "/home/u/quad.py", "", true, 50e6, 9}}};
    run.regions = {program};
    model::RunNumbers whole_run;
    whole_run.wall_ns = run.run.duration_ns;
    model::add_run_rows(std::move(whole_run), {}, run);
  }
  return side;
}

TEST(FunctionsByRuns, TheProgramsOwnFunctionGrewWithTheLibrariesThatItCalls) {
  const Side before = runs_of_program("a", {100e6, 102e6, 101e6, 99e6, 100e6});
  const Side after = runs_of_program("b", {380e6, 382e6, 381e6, 379e6, 380e6});
  auto comparison = compare(std::vector<Side>{before, after});
  ASSERT_TRUE(comparison);
  // One program is one row with one value: its wall time.
  ASSERT_EQ(comparison->regions.size(), 1u);
  const model::ComparedRegion& program = comparison->regions.front();
  ASSERT_EQ(program.values.size(), 1u);
  EXPECT_EQ(program.values.front().tag, "wall_ns.median");
  ASSERT_EQ(program.own_functions.size(), 2u);
  const model::ComparedFunction& dedup = program.own_functions.front();
  EXPECT_EQ(dedup.place, (model::CodePlace{"dedup", "/home/u/quad.py", 2}));
  EXPECT_EQ(dedup.self.changes[0].standing, Standing::kMore);
  EXPECT_NEAR(*dedup.self.changes[0].ratio, 381.0 / 101, 0.02);
  EXPECT_EQ(program.own_functions[1].self.changes[0].standing, Standing::kNoise);

  const auto judged = gate(std::move(*comparison), {.max_regression = 0.05}, false);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->verdict, GateVerdict::kRegressed);
  std::vector<std::string> regressed;
  for (const model::GateCheck& check : judged->checks)
    if (const auto* function = function_of(*judged, check))
      regressed.push_back(function->name);
  EXPECT_EQ(regressed, (std::vector<std::string>{"dedup (quad.py)"}));
}

TEST(FunctionsByRuns, OwnFunctionsThatASideDoesNotKnowAreNotCompared) {
  Side before = runs_of_program("a", {100e6, 102e6, 101e6, 99e6, 100e6});
  for (Digest& run : before.runs)
    run.regions.front().own_functions.reset();
  const Side after = runs_of_program("b", {380e6, 382e6, 381e6, 379e6, 380e6});
  const auto comparison = compare(std::vector<Side>{before, after});
  ASSERT_TRUE(comparison);
  EXPECT_TRUE(comparison->regions.front().own_functions.empty());
  EXPECT_FALSE(comparison->regions.front().functions.empty());
}

}  // namespace sequence_test
}  // namespace rangescope::analyze
