// The short name of a kernel: what the library that counts goes by, too. And what names tell.
#pragma once

#include <string_view>

#include "wire/kernel_name.hpp"

namespace rangescope::model {

using wire::short_kernel_name;

/// A kernel of NCCL, by its demangled or short name: ncclDevKernel_AllReduce_Sum_f32_RING_LL,
/// ncclSymkDevKernel_ ...
[[nodiscard]] constexpr bool is_nccl(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("void nccl");
}

}  // namespace rangescope::model
