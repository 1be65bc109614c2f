// What a kernel does, as far as its name and grid tell: PyTorch's, cuBLAS's and cuDNN's names hold
// the functor, the types and the tile.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/gpu.hpp"

namespace rangescope::analyze::cures {

enum class Role : std::uint8_t {
  kOther,
  kPointwise,  ///< one result from elements at the same place
  kFill,       ///< writes one value
  kCopy,       ///< an element-wise copy: a cast, or a change of strides
  kReduction,
  kSoftmax,          ///< not its logarithm
  kSoftmaxGradient,  ///< likewise
  kProduct,          ///< of matrices
  kConvolution,
  kLayout,     ///< NCHW to NHWC, or back
  kBatchNorm,  ///< of images in NCHW: statistics, gradients, and what is made of them
  kConcatenation,
  kSelection,  ///< sizes and places of what a mask selects
  kIndexing,   ///< by a tensor of indices
  kGather,     ///< rows by a list of their numbers
  kScatter,
};

struct KernelTraits {
  Role role = Role::kOther;
  bool casts = false;       ///< a copy to another type
  bool is_strided = false;  ///< element-wise, over tensors whose elements do not follow one another
  bool on_fp32_units = false;        ///< a float32 product without tensor cores
  bool is_fp32_convolution = false;  ///< or one of its transforms, without tensor cores
  bool transforms_tiles = false;     ///< for a convolution by FFT or Winograd, around its product
  bool is_double = false;            ///< computes in float64
  bool is_unaligned = false;         ///< a product whose sizes keep it from vector loads
  double elements_per_block = 0;     ///< of element-wise kernels; 0: unknown
  double tensors = 0;                ///< that it reads and writes; 0: unknown
  double bytes_per_element = 0;      ///< that all its tensors together hold; 0: unknown
};

/// What a block of PyTorch's multi_tensor_apply takes of a tensor.
inline constexpr double kMultiTensorChunk_elements = 65'536;

[[nodiscard]] KernelTraits traits_of(std::string_view demangled);

[[nodiscard]] double blocks_of(const model::KernelShape& shape);

/// Element-wise kernels of the same number of elements, as far as grids tell: how many elements a
/// thread takes differs between versions of PyTorch by two.
[[nodiscard]] bool are_equal_sizes(double elements, double other_elements);

}  // namespace rangescope::analyze::cures
