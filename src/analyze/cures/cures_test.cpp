// Each cure: the smallest program where it applies, and one where it must not.
#include "analyze/cures/cures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>

#include "analyze/cures/catalog.hpp"
#include "analyze/cures/programs_test.hpp"

namespace rangescope::analyze::cures {
namespace cures_test {

using namespace testing;

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
    {"frozen_gradients",
     [](Steps& s) { backward_pass(s, {.adds_others = true}); },
     [](Steps& s) {  // of several batches
       backward_pass(s, {.adds_first = true, .adds_others = true});
     }},
    {"gathered_rows",
     [](Steps& s) { layers_of_gathered_rows(s, kManyRows_bytes); },
     [](Steps& s) { layers_of_gathered_rows(s, kFewRows_bytes); }},
    {"rows_selected_later",
     [](Steps& s) { layer_before_selection(s, kFewRows_bytes); },
     [](Steps& s) { layer_before_selection(s, kManyRows_bytes); }},
    {"dense_gradients",
     [](Steps& s) { train_embedding(s, 8192); },
     [](Steps& s) { train_embedding(s, kLarge); }},
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
    {"pageable_copies",
     [](Steps& s) { s.pageable_copy(64 << 20, 8 * kMs); },
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
       if (s.step() == 0)
         s.call("cudaHostAlloc", 200 * kUs);
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
    {"kernels_compiled",
     [](Steps& s) {
       s.compute_in_library("/opt/cuda/lib64/libnvrtc.so.13", 2 * kMs);
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     },
     [](Steps& s) {
       s.compute_in_library("/opt/cuda/lib64/libcublasLt.so.13", 2 * kMs);
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     }},
    {"graph_captures",
     [](Steps& s) {
       if (s.step() % 2 == 1)
         capture(s);
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     },
     [](Steps& s) {  // replays what it captured at its start
       if (s.step() < 2)
         capture(s);
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
       constexpr const char* kSchedule[] = {
           "", "", "", "prepare_trace", "start_trace", "", "stop_trace", ""};
       s.compute_in(kSchedule[s.step()], 2 * kMs, "/lib/torch/profiler/profiler.py");
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     }},
    {"checkpoints_in_loop",
     [](Steps& s) {
       if (s.step() % 2 == 1)
         s.compute_in("save", 2 * kMs, "/lib/torch/serialization.py");
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
    {"own_function",
     [](Steps& s) {
       s.compute_in_python({{"update", "/srv/train.py"}}, 2 * kMs);
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
     },
     [](Steps& s) {  // nothing of the program's own
       s.compute_in_python({{"update", "/usr/lib/python3/dist-packages/metrics.py"}}, 2 * kMs);
       s.kernel(kProduct, kMs, kLarge);
       s.wait();
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
    {"one_hot_loss",
     [](Steps& s) { one_hot_loss(s, kLogSoftmax); },
     [](Steps& s) { one_hot_loss(s, kSoftmax); }},
    {"layout_conversions",
     [](Steps& s) {
       s.kernel(kToNhwc, 39 * kUs, kLarge);
       s.kernel("sm90_xmma_fprop_implicit_gemm", 90 * kUs, kLarge);
     },
     [](Steps& s) {  // sequences have no such layout
       s.in_module("blocks.0 (Conv1d)", [&] {
         s.kernel(kToNhwc, 39 * kUs, kLarge);
         s.kernel("sm90_xmma_fprop_implicit_gemm", 90 * kUs, kLarge);
       });
     }},
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
    {"grown_cache",
     [](Steps& s) { s.kernel(kCat, (20 + s.step()) * kUs, kLarge); },
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
    {"zeroing_one_by_one",
     [](Steps& s) { repeat(16, [&] { s.kernel(kFill, 2 * kUs, kSmall); }); },
     [](Steps& s) { repeat(15, [&] { s.kernel(kFill, 2 * kUs, kSmall); }); }},
    {"clipping_one_by_one",
     [](Steps& s) { repeat(16, [&] { s.kernel(kNorm, 15 * kUs, 1); }); },
     [](Steps& s) { repeat(2, [&] { s.kernel(kNorm, 15 * kUs, 1); }); }},
    {"tensors_one_by_one",
     [](Steps& s) { repeat(16, [&] { s.kernel(kAdd, 2 * kUs, kSmall); }); },
     [](Steps& s) {
       repeat(16, [&] {
         s.kernel(kAdd, 2 * kUs, kSmall);
         s.kernel(kProduct, 2 * kUs, kSmall);
       });
     }},
    {"products_one_by_one",
     [](Steps& s) { repeat(16, [&] { s.kernel(kProduct, 2 * kUs, kSmall); }); },
     [](Steps& s) { repeat(16, [&] { s.kernel(kProduct, 40 * kUs, kLarge); }); }},
    {"fp32_convolutions",
     [](Steps& s) {
       s.kernel("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_ffma", kMs, 512);
     },
     [](Steps& s) {
       s.kernel("sm90_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc", kMs, 512);
       s.kernel("void implicit_convolve_sgemm<__nv_bfloat16, __nv_bfloat16, 1024>()", kMs, 512);
     }},
    {"fp32_products",
     [](Steps& s) { s.kernel(kFp32Product, kMs, 512); },
     [](Steps& s) { s.kernel(kProduct, kMs, 512); }},
    {"unaligned_products",
     [](Steps& s) { s.kernel(kUnaligned, kMs, 512); },
     [](Steps& s) { s.kernel(kProduct, kMs, 512); }},
    {"double_precision",
     [](Steps& s) {
       s.kernel(kDoubleMul, kMs, kLarge);
       s.kernel("sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize64x128x32", kMs, 512);
     },
     [](Steps& s) {  // a program of its own, and a kernel with an argument of type double
       s.kernel("void relax<double>(double*)", kMs, kLarge);
       s.kernel("void at::native::pow_kernel<float, float>(at::TensorIteratorBase&, double)",
                kMs,
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

INSTANTIATE_TEST_SUITE_P(Cures, EachCure, ::testing::ValuesIn(kPrograms), [](const auto& program) {
  return std::string(program.param.cure);
});

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

}  // namespace cures_test
}  // namespace rangescope::analyze::cures
