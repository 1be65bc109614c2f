#include "model/kernel_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rangescope::model {
namespace kernel_name_test {

TEST(KernelName, ShortIsTheFunctionItself) {
  // As the driver, ncu 2020 to 2025 (which rewrites names: --rename-kernels) and nsys spell them.
  const std::vector<std::pair<std::string, std::string>> names = {
      {"gemm_like(const float *, const float *, float *, int)", "gemm_like"},
      {"void reduce_like<(int)65536>(const float *, float *)", "reduce_like"},
      {"void at::native::(anonymous namespace)::fill<float, at::native::Op<float> >(int, float)",
       "fill"},
      {"void at::native::<unnamed>::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, "
       "(int)2, (int)2, (int)-2>"
       "(at::cuda::detail::TensorInfo<T1, T3>, long)",
       "indexSelectSmallIndex"},
      {"void at::<unnamed>::vectorized_layer_norm_kernel<c10::BFloat16, float, 1>(int, T2, const "
       "T1 *)",
       "vectorized_layer_norm_kernel"},
      {"void at::elementwise_kernel<128, 4, void "
       "at::gpu_kernel_impl_nocast<at::direct_copy_kernel_cuda("
       "at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const>(int, T3)",
       "elementwise_kernel"},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>(cutlass_80::Params)",
       "Kernel2"},
      {"nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"},
      {"", ""}};
  for (const auto& [given, expected] : names)
    EXPECT_EQ(short_kernel_name(given), expected) << given;
}

}  // namespace kernel_name_test
}  // namespace rangescope::model
