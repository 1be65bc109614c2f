// Kernels of PyTorch, cuBLAS, cuDNN and CUTLASS, as tests of cures launch them.
#pragma once

#include <cstdint>

namespace rangescope::analyze::cures::testing::kernels {

inline constexpr const char* kAdd =
    "void vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int)";
inline constexpr const char* kTanh =
    "void vectorized_elementwise_kernel<4, tanh_kernel_cuda(float), std::array<char*, 2ul> >(int)";
inline constexpr const char* kLog =
    "void vectorized_elementwise_kernel<4, log_kernel_cuda(float), std::array<char*, 2ul> >(int)";
inline constexpr const char* kRoot =
    "void vectorized_elementwise_kernel<4, rsqrt_kernel_cuda(float), std::array<char*, 2ul> >(int)";
inline constexpr const char* kAdam =
    "void vectorized_elementwise_kernel<4, addcdiv_cuda_kernel(float), std::array<char*, 4ul> >()";
inline constexpr const char* kFill =
    "void vectorized_elementwise_kernel<4, FillFunctor<float>, std::array<char*, 1ul> >(int)";
inline constexpr const char* kCast =
    "void vectorized_elementwise_kernel<8, float16_copy_kernel_cuda(float), std::array<char*, 2ul> "
    ">(int)";
inline constexpr const char* kStrided =
    "void elementwise_kernel<128, 4, gpu_kernel_impl_nocast<direct_copy_kernel_cuda(c10::Half)> "
    ">(int)";
inline constexpr const char* kNorm =
    "void reduce_kernel<512, 1, ReduceOp<float, NormTwoOps<float>, unsigned int, float, 4> >()";
inline constexpr const char* kMean =
    "void reduce_kernel<512, 1, ReduceOp<float, MeanOps<float>, unsigned int, float, 4> >()";
inline constexpr const char* kSoftmax =
    "void softmax_warp_forward<c10::Half, c10::Half, float, 11>()";
inline constexpr const char* kSoftmaxGradient =
    "void softmax_warp_backward<c10::Half, c10::Half, 10>()";
inline constexpr const char* kBatchNorm =
    "void batch_norm_backward_kernel<c10::Half, c10::Half, float>()";
inline constexpr const char* kScatter = "void _scatter_gather_elementwise_kernel<128, 8, fill>()";
inline constexpr const char* kCat = "void CatArrayBatchedCopy_vectorized<OpaqueType<2u> >()";
inline constexpr const char* kSelect =
    "void cub::detail::select::DeviceSelectSweepKernel<policy_hub>()";
inline constexpr const char* kIndex = "void index_elementwise_kernel<128, 4, gpu_index_kernel>()";
inline constexpr const char* kGather = "void at::native::vectorized_gather_kernel<16, long>()";
inline constexpr const char* kAddRows =
    "void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true, ReduceAdd>()";
inline constexpr const char* kAddSelectedRows =
    "void at::native::indexing_backward_kernel<float, 4>()";
inline constexpr const char* kScatterRows = "void at::native::sum_and_scatter<float, long>()";
inline constexpr const char* kOptimizer =
    "void at::native::multi_tensor_apply_kernel<TensorListMetadata<2>, LerpFunctor<float> >()";
inline constexpr const char* kMul =
    "void vectorized_elementwise_kernel<4, MulFunctor<float>, std::array<char*, 3ul> >(int)";
inline constexpr const char* kSum =
    "void reduce_kernel<512, 1, ReduceOp<float, sum_functor<float>, unsigned int, float, 4> >()";
inline constexpr const char* kLogSoftmax =
    "void cunn_SoftMaxForward<4, float, float, float, LogSoftMaxForwardEpilogue>()";
inline constexpr const char* kToNhwc = "void cudnn::nchwToNhwcKernel<__half>()";
inline constexpr const char* kProduct = "nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_coopA_TNN";
inline constexpr const char* kDoubleMul =
    "void at::native::vectorized_elementwise_kernel<2, MulFunctor<double>, std::array<char*, 3ul> "
    ">(int)";
inline constexpr const char* kFp32Product =
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128_ffma";
inline constexpr const char* kUnaligned =
    "cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_align1>";
/// Blocks of a grid.
inline constexpr std::uint32_t kLarge = 65536, kSmall = 8;

}  // namespace rangescope::analyze::cures::testing::kernels
