#include "analyze/compare/compare.hpp"

#include <gtest/gtest.h>

#include <random>

#include "analyze/compare/digest.hpp"
#include "analyze/names/kernel_labels.hpp"
#include "model/kernel_name.hpp"

namespace rangescope::analyze {
namespace compare_test {

using model::Digest;
using model::DigestRegion;
using model::Side;
using model::Standing;

DigestRegion region(std::vector<std::string> path,
                    std::int64_t occurrences,
                    double wall,
                    double busy = 0) {
  DigestRegion one;
  one.path = std::move(path);
  one.occurrences = occurrences;
  one.values["wall_ns.median"] = wall;
  one.values["wall_ns.inclusive"] = wall * static_cast<double>(occurrences);
  if (busy > 0)
    one.values["gpu.busy_ns"] = busy * static_cast<double>(occurrences);
  return one;
}

/// Runs of one program: step > {load, mlp}; times vary by one percent.
Side side(const std::string& label,
          std::size_t runs,
          double mlp = 100,
          unsigned seed = 1,
          const std::string& name = "mlp") {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1, 0.01);
  Side out{label, {}};
  for (std::size_t r = 0; r < runs; ++r) {
    Digest run;
    run.run.id = label + std::to_string(r);
    run.run.command = {"./app"};
    run.regions = {region({"step"}, 50, (1000 + mlp) * noise(random)),
                   region({"step", "load"}, 50, 1000 * noise(random)),
                   region({"step", name}, 50, mlp * noise(random))};
    for (DigestRegion& one : run.regions) {
      for (int i = 0; i < 50; ++i)
        one.wall_ns.push_back(one.values["wall_ns.median"] * noise(random));
    }
    out.runs.push_back(std::move(run));
  }
  return out;
}

const model::ComparedRegion& find(const model::Comparison& comparison,
                                  const std::vector<std::string>& path) {
  for (const auto& one : comparison.regions) {
    if (one.path == path)
      return one;
  }
  throw std::runtime_error("no such region");
}

TEST(Compare, FindsWhatChangedByRepeatedRuns) {
  const std::vector<Side> sides = {side("a", 5), side("b", 5, 120, 2)};
  const auto done = compare(sides);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(done->noise, "runs");
  EXPECT_EQ(done->tests, 3u);
  EXPECT_EQ(done->regions[0].path,
            (std::vector<std::string>{"step", "mlp"}));  // what stands out comes first
  const auto& mlp = find(*done, {"step", "mlp"}).values[0];
  EXPECT_EQ(mlp.tag, "wall_ns.median");
  EXPECT_EQ(mlp.changes[0].standing, Standing::kMore);
  EXPECT_NEAR(*mlp.changes[0].ratio, 1.2, 0.02);
  EXPECT_LT(*mlp.changes[0].low, 1.2);
  EXPECT_GT(*mlp.changes[0].high, 1.2);
  EXPECT_LE(*mlp.changes[0].p, 0.05);
  EXPECT_EQ(find(*done, {"step", "load"}).values[0].changes[0].standing, Standing::kNoise);
  EXPECT_TRUE(done->environment.empty());
}

TEST(Compare, ClocksThatExplainAChangeAreTold) {
  const auto clocked = [](double mlp, double clock, double limited, unsigned seed) {
    Side out = side(seed == 1 ? "a" : "b", 5, mlp, seed);
    for (Digest& run : out.runs)
      for (DigestRegion& one : run.regions) {
        one.values["metrics.sm_clock"] = clock;
        one.values["metrics.clock_limited"] = limited;
      }
    return out;
  };
  const auto notes = [](const Side& a, const Side& b) {
    const auto done = compare(std::vector<Side>{a, b});
    EXPECT_TRUE(done);
    return done ? done->notes : std::vector<std::string>{};
  };
  const Side fast = clocked(100, 1.98e9, 0, 1);
  const auto slow = notes(fast, clocked(140, 1.41e9, 0.6, 2));
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_TRUE(slow[0].starts_with("b ran at other clocks than a: in 'step > mlp', which took +"))
      << slow[0];
  EXPECT_NE(slow[0].find("SM clock 1.410 GHz instead of 1.980 GHz, clocks throttled by power or "
                         "heat for 60.0 % of the time"),
            std::string::npos)
      << slow[0];
  EXPECT_EQ(notes(fast, clocked(140, 1.97e9, 0.05, 2)).size(), 0u) << "alike";
  EXPECT_EQ(notes(fast, clocked(140, 2.4e9, 0, 2)).size(), 0u)
      << "faster clocks do not make it slower";
  EXPECT_EQ(notes(fast, clocked(300, 1.90e9, 0, 2)).size(), 0u) << "too little for what changed";
  EXPECT_EQ(notes(fast, clocked(100, 1.41e9, 0, 2)).size(), 0u) << "nothing changed";
  EXPECT_EQ(notes(fast, clocked(140, 1.98e9, 0.5, 2)).size(), 1u) << "throttling alone";
}

TEST(Compare, PeakMemoryIsComparedForTheWholeRunAndForRanges) {
  const auto with_memory = [](const std::string& label, double whole, double mlp) {
    Side out = side(label, 1);
    Digest& run = out.runs.front();
    run.regions[2].values["memory.peak_bytes"] = mlp;
    model::add_run_rows({.peak_memory_bytes = whole}, {}, run);
    return out;
  };
  const Side before = with_memory("a", 4096, 2048);
  const auto done = compare(std::vector<Side>{before, with_memory("b", 8192, 1024)});
  ASSERT_TRUE(done) << done.error().what;
  const auto memory_of = [&](const std::vector<std::string>& path) -> const model::ComparedValue& {
    const auto& values = find(*done, path).values;
    return *std::ranges::find(values, "memory.peak_bytes", &model::ComparedValue::tag);
  };
  const model::ComparedValue& whole = memory_of({"whole run"});
  EXPECT_EQ(whole.changes[0].standing, Standing::kMore);
  EXPECT_TRUE(whole.changes[0].is_exact);
  EXPECT_FALSE(whole.changes[0].p);
  EXPECT_EQ(whole.changes[0].ratio, 2);
  EXPECT_EQ(memory_of({"step", "mlp"}).changes[0].standing, Standing::kLess);
  EXPECT_FALSE(memory_of({"step", "load"}).values[0]) << "it has none";
  const model::ComparedRegion& row = find(*done, {"whole run"});
  EXPECT_FALSE(model::is_known(row.values[0])) << "it has no wall time";
  CompareOptions memory_alone;
  memory_alone.values = {"memory.peak_bytes"};
  const auto alone = compare(std::vector<Side>{before, before}, memory_alone);
  ASSERT_TRUE(alone);
  EXPECT_TRUE(alone->notes.empty()) << "nothing about noise";
  EXPECT_EQ(find(*alone, {"step", "mlp"}).values[0].changes[0].standing, Standing::kNoise);
  const auto times = compare(std::vector<Side>{side("a", 1), before});
  ASSERT_TRUE(times);
  EXPECT_TRUE(times->missing.empty()) << "a side without memory has no such row either";
}

TEST(Compare, ARangeNamedLikeARowOfTheRunIsNotThatRow) {
  Side with_range = side("a", 5), with_row = side("b", 5);
  for (Digest& run : with_range.runs)
    run.regions.push_back(region({"whole run"}, 50, 1000));
  for (Digest& run : with_row.runs)
    model::add_run_rows({.wall_ns = 1e6}, {}, run);
  const auto done = compare(std::vector<Side>{with_range, with_row});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_TRUE(std::ranges::all_of(done->regions, model::is_range<model::ComparedRegion>));
  ASSERT_EQ(done->missing.size(), 1u);
  EXPECT_TRUE(model::is_range(done->missing[0]));
  const auto rows = compare(std::vector<Side>{with_row, with_row});
  ASSERT_TRUE(rows);
  EXPECT_TRUE(find(*rows, {"whole run"}).is_whole_run);
}

TEST(Compare, SingleRunsAreComparedByTheirOccurrencesAndSaySo) {
  const std::vector<Side> sides = {side("a", 1), side("b", 1, 140, 2)};
  const auto done = compare(sides);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->noise, "occurrences");
  ASSERT_EQ(done->notes.size(), 1u);
  EXPECT_NE(done->notes[0].find("--repeat"), std::string::npos);
  EXPECT_EQ(find(*done, {"step", "mlp"}).values[0].changes[0].standing, Standing::kMore);
}

// Every stretch shows +16 %, the median of the whole run +17 %.
TEST(Compare, TheIntervalHoldsTheChange) {
  std::vector<Side> sides = {side("a", 1), side("b", 1)};
  for (std::size_t s = 0; s < 2; ++s) {
    DigestRegion& one = sides[s].runs[0].regions[2];
    one.wall_ns.assign(48, s == 0 ? 100 : 116);
    one.values["wall_ns.median"] = s == 0 ? 100 : 117;
  }
  const auto done = compare(sides);
  ASSERT_TRUE(done);
  const auto& change = find(*done, {"step", "mlp"}).values[0].changes[0];
  EXPECT_DOUBLE_EQ(*change.low, 1.16);
  EXPECT_DOUBLE_EQ(*change.high, 1.17);
}

TEST(Compare, TooFewOccurrencesAreNotTested) {
  std::vector<Side> sides = {side("a", 1), side("b", 1, 140, 2)};
  for (DigestRegion& one : sides[1].runs[0].regions)
    one.wall_ns.resize(15);
  const auto done = compare(sides);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->tests, 0u);
  const auto& change = find(*done, {"step", "mlp"}).values[0].changes[0];
  EXPECT_EQ(change.standing, Standing::kUntested);
  EXPECT_EQ(change.why, "15 instances in a run of b; a test takes 16");
  EXPECT_FALSE(change.p);
}

TEST(Compare, SumsArePerOccurrence) {
  std::vector<Side> sides = {side("a", 4), side("b", 4)};
  for (Digest& run : sides[1].runs) {
    for (DigestRegion& one : run.regions) {
      one.occurrences *= 2;
      one.values["wall_ns.inclusive"] *= 2;
    }
  }
  const auto done = compare(sides, {.values = {"wall_ns.inclusive"}});
  ASSERT_TRUE(done);
  const auto& step = find(*done, {"step"});
  EXPECT_TRUE(step.values[0].per_occurrence);
  EXPECT_NEAR(*step.values[0].changes[0].ratio, 1, 1e-9);
  EXPECT_EQ(*step.occurrences[1], 100);
  EXPECT_EQ(step.values[0].changes[0].standing, Standing::kNoise);
}

TEST(Compare, RenamesAreOfferedNotAssumed) {
  const std::vector<Side> sides = {side("a", 4), side("b", 4, 100, 2, "ffn")};
  const auto done = compare(sides);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->regions.size(), 2u);
  EXPECT_EQ(done->missing.size(), 2u);
  ASSERT_EQ(done->renames.size(), 1u);
  EXPECT_EQ(done->renames[0].from, "step > mlp");
  EXPECT_EQ(done->renames[0].to, "step > ffn");
  EXPECT_EQ(done->renames[0].reason, "both 50 times, times within a quarter");

  const auto joined = compare(sides, {.renames = {{"mlp", "ffn"}}});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->regions.size(), 3u);
  EXPECT_EQ(find(*joined, {"step", "ffn"}).renamed_from, "step > mlp");
  EXPECT_TRUE(joined->renames.empty());

  EXPECT_FALSE(compare(sides, {.renames = {{"mlp", "load"}}}));  // two ranges would be one
  const auto wrong = compare(sides, {.renames = {{"mpl", "ffn"}}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, base::Code::kUsage);
  EXPECT_NE(wrong.error().hint.find("mlp"), std::string::npos);
}

TEST(Compare, WhatDiffersAroundTheRunsComesOutHeavyFirst) {
  std::vector<Side> sides = {side("a", 1), side("b", 1)};
  sides[0].runs[0].devices = {"NVIDIA H100, 132 SMs"};
  sides[1].runs[0].devices = {"NVIDIA H200, 132 SMs"};
  sides[1].runs[0].run.command = {"./app", "--layers", "3"};
  sides[1].runs[0].run.environment = {
      {"env.CUDA_VISIBLE_DEVICES", "1"}, {"memory", "1 kB"}, {"gpu.0", "NVIDIA H200"}};
  const auto done = compare(sides);
  ASSERT_TRUE(done);
  ASSERT_EQ(done->environment.size(), 3u);
  EXPECT_EQ(done->environment[0].what, "GPU");
  EXPECT_TRUE(done->environment[0].heavy);
  EXPECT_EQ(done->environment[1].what, "arguments");
  EXPECT_EQ(done->environment[1].values, (std::vector<std::string>{"(none)", "--layers 3"}));
  EXPECT_EQ(done->environment[2].what, "env.CUDA_VISIBLE_DEVICES");
}

TEST(Compare, RefusesWhatCannotBeCompared) {
  const auto code = [](const std::vector<Side>& sides, const CompareOptions& options = {}) {
    const auto done = compare(sides, options);
    return done ? 0 : base::exit_code(done.error().code);
  };
  std::vector<Side> strangers = {side("a", 1), side("b", 1)};
  for (DigestRegion& one : strangers[1].runs[0].regions)
    one.path[0] = "train";
  EXPECT_EQ(code(strangers), 82);

  std::vector<Side> mixed = {side("a", 3), side("b", 3)};
  mixed[1].runs[2].run.command = {"./app", "--other"};
  EXPECT_EQ(code(mixed), 82);

  const std::vector<Side> plain = {side("a", 1), side("b", 1)};
  EXPECT_EQ(code(plain, {.values = {"gpu.busy_ns"}}), 82);  // no GPU work was recorded
  EXPECT_EQ(code(plain, {.values = {"wall_ns.medain"}}), 64);
  EXPECT_EQ(code(plain, {.regions = *model::parse_terms("nothing/")}), 80);
}

TEST(Compare, RegionsAndIncludes) {
  const std::vector<Side> sides = {side("a", 3), side("b", 3)};
  const auto alone = compare(sides, {.regions = *model::parse_terms("step/")});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->regions.size(), 1u);
  const auto inside =
      compare(sides, {.ranges = *model::RangeSelection::parse({"step/"}, {"mlp/"})});
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->regions.size(), 2u);
}

TEST(Compare, KernelsByNameWithTemplatesFolded) {
  std::vector<Side> sides = {side("a", 4), side("b", 4)};
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t r = 0; r < 4; ++r) {
      const double jitter = 1 + 0.001 * static_cast<double>(r);
      sides[s].runs[r].kernels = {
          {"reduce(int*)", 10, 1000 * jitter},
          {s == 0 ? "void gemm<64, 2>(float*)" : "void gemm<128, 3>(float*)",
           5,
           (s == 0 ? 500 : 800) * jitter}};
    }
  }
  const auto done = compare(sides);
  ASSERT_TRUE(done);
  ASSERT_EQ(done->kernels.size(), 2u);
  EXPECT_EQ(done->kernels[0].name, "gemm");
  EXPECT_TRUE(done->kernels[0].folded);
  EXPECT_NEAR(*done->kernels[0].per_call.changes[0].ratio, 1.6, 1e-9);
  EXPECT_EQ(done->kernels[0].total.changes[0].standing, Standing::kMore);
  EXPECT_EQ(done->kernels[1].name, "reduce(int*)");
  EXPECT_FALSE(done->kernels[1].folded);
}

TEST(FoldedKernel, LeavesWhatNamesTheFunction) {
  const std::pair<const char*, const char*> cases[] = {
      {"k(float*, int)", "k"},
      {"void ns::k<float, 4>(float*)", "ns::k"},
      {"void (anonymous namespace)::softmax_warp<float, (int)10>(T1*)", "softmax_warp"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, "
       "std::array<char*, 1ul> >(int)",
       "at::native::vectorized_elementwise_kernel"},
      {"main::{lambda(int)#2}::operator()(int) const", "main::{lambda}"},
      {"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"},
      {"_ZN3foo", "_ZN3foo"},
  };
  for (const auto& [name, folded] : cases)
    EXPECT_EQ(folded_kernel(name), folded) << name;
}

TEST(KernelLabels, NameWhatAWrapperRunsAndNoAnonymousNamespace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(T1::Params)",
       "Kernel2<cutlass_80_tensorop_s1688gemm>"},
      {"void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::FmhaFwdKernel<short> >(Args)",
       "kentry<FmhaFwdKernel>"},
      {"void at::apply<at::(anonymous namespace)::clamp_scalar(float)::{lambda()#1}>(int)",
       "apply<clamp_scalar>"},
      {"void at::apply<at::<unnamed>::fill_scalar(float)::[lambda() (instance 1)]>(int)",
       "apply<fill_scalar>"},
      {"scale(float*)", "scale"}};
  model::Report report;
  for (const auto& [name, label] : cases) {
    report.kernels.emplace_back().name = name;
    report.kernels.back().short_name = model::short_kernel_name(name);
  }
  tell_kernels_apart(report);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(report.kernels[i].label, cases[i].second);
}

}  // namespace compare_test
}  // namespace rangescope::analyze
