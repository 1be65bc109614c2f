// Lines of cures, and what they save: of small programs whose times are known.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/cures/catalog.hpp"
#include "analyze/cures/cures.hpp"
#include "analyze/cures/programs_test.hpp"

namespace rangescope::analyze::cures {
namespace cure_savings_test {

using namespace testing;

/// Of a step that launches 16 tiny kernels in 4 us each.
Steps launch_bound() {
  return Steps::run([](Steps& s) {
    repeat(8, [&] {
      s.kernel(kProduct, 2 * kUs, kSmall);
      s.kernel(kTanh, 2 * kUs, kSmall);
    });
  });
}

TEST(CureLines, ALineSaysWhatToTryAndWhatTheLoopTakesThen) {
  const Steps steps = launch_bound();
  model::Report report;
  report.run.duration_ns = 100e6;
  add_cures(steps.session(), reference(), "", report);
  ASSERT_FALSE(report.verdict.empty());
  const model::Verdict& line = report.verdict.front();
  EXPECT_EQ(line.cure, "cuda_graph");
  EXPECT_EQ(line.path, "loop > step");
  EXPECT_EQ(line.attempt, cure_of("cuda_graph").attempt);
  EXPECT_LT(line.after->after_ns, 0.7 * line.after->before_ns);
  EXPECT_DOUBLE_EQ(*line.saves_ns, line.after->before_ns - line.after->after_ns);
  EXPECT_LE(*line.saves_low_ns, *line.saves_ns);
  EXPECT_GE(*line.saves_high_ns, *line.saves_ns);
}

TEST(CureLines, TheSavingsOfAllLinesAreThoseOfAllChangesTogether) {
  const Steps steps = Steps::run([](Steps& s) {
    s.compute_in("make_batch", 4 * kMs);
    s.pageable_copy(16 << 20, 2 * kMs);
    s.kernel(kFp32Product, kMs, 512);
    s.wait();
  });
  model::Report report;
  report.run.duration_ns = 100e6;
  add_cures(steps.session(), reference(), "", report);
  ASSERT_GE(report.verdict.size(), 2u);
  double together_ns = 0;
  for (std::size_t line = 0; line < report.verdict.size(); ++line) {
    together_ns += *report.verdict[line].saves_ns;
    if (line == 0)
      continue;
    EXPECT_DOUBLE_EQ(report.verdict[line].after->before_ns,
                     report.verdict[line - 1].after->after_ns);
  }
  EXPECT_NEAR(together_ns,
              report.verdict.front().after->before_ns - report.verdict.back().after->after_ns,
              1);
}

TEST(CureLines, NoneWithoutTheWorkOfTheGpu) {
  Steps steps = launch_bound();
  steps.session().unrecorded.kernels = true;
  model::Report report;
  add_cures(steps.session(), reference(), "", report);
  EXPECT_TRUE(report.verdict.empty());
}

TEST(CureSavings, WhatAnotherThreadLaunchesForAStepIsPartOfIt) {
  const auto train = [](Steps& s) {
    repeat(3, [&] { s.kernel(kFp32Product, kMs, 512); });
    s.on_other_thread([&] { repeat(6, [&] { s.kernel(kFp32Product, kMs, 512); }); });
    s.wait();
  };
  const auto infer = [](Steps& s) {
    repeat(9, [&] { s.kernel(kFp32Product, kMs, 512); });
    s.wait();
  };
  const double of_training = saved_share(Steps::run(train), "fp32_products");
  EXPECT_GT(of_training, 0.7);
  EXPECT_NEAR(of_training, saved_share(Steps::run(infer), "fp32_products"), 0.1);
}

TEST(CureSavings, AStepOfTwoThreadsIsOneGraph) {
  const Steps steps = Steps::run([](Steps& s) {
    repeat(8, [&] { s.kernel(kProduct, 2 * kUs, kSmall); });
    s.on_other_thread([&] {
      repeat(20, [&] {
        s.kernel(kProduct, 2 * kUs, kSmall);
        s.kernel(kTanh, 2 * kUs, kSmall);
      });
    });
    repeat(4, [&] { s.kernel(kProduct, 2 * kUs, kSmall); });
  });
  EXPECT_GT(saved_share(steps, "cuda_graph"), 0.4);
}

TEST(CureSavings, AShortCopyOnTheGpuIsNoWait) {
  const Steps steps = Steps::run([](Steps& s) {
    repeat(8, [&] { s.kernel(kProduct, 2 * kUs, kSmall); });
    s.compute(50 * kUs);
    s.short_copy_on_gpu(8);
    repeat(8, [&] { s.kernel(kTanh, 2 * kUs, kSmall); });
  });
  EXPECT_TRUE(cures_in(steps).contains("cuda_graph"));
}

TEST(CureSavings, AnOptimizerParameterByParameterIsNoGraph) {
  const Steps steps = Steps::run([](Steps& s) {
    repeat(8, [&] { s.kernel(kProduct, 2 * kUs, kSmall); });
    repeat(32, [&] { s.kernel(kAdam, 2 * kUs, kSmall); });
  });
  const std::set<std::string> cures = cures_in(steps);
  EXPECT_TRUE(cures.contains("optimizer_one_by_one"));
  EXPECT_FALSE(cures.contains("cuda_graph"));
}

TEST(CureSavings, AFusedChainReadsEachOfItsInputs) {
  const auto chain_of = [](const char* kernel) {
    return Steps::run([kernel](Steps& s) {
      repeat(6, [&] { s.kernel(kernel, kMs, kLarge); });
      s.wait();
    });
  };
  EXPECT_NEAR(saved_share(chain_of(kTanh), "pointwise_chain"), 1 - 1 / 6.0, 0.02);
  // Three tensors a kernel: of one to seven inputs four are expected, and the result.
  EXPECT_NEAR(saved_share(chain_of(kAdd), "pointwise_chain"), 1 - 5 / 18.0, 0.02);
}

TEST(CureSavings, AttentionInTheBackwardPassGoesToo) {
  const Steps steps = Steps::run([](Steps& s) {
    s.kernel(kProduct, 100 * kUs, 132);
    s.kernel(kTanh, 180 * kUs, kLarge);
    s.kernel(kSoftmax, 230 * kUs, kLarge);
    s.kernel(kProduct, 100 * kUs, 132);
    s.on_other_thread([&] {
      repeat(2, [&] { s.kernel(kProduct, 100 * kUs, 132); });
      s.kernel(kSoftmaxGradient, 320 * kUs, kLarge);
      s.kernel(kTanh, 180 * kUs, kLarge);
      repeat(2, [&] { s.kernel(kProduct, 100 * kUs, 132); });
    });
    s.wait();
  });
  EXPECT_GT(saved_share(steps, "attention_by_hand"), 0.55);
}

TEST(CureSavings, AGpuThatGetsSlowerIsNoGrowingCache) {
  const auto decode = [](double product_grows) {
    return Steps::run([=](Steps& s) {
      const auto grown_ns = [&](double share) {
        return static_cast<std::int64_t>(kMs * (1 + share * s.step() / 8));
      };
      s.kernel(kProduct, grown_ns(product_grows), 512);
      s.kernel(kCat, grown_ns(0.2), 512);
      s.wait();
    });
  };
  EXPECT_TRUE(cures_in(decode(0)).contains("grown_cache"));
  EXPECT_FALSE(cures_in(decode(0.2)).contains("grown_cache"));
}

TEST(CureSavings, AllocationsOfTheFirstStepAreStartUp) {
  const auto allocates = [](bool at_every_step) {
    return Steps::run([=](Steps& s) {
      const int calls = at_every_step ? 1 : 8 * (s.step() == 0 ? 1 : 0);
      repeat(calls, [&] { s.call("cudaMalloc", 100 * kUs); });
      s.kernel(kProduct, 50 * kUs, 512);
      s.wait();
    });
  };
  EXPECT_TRUE(cures_in(allocates(true)).contains("allocations"));
  EXPECT_FALSE(cures_in(allocates(false)).contains("allocations"));
}

TEST(CureSavings, BatchNormsOfFewChannelsAreFasterInChannelsLast) {
  const auto network = [](std::uint32_t channels) {
    return Steps::run([channels](Steps& s) {
      s.kernel(kToNhwc, 50 * kUs, 512);
      s.kernel(kTanh, 30 * kUs, kLarge);
      s.kernel(kBatchNorm, 700 * kUs, channels);
      s.wait();
    });
  };
  EXPECT_GT(saved_share(network(64), "layout_conversions"), 0.6);
  EXPECT_LT(saved_share(network(512), "layout_conversions"), 0.2);
}

TEST(CureSavings, TheProductOfAConvolutionByFftIsOfTheConvolution) {
  const Steps steps = Steps::run([](Steps& s) {
    s.kernel("void fft2d_r2c_32x32<float, false, 0u, false>(float2*, float const*)", kMs, 512);
    s.kernel(kFp32Product, kMs, 512);
    s.kernel("void fft2d_c2r_32x32<float, false, false, 0u>(float*, float2 const*)", kMs, 512);
    s.wait();
  });
  EXPECT_FALSE(cures_in(steps).contains("fp32_products"));
  EXPECT_NEAR(saved_share(steps, "fp32_convolutions"), 0.6, 0.02);
}

TEST(CureSavings, ACheckpointsCopiesToTheCpuAreWrittenAsideToo) {
  const Steps steps = Steps::run([](Steps& s) {
    s.kernel(kProduct, kMs, 512);
    s.wait();
    if (s.step() % 2 == 0)
      return;
    s.compute_in("save", 2 * kMs, "/lib/torch/serialization.py");
    s.copy(model::CopyKind::kDeviceToHost, 64 << 20, 3 * kMs);
    s.wait();
    s.compute_in("save", 2 * kMs, "/lib/torch/serialization.py");
  });
  // Eight steps of 1 ms and four checkpoints of 7 ms; the first is start-up but for its last 2 ms.
  EXPECT_NEAR(saved_share(steps, "checkpoints_in_loop"), 23 / 36.0, 0.03);
}

TEST(CureSavings, GradientsThatAnOptimizerTakesAreNoWaste) {
  const auto cures_of_training = [](std::uint32_t optimizer_blocks) {
    return cures_in(Steps::run([=](Steps& s) {
      backward_pass(s, {.adds_others = true});
      s.kernel(
          "void multi_tensor_apply_kernel<TensorListMetadata<2> >()", 9 * kUs, optimizer_blocks);
    }));
  };
  EXPECT_TRUE(cures_of_training(1).contains("frozen_gradients"));
  EXPECT_FALSE(cures_of_training(4 * kLarge).contains("frozen_gradients"));
}

TEST(CureSavings, ASecondLossAddsToGradientsOfTheFirst) {
  const Steps two_losses = Steps::run([](Steps& s) {
    backward_pass(s, {});
    backward_pass(s, {.adds_others = true});
  });
  EXPECT_FALSE(cures_in(two_losses).contains("frozen_gradients"));
}

TEST(CureSavings, BackwardPassesOfUntrainedModulesGo) {
  const auto training = [](bool adds) {
    return Steps::run([=](Steps& s) {
      repeat(4, [&] { s.kernel(kProduct, 50 * kUs, 512); });
      backward_pass(s, {.adds_others = adds});
      s.wait();
    });
  };
  // In six steps of eight 222 of 522 us of kernels; of the threads' time 64 us of launches.
  EXPECT_NEAR(saved_share(training(true), "frozen_gradients"), 0.32, 0.05);
  EXPECT_EQ(saved_share(training(false), "frozen_gradients"), 0);
}

TEST(CureSavings, AThreadDoesNothingMoreForABackwardPassThatGoes) {
  const Steps pausing = Steps::run([](Steps& s) {
    backward_pass(s, {.adds_others = true, .pause_of_others_ns = 300 * kUs});
    s.wait();
  });
  // In six steps of eight 0.66 of the 0.88 ms that a step takes.
  EXPECT_NEAR(saved_share(pausing, "frozen_gradients"), 0.56, 0.05);
}

TEST(CureSavings, LayersOfFewerRowsTakeTheirShare) {
  const auto training = [](std::uint64_t gathered_bytes) {
    return Steps::run([=](Steps& s) { layers_of_gathered_rows(s, gathered_bytes); });
  };
  // Of 3.4 ms a step 1.8 are layers, for 15 times as many rows as needed, or twice.
  EXPECT_NEAR(saved_share(training(15 * kFewRows_bytes), "gathered_rows"), 0.50, 0.04);
  EXPECT_NEAR(saved_share(training(2 * kFewRows_bytes), "gathered_rows"), 0.27, 0.04);
}

TEST(CureSavings, WhatIsBetweenLayersAndASelectionUsesTheirRows) {
  const Steps used_elsewhere =
      Steps::run([](Steps& s) { layers_of_gathered_rows(s, kManyRows_bytes, true); });
  EXPECT_FALSE(cures_in(used_elsewhere).contains("gathered_rows"));
  const Steps selects_of_another =
      Steps::run([](Steps& s) { layer_before_selection(s, kFewRows_bytes, false); });
  EXPECT_FALSE(cures_in(selects_of_another).contains("rows_selected_later"));
}

TEST(CureSavings, NobodyKnowsHowManyRowsThereAreWithoutAllocations) {
  Steps steps = Steps::run([](Steps& s) { layers_of_gathered_rows(s, kManyRows_bytes); });
  EXPECT_TRUE(cures_in(steps).contains("gathered_rows"));
  steps.session().allocators = {};
  EXPECT_FALSE(cures_in(steps).contains("gathered_rows"));
}

TEST(CureSavings, SamplesThatAreStackedMayBeOneBatch) {
  const auto training = [](bool flips, std::uint32_t stacked) {
    return Steps::run([=](Steps& s) { augment_samples(s, flips, stacked); });
  };
  // Of 2.1 ms a step a thread works 1.9 for the samples, all but one of which go.
  EXPECT_NEAR(saved_share(training(true, 16), "loop_over_samples"), 0.92, 0.02);
  // Steps of a recurrence may look like this.
  EXPECT_EQ(saved_share(training(false, 16), "loop_over_samples"), 0);
  // Results of something else.
  EXPECT_EQ(saved_share(training(true, 17), "loop_over_samples"), 0);
  EXPECT_EQ(saved_share(training(true, 2), "loop_over_samples"), 0);
}

TEST(CureSavings, ASparseGradientLeavesTheRowsOfABatch) {
  const Steps steps = Steps::run([](Steps& s) { train_embedding(s, 8192); });
  // Zeros of 150 us, and of an optimizer's 360 us all but 12 and 1.6 of 78.6 million elements.
  EXPECT_NEAR(saved_share(steps, "dense_gradients"), 0.76, 0.05);
}

TEST(CureSavings, OfAnOptimizerThatIsKnownNothingElseIsSparse) {
  const auto training = [](const char* phase) {
    return Steps::run([=](Steps& s) {
      s.in_module("Model", [&] { s.kernel(kProduct, 50 * kUs, 512); });
      s.in_module(phase, [&] { train_embedding(s, 8192); });
    });
  };
  EXPECT_TRUE(cures_in(training("optimizer step")).contains("dense_gradients"));
  EXPECT_FALSE(cures_in(training("AverageOfWeights")).contains("dense_gradients"));
}

TEST(CureSavings, AGradientThatIsAddedToADenseOneIsNotSparse) {
  const auto training = [](std::uint32_t added_blocks) {
    return Steps::run([=](Steps& s) {
      s.kernel(kAdd, 450 * kUs, added_blocks);
      train_embedding(s, 8192);
    });
  };
  EXPECT_TRUE(cures_in(training(kLarge / 2)).contains("dense_gradients"));
  EXPECT_FALSE(cures_in(training(kLarge)).contains("dense_gradients"));
}

TEST(CureSavings, BatchesInFloat64AreMadeOfTwiceTheBytes) {
  const auto prepares = [](const char* loop) {
    return Steps::run([=](Steps& s) {
      s.compute_in(loop, 8 * kMs);
      s.pageable_copy(48 << 20, kMs);
      s.kernel(kDoubleMul, 100 * kUs, kLarge);
      s.wait();
    });
  };
  const auto left_share = [](const Steps& steps) {
    const model::Peaks peaks = h100();
    const Recording recording(steps.session(), {&peaks, 0, replay_costs()});
    for (const Candidate& candidate : candidates_of(recording)) {
      if (candidate.cure != "double_precision")
        continue;
      const replay::Graph& graph = recording.graph();
      const replay::Graph changed = apply(candidate.remedy, graph, graph, 0.5);
      const replay::Times times = replay::replay(changed);
      const replay::ReplayedClock clock(changed, times);
      return replay::compare(clock, recording.loop()).replayed_ns / recording.loop_ns();
    }
    return 1.0;
  };
  EXPECT_NEAR(left_share(prepares("DOUBLE_multiply_AVX2")), 0.5, 0.02);
  // Without such loops only the copy and the kernel take less.
  EXPECT_NEAR(left_share(prepares("FLOAT_multiply_AVX2")), 1 - 0.55 / 9.1, 0.02);
}

TEST(CureSavings, BatchesThatKeepAllCpusBusyMayNotBeMadeMoreAtOnce) {
  const auto low_share = [](int other_threads) {
    Steps steps = Steps::run([](Steps& s) {
      s.compute_in("make_batch", 8 * kMs);
      s.pageable_copy(16 << 20, 2 * kMs);
      s.wait();
    });
    model::CpuProfile& cpu = steps.session().cpu;
    const std::vector<model::CpuSample> own = cpu.samples;
    for (int other = 0; other < other_threads; ++other) {
      cpu.threads.push_back({1, static_cast<std::uint32_t>(100 + other)});
      for (model::CpuSample sample : own) {
        sample.thread = static_cast<std::uint32_t>(cpu.threads.size() - 1);
        cpu.samples.push_back(sample);
      }
    }
    model::Report report;
    report.run.duration_ns = 1e9;
    add_cures(steps.session(), reference(), "", report);
    const model::Verdict& line = report.verdict.front();
    EXPECT_EQ(line.cure, "batches_on_main_thread");
    return *line.saves_low_ns / line.after->before_ns;
  };
  EXPECT_GT(low_share(0), 0.5);
  EXPECT_LT(low_share(7), 0.3);  // one batch at a time
}

TEST(CureSavings, TheSizeOfASelectionIsNoValueThatIsRead) {
  const auto reads = [](bool selects) {
    return Steps::run([=](Steps& s) {
      s.kernel(kSelect, 3 * kUs, kSmall);
      s.copy(kDeviceToHost, 4, kUs);
      s.wait();
      s.kernel(selects ? kSelect : kProduct, 90 * kUs, kSmall);
    });
  };
  EXPECT_FALSE(cures_in(reads(true)).contains("values_read"));
  EXPECT_TRUE(cures_in(reads(false)).contains("values_read"));
}

TEST(CureSavings, GradientsThatAreClippedByTheirNormAreNotSparse) {
  const Steps steps = Steps::run([](Steps& s) {
    train_embedding(s, 8192);
    s.kernel("void multi_tensor_apply_kernel<LpNormFunctor<float> >()", 60 * kUs, 300);
  });
  EXPECT_FALSE(cures_in(steps).contains("dense_gradients"));
}

TEST(CureSavings, AutocastCastsWeightsAnewInInference) {
  const auto layers = [](bool trains) {
    return cures_in(Steps::run([=](Steps& s) {
      s.kernel(kCast, 2 * kUs, 1);
      s.kernel(kCast, 9 * kUs, 512);
      s.kernel(kCast, 9 * kUs, 900);
      s.kernel(kProduct, 90 * kUs, kLarge);
      s.kernel(kTanh, 9 * kUs, 900);
      if (trains)
        s.on_other_thread([&] { s.kernel(kProduct, 90 * kUs, kLarge); });
    }));
  };
  EXPECT_TRUE(layers(false).contains("weight_casts"));
  EXPECT_FALSE(layers(true).contains("weight_casts"));
}

TEST(CureSavings, NothingIsFasterThanTheWorkOfTheGpu) {
  Steps asynchronous = Steps::run([](Steps& s) {
    repeat(10, [&] {
      s.kernel(kProduct, 6 * kUs, kLarge);
      s.kernel(kTanh, 6 * kUs, kLarge);
    });
  });
  // Without the loop's range the wait behind the last step is not part of the steps.
  std::vector<model::Range>& ranges = asynchronous.session().ranges;
  ranges.erase(ranges.begin());
  for (model::Range& range : ranges)
    range.module = true;
  // 136 us of launches, 120 us of kernels: without the bound 92 %.
  EXPECT_NEAR(saved_share(asynchronous, "cuda_graph"), 0.12, 0.03);
}

}  // namespace cure_savings_test
}  // namespace rangescope::analyze::cures
