// Each cure: the smallest program where it applies, and one where it must not.
#include "analyze/cures/cures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>

#include "analyze/cures/catalog.hpp"
#include "analyze/cures/kernel_names_test.hpp"
#include "analyze/cures/steps_test.hpp"

namespace rangescope::analyze::cures {
namespace cures_test {

using testing::h100;
using testing::kMs;
using testing::kUs;
using testing::reference;
using testing::replay_costs;
using testing::Steps;
using namespace testing::kernels;
using enum model::CopyKind;

std::set<std::string> cures_in(const Steps& steps) {
  const model::Peaks peaks = h100();
  const Machine machine{&peaks, peaks.host_link_bytes_per_s, replay_costs()};
  const Recording recording(steps.session(), machine);
  std::set<std::string> cures;
  for (const Candidate& candidate : candidates_of(recording)) cures.emplace(candidate.cure);
  return cures;
}

void repeat(int times, const auto& action) {
  for (int time = 0; time < times; ++time) action();
}

void capture(Steps& s) {
  s.call("cuStreamBeginCapture_v2", 2 * kUs);
  s.compute(2 * kMs);
  s.call("cuStreamEndCapture", 40 * kUs);
  s.call("cuGraphInstantiateWithFlags", 300 * kUs);
}

/// Gradients of four parameters lists of a backward pass; of which modules they are added up.
struct Gradients {
  bool adds_first = false, adds_others = false;
  std::int64_t pause_of_others_ns = 0;  ///< what the thread does between two of their products
};

void backward_of_layer(Steps& s, const char* name, bool adds, std::int64_t pause_ns = 0) {
  s.in_module(name, [&] {
    s.kernel(kProduct, 50 * kUs, 512);
    s.compute(pause_ns);
    s.kernel(kProduct, 50 * kUs, 512);
    if (!adds) return;
    s.kernel(kAdd, 2 * kUs, kSmall);
    s.kernel(kAdd, 9 * kUs, kLarge);
  });
}

void backward_pass(Steps& s, Gradients gradients) {
  s.on_other_thread([&] {
    s.in_module("backward", [&] {
      backward_of_layer(s, "head (Linear)", gradients.adds_first);
      const std::int64_t pause_ns = gradients.pause_of_others_ns;
      backward_of_layer(s, "backbone.1 (Linear)", gradients.adds_others, pause_ns);
      backward_of_layer(s, "backbone.0 (Linear)", gradients.adds_others, pause_ns);
    });
  });
}

struct Program {
  const char* cure;
  void (*applies)(Steps&);
  void (*must_not)(Steps&);
};

void PrintTo(const Program& program, std::ostream* out) {
  *out << program.cure;
}

const Program kPrograms[] = {
    {"cuda_graph",
     [](Steps& s) {
       repeat(8, [&] {
         s.kernel(kProduct, 2 * kUs, kSmall);
         s.kernel(kTanh, 2 * kUs, kSmall);
       });
     },
     [](Steps& s) {
       repeat(8, [&] {
         s.kernel(kProduct, 2 * kUs, kSmall);
         s.kernel(kTanh, 2 * kUs, kSmall);
       });
       s.copy(kDeviceToHost, 4, kUs);
       s.wait();
     }},
    {"frozen_gradients", [](Steps& s) { backward_pass(s, {.adds_others = true}); },
     [](Steps& s) {  // of several batches
       backward_pass(s, {.adds_first = true, .adds_others = true});
     }},
    {"loop_over_samples",
     [](Steps& s) {
       const auto read = [&] {
         s.copy(kDeviceToHost, 8, kUs);
         s.wait();
       };
       repeat(8, [&] {
         read();
         s.kernel(kAdd, 2 * kUs, kSmall);
         repeat(3, read);  // two samples, one of them without a kernel
         s.kernel(kTanh, 2 * kUs, kSmall);
       });
     },
     [](Steps& s) {
       repeat(16, [&] {
         repeat(20, [&] { s.kernel(kProduct, 2 * kUs, kSmall); });
         s.copy(kDeviceToHost, 8, kUs);
         s.wait();
       });
     }},
    {"values_read",
     [](Steps& s) {
       s.kernel(kProduct, 9 * kUs, kSmall);
       s.copy(kDeviceToHost, 4, kUs);
       s.wait();
     },
     [](Steps& s) {
       s.kernel(kProduct, 9 * kUs, kSmall);
       s.copy(kDeviceToHost, 4, kUs);
     }},
    {"mask_indexing",
     [](Steps& s) {
       s.kernel(kSelect, 9 * kUs, kLarge);
       s.copy(kDeviceToHost, 4, kUs);
       s.wait();
       s.kernel(kIndex, 9 * kUs, kLarge);
     },
     [](Steps& s) {
       s.kernel(kSelect, 9 * kUs, kLarge);
       s.kernel(kIndex, 9 * kUs, kLarge);
     }},
    {"synchronizations",
     [](Steps& s) {
       s.kernel(kProduct, 9 * kUs, kSmall);
       s.wait();
       s.kernel(kProduct, 9 * kUs, kSmall);
     },
     [](Steps& s) {
       s.kernel(kProduct, 9 * kUs, kSmall);
       s.wait();
     }},
    {"small_copies",
     [](Steps& s) {
       repeat(8, [&] {
         s.copy(kHostToDevice, 256, kUs);
         s.wait();
       });
     },
     [](Steps& s) {
       repeat(7, [&] {
         s.copy(kHostToDevice, 256, kUs);
         s.wait();
       });
     }},
    {"pageable_copies", [](Steps& s) { s.pageable_copy(64 << 20, 8 * kMs); },
     [](Steps& s) { s.copy(kHostToDevice, 64 << 20, 8 * kMs); }},
    {"allocations",
     [](Steps& s) {
       s.call("cudaMalloc", 200 * kUs);
       s.kernel(kFill, 9 * kUs, kLarge);
     },
     [](Steps& s) {
       s.call("cudaMallocAsync", 2 * kUs);
       s.kernel(kFill, 9 * kUs, kLarge);
     }},
    {"pinned_allocations",
     [](Steps& s) {
       s.call("cudaHostAlloc", 200 * kUs);
       s.copy(kHostToDevice, 64 << 20, kMs);
     },
     [](Steps& s) {
       if (s.step() == 0) s.call("cudaHostAlloc", 200 * kUs);
       s.copy(kHostToDevice, 64 << 20, kMs);
     }},
    {"recompilations",
     [](Steps& s) {
       if (s.step() % 2 == 1)
         s.compute_in("_compile", 2 * kMs, "/lib/torch/_dynamo/convert_frame.py");
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     },
     [](Steps& s) {  // calls what was compiled
       s.compute_in("compile_wrapper", 2 * kMs, "/lib/torch/_dynamo/eval_frame.py");
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     }},
    {"graph_captures",
     [](Steps& s) {
       if (s.step() % 2 == 1) capture(s);
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     },
     [](Steps& s) {  // replays what it captured at its start
       if (s.step() < 2) capture(s);
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     }},
    {"profiler_in_loop",
     [](Steps& s) {
       if (s.step() % 2 == 1)
         s.compute_in("stop_trace", 2 * kMs, "/lib/torch/profiler/profiler.py");
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     },
     [](Steps& s) {  // profiles once, by a schedule
       constexpr const char* kSchedule[] = {"", "",           "", "prepare_trace", "start_trace",
                                            "", "stop_trace", ""};
       s.compute_in(kSchedule[s.step()], 2 * kMs, "/lib/torch/profiler/profiler.py");
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     }},
    {"checkpoints_in_loop",
     [](Steps& s) {
       if (s.step() % 2 == 1) s.compute_in("save", 2 * kMs, "/lib/torch/serialization.py");
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     },
     [](Steps& s) {  // reads its batches from files
       s.compute_in("load", 2 * kMs, "/lib/torch/serialization.py");
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     }},
    {"batches_on_main_thread",
     [](Steps& s) {
       s.compute(4 * kMs);
       s.pageable_copy(16 << 20, 2 * kMs);
     },
     [](Steps& s) {
       s.compute(4 * kMs);
       s.kernel(kProduct, 9 * kUs, kSmall);
     }},
    {"cpu_indexing",
     [](Steps& s) {
       s.compute_in("at::native::index_select_out_cpu_", 4 * kMs);
       s.pageable_copy(16 << 20, 2 * kMs);
     },
     [](Steps& s) {
       s.compute_in("make_batch", 4 * kMs);
       s.pageable_copy(16 << 20, 2 * kMs);
     }},
    {"pinned_in_loop",
     [](Steps& s) {
       s.compute_in("at::native::_pin_memory(at::Tensor const&)", 4 * kMs);
       s.copy(kHostToDevice, 16 << 20, 300 * kUs);
     },
     [](Steps& s) {
       s.compute_in("at::native::copy_(at::Tensor&, at::Tensor const&)", 4 * kMs);
       s.copy(kHostToDevice, 16 << 20, 300 * kUs);
     }},
    {"pointwise_chain",
     [](Steps& s) {
       s.kernel(kTanh, 90 * kUs, kLarge);
       s.kernel(kAdd, 90 * kUs, kLarge);
     },
     [](Steps& s) {
       s.kernel(kTanh, 90 * kUs, kLarge);
       s.kernel(kAdd, 9 * kUs, kSmall);
     }},
    {"attention_by_hand",
     [](Steps& s) {
       s.kernel(kProduct, 90 * kUs, kLarge);
       s.kernel(kTanh, 90 * kUs, kLarge);
       s.kernel(kSoftmax, 90 * kUs, kLarge);
       s.kernel(kProduct, 90 * kUs, kLarge);
     },
     [](Steps& s) {
       s.kernel(kProduct, 90 * kUs, kLarge);
       s.kernel(kSoftmax, 90 * kUs, kLarge);
     }},
    {"cross_entropy_by_hand",
     [](Steps& s) {
       s.kernel(kSoftmax, 90 * kUs, kLarge);
       s.kernel(kLog, 90 * kUs, kLarge);
       s.kernel(kScatter, 9 * kUs, kSmall);
     },
     [](Steps& s) {
       s.kernel(kSoftmax, 90 * kUs, kLarge);
       s.kernel(kTanh, 90 * kUs, kLarge);
     }},
    {"normalization_by_hand",
     [](Steps& s) {
       s.kernel(kTanh, 90 * kUs, kLarge);
       s.kernel(kMean, 50 * kUs, kSmall);
       s.kernel(kRoot, 2 * kUs, kSmall);
       s.kernel(kAdd, 90 * kUs, kLarge);
     },
     [](Steps& s) {
       s.kernel(kMean, 50 * kUs, kSmall);
       s.kernel(kAdd, 90 * kUs, kLarge);
     }},
    {"one_hot_product",
     [](Steps& s) {
       s.kernel(kFill, 39 * kUs, kLarge);
       s.kernel(kScatter, 3 * kUs, kSmall);
       s.kernel(kProduct, 47 * kUs, kLarge);
     },
     [](Steps& s) {
       s.kernel(kScatter, 3 * kUs, kSmall);
       s.kernel(kProduct, 47 * kUs, kLarge);
     }},
    {"layout_conversions",
     [](Steps& s) {
       s.kernel(kToNhwc, 39 * kUs, kLarge);
       s.kernel("sm90_xmma_fprop_implicit_gemm", 90 * kUs, kLarge);
     },
     [](Steps& s) { s.kernel("sm90_xmma_fprop_implicit_gemm", 90 * kUs, kLarge); }},
    {"weight_casts",
     [](Steps& s) {
       s.kernel(kCast, 39 * kUs, kLarge);
       s.kernel(kProduct, 90 * kUs, kLarge);
       s.kernel(kTanh, 2 * kUs, kSmall);
     },
     [](Steps& s) {  // an activation
       s.kernel(kTanh, 39 * kUs, kLarge);
       s.kernel(kCast, 39 * kUs, kLarge);
       s.kernel(kProduct, 90 * kUs, kLarge);
     }},
    {"transposed_copies",
     [](Steps& s) {
       s.kernel(kStrided, 39 * kUs, kLarge);
       s.kernel(kProduct, 90 * kUs, kLarge);
       s.kernel(kTanh, 2 * kUs, kSmall);
     },
     [](Steps& s) {
       s.kernel(kStrided, 39 * kUs, kLarge);
       s.kernel(kTanh, 39 * kUs, kLarge);
       s.kernel(kProduct, 90 * kUs, kLarge);
     }},
    {"grown_cache", [](Steps& s) { s.kernel(kCat, (20 + s.step()) * kUs, kLarge); },
     [](Steps& s) { s.kernel(kCat, 20 * kUs, kLarge); }},
    {"optimizer_one_by_one",
     [](Steps& s) {
       repeat(16, [&] {
         s.kernel(kTanh, 2 * kUs, kSmall);
         s.kernel(kAdam, 2 * kUs, kSmall);
       });
     },
     [](Steps& s) {
       s.kernel(kTanh, 90 * kUs, kLarge);
       s.kernel(kAdam, 90 * kUs, kLarge);
     }},
    {"zeroing_one_by_one", [](Steps& s) { repeat(16, [&] { s.kernel(kFill, 2 * kUs, kSmall); }); },
     [](Steps& s) { repeat(15, [&] { s.kernel(kFill, 2 * kUs, kSmall); }); }},
    {"clipping_one_by_one", [](Steps& s) { repeat(16, [&] { s.kernel(kNorm, 15 * kUs, 1); }); },
     [](Steps& s) { repeat(2, [&] { s.kernel(kNorm, 15 * kUs, 1); }); }},
    {"tensors_one_by_one", [](Steps& s) { repeat(16, [&] { s.kernel(kAdd, 2 * kUs, kSmall); }); },
     [](Steps& s) {
       repeat(16, [&] {
         s.kernel(kAdd, 2 * kUs, kSmall);
         s.kernel(kProduct, 2 * kUs, kSmall);
       });
     }},
    {"products_one_by_one",
     [](Steps& s) { repeat(16, [&] { s.kernel(kProduct, 2 * kUs, kSmall); }); },
     [](Steps& s) { repeat(16, [&] { s.kernel(kProduct, 40 * kUs, kLarge); }); }},
    {"fp32_products", [](Steps& s) { s.kernel(kFp32Product, kMs, 512); },
     [](Steps& s) { s.kernel(kProduct, kMs, 512); }},
    {"unaligned_products", [](Steps& s) { s.kernel(kUnaligned, kMs, 512); },
     [](Steps& s) { s.kernel(kProduct, kMs, 512); }},
    {"double_precision",
     [](Steps& s) {
       s.kernel(kDoubleMul, kMs, kLarge);
       s.kernel("sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize64x128x32", kMs, 512);
     },
     [](Steps& s) {  // a program of its own, and a kernel with an argument of type double
       s.kernel("void relax<double>(double*)", kMs, kLarge);
       s.kernel("void at::native::pow_kernel<float, float>(at::TensorIteratorBase&, double)", kMs,
                kLarge);
     }},
};

class EachCure : public ::testing::TestWithParam<Program> {};

TEST_P(EachCure, Applies) {
  EXPECT_TRUE(cures_in(Steps::run(GetParam().applies)).contains(GetParam().cure));
}

TEST_P(EachCure, MustNotApply) {
  EXPECT_FALSE(cures_in(Steps::run(GetParam().must_not)).contains(GetParam().cure));
}

INSTANTIATE_TEST_SUITE_P(Cures, EachCure, ::testing::ValuesIn(kPrograms),
                         [](const auto& program) { return std::string(program.param.cure); });

TEST(CureCatalog, EachHasItsWordsAndItsTests) {
  for (const Cure& cure : catalog()) {
    SCOPED_TRACE(std::string(cure.id));
    for (const std::string_view text :
         {cure.done, cure.attempt, cure.applies, cure.not_when, cure.reason, cure.source})
      EXPECT_FALSE(text.empty());
    EXPECT_TRUE(std::ranges::any_of(
        kPrograms, [&](const Program& program) { return program.cure == cure.id; }));
  }
}

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
    if (line == 0) continue;
    EXPECT_DOUBLE_EQ(report.verdict[line].after->before_ns,
                     report.verdict[line - 1].after->after_ns);
  }
  EXPECT_NEAR(together_ns,
              report.verdict.front().after->before_ns - report.verdict.back().after->after_ns, 1);
}

TEST(CureLines, NoneWithoutTheWorkOfTheGpu) {
  Steps steps = launch_bound();
  steps.session().unrecorded.kernels = true;
  model::Report report;
  add_cures(steps.session(), reference(), "", report);
  EXPECT_TRUE(report.verdict.empty());
}

/// What the line with that cure saves of the loop before it, 0 where there is none.
double saved_share(const Steps& steps, std::string_view cure) {
  model::Report report;
  report.run.duration_ns = 1e9;
  add_cures(steps.session(), reference(), "", report);
  for (const model::Verdict& line : report.verdict) {
    if (line.cure == cure) return *line.saves_ns / line.after->before_ns;
  }
  return 0;
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

TEST(CureSavings, GradientsThatAnOptimizerTakesAreNoWaste) {
  const auto cures_of_training = [](std::uint32_t optimizer_blocks) {
    return cures_in(Steps::run([=](Steps& s) {
      backward_pass(s, {.adds_others = true});
      s.kernel("void multi_tensor_apply_kernel<TensorListMetadata<2> >()", 9 * kUs,
               optimizer_blocks);
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

TEST(CureSavings, AutocastCastsWeightsAnewInInference) {
  const auto layers = [](bool trains) {
    return cures_in(Steps::run([=](Steps& s) {
      s.kernel(kCast, 2 * kUs, 1);
      s.kernel(kCast, 9 * kUs, 512);
      s.kernel(kCast, 9 * kUs, 900);
      s.kernel(kProduct, 90 * kUs, kLarge);
      s.kernel(kTanh, 9 * kUs, 900);
      if (trains) s.on_other_thread([&] { s.kernel(kProduct, 90 * kUs, kLarge); });
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
  for (model::Range& range : ranges) range.module = true;
  // 136 us of launches, 120 us of kernels: without the bound 92 %.
  EXPECT_NEAR(saved_share(asynchronous, "cuda_graph"), 0.12, 0.03);
}

}  // namespace cures_test
}  // namespace rangescope::analyze::cures
