#include "analyze/cures/kernel_traits.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace rangescope::analyze::cures {
namespace {

using Names = std::initializer_list<std::string_view>;

bool has_any(std::string_view name, Names parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// The first role whose part the name has.
constexpr std::pair<std::string_view, Role> kRoles[] = {
    {"nchwToNhwc", Role::kLayout},
    {"nhwcToNchw", Role::kLayout},
    {"batch_norm_collect_statistics_kernel", Role::kBatchNorm},
    {"batch_norm_backward_kernel", Role::kBatchNorm},
    {"batch_norm_transform_input_kernel", Role::kBatchNorm},
    {"CatArrayBatchedCopy", Role::kConcatenation},
    {"scatter_gather", Role::kScatter},
    {"index_elementwise_kernel", Role::kIndexing},
    {"vectorized_gather_kernel", Role::kGather},
    {"indexSelect", Role::kGather},
    {"distribution_elementwise", Role::kOther},
    {"FillFunctor", Role::kFill},
    {"direct_copy_kernel", Role::kCopy},
    {"float16_copy_kernel", Role::kCopy},
    {"bfloat16_copy_kernel", Role::kCopy},
    {"elementwise_kernel", Role::kPointwise},
    {"LogSoftMaxForward", Role::kReduction},
    {"SoftMaxForward", Role::kSoftmax},
    {"softmax_warp_backward", Role::kSoftmaxGradient},
    {"cunn_SoftMaxBackward", Role::kSoftmaxGradient},
    {"softmax_warp_forward", Role::kSoftmax},
    {"DeviceSelect", Role::kSelection},
    {"DeviceCompactInit", Role::kSelection},
    {"DeviceReduce", Role::kSelection},
    {"write_indices", Role::kSelection},
    {"reduce_kernel", Role::kReduction},
    {"fprop", Role::kConvolution},
    {"dgrad", Role::kConvolution},
    {"wgrad", Role::kConvolution},
    {"convolve", Role::kConvolution},
    {"winograd", Role::kConvolution},
    {"fft2d_", Role::kConvolution},
    {"gemm", Role::kProduct},
    {"nvjet", Role::kProduct},
    {"gemv", Role::kProduct},
    {"splitKreduce", Role::kProduct},
    {"dot_kernel", Role::kProduct},
};

Role role_of(std::string_view name) {
  for (const auto& [part, role] : kRoles) {
    if (name.find(part) != std::string_view::npos)
      return role;
  }
  return Role::kOther;
}

/// The number behind `before`, 0 where there is none.
double number_behind(std::string_view name, std::string_view before) {
  const std::size_t found = name.find(before);
  if (found == std::string_view::npos)
    return 0;
  double number = 0;
  for (const char digit : name.substr(found + before.size())) {
    if (std::isdigit(digit) == 0)
      break;
    number = 10 * number + (digit - '0');
  }
  return number;
}

/// 128 threads: a vectorized one takes eight elements each, an unrolled one four, and
/// `elementwise_kernel<128, N>` N (PyTorch 2.11). PyTorch 2.5 and older took half as many.
double elements_per_block(std::string_view name) {
  constexpr double kThreads = 128;
  if (name.find("vectorized_elementwise_kernel") != std::string_view::npos)
    return 8 * kThreads;
  if (name.find("unrolled_elementwise_kernel") != std::string_view::npos)
    return 4 * kThreads;
  return kThreads * number_behind(name, "elementwise_kernel<128, ");
}

double bytes_of_type(std::string_view name) {
  if (has_any(name, {"double", "long", "complex<float>"}))
    return 8;
  if (has_any(name, {"Half", "BFloat16", "half"}))
    return 2;
  if (has_any(name, {"unsigned char", "bool", "signed char"}))
    return 1;
  return 4;
}

double tensors_of(std::string_view name) {
  for (const std::string_view array : {"array<char*, ", "Array<char*, "}) {
    const double count = number_behind(name, array);
    if (count > 0)
      return count;
  }
  return 2;
}

bool is_element_wise(Role role) {
  return role == Role::kPointwise || role == Role::kFill || role == Role::kCopy;
}

/// To half it has its own functor; from half, or between others, the unrolled kernel converts.
bool casts(std::string_view name) {
  return has_any(name, {"float16_copy_kernel", "unrolled_elementwise_kernel"});
}

bool runs_on_fp32_units(std::string_view name) {
  const bool is_single = has_any(name, {"sgemm", "f32f32_f32f32_f32", "_ffma_", "gemmSN"});
  return is_single && !has_any(name, {"tensorop", "tf32", "s1688", "s16816"});
}

/// cuDNN's: implicit products, its older engines, and the transforms of FFT and Winograd.
bool convolves_on_fp32_units(std::string_view name) {
  const bool is_single = has_any(name, {"f32f32_f32f32_f32", "_ffma_", "<float"});
  return is_single && !has_any(name, {"f16", "half", "tensorop", "tf32", "s1688"});
}

/// Of template arguments and of kernels of cuBLAS; parameters of type double are of all kernels.
bool computes_in_double(std::string_view name) {
  return has_any(name, {"<double", "double>", "lambda(double)", "f64f64", "dgemm", "d884"});
}

/// CUTLASS names the alignment of its loads in elements; eight halves are a vector.
bool has_unaligned_loads(std::string_view name) {
  const bool is_half = has_any(name, {"_f16_", "f16f16", "h16816", "bf16"});
  const bool is_narrow = has_any(name, {"align1", "align2"}) && !has_any(name, {"align16"});
  return is_half && is_narrow;
}

}  // namespace

KernelTraits traits_of(std::string_view demangled) {
  KernelTraits traits;
  traits.role = role_of(demangled);
  traits.is_double = computes_in_double(demangled);
  if (is_element_wise(traits.role)) {
    traits.elements_per_block = elements_per_block(demangled);
    traits.tensors = tensors_of(demangled);
    traits.bytes_per_element = traits.tensors * bytes_of_type(demangled);
    traits.is_strided = demangled.find(" elementwise_kernel<") != std::string_view::npos ||
                        demangled.find("::elementwise_kernel<") != std::string_view::npos;
    traits.casts = traits.role == Role::kCopy && casts(demangled);
  }
  if (traits.role == Role::kConvolution) {
    traits.is_fp32_convolution = convolves_on_fp32_units(demangled);
    traits.transforms_tiles = has_any(demangled, {"winograd", "fft2d_"});
  }
  if (traits.role == Role::kProduct) {
    traits.on_fp32_units = runs_on_fp32_units(demangled);
    traits.is_unaligned = has_unaligned_loads(demangled);
  }
  return traits;
}

double blocks_of(const model::KernelShape& shape) {
  return static_cast<double>(shape.grid[0]) * shape.grid[1] * shape.grid[2];
}

bool are_equal_sizes(double elements, double other_elements) {
  constexpr double kVersions = 2.2;
  return elements > 0 && other_elements > 0 && elements <= kVersions * other_elements &&
         other_elements <= kVersions * elements;
}

}  // namespace rangescope::analyze::cures
