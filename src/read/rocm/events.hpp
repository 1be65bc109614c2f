// What AMD's tools call kernels, copies and functions.
#pragma once

#include <string_view>

#include "model/gpu.hpp"

namespace rangescope::read::rocm {

/// Without " [clone .kd]" and ".kd" of the kernel descriptor.
[[nodiscard]] std::string_view kernel_name(std::string_view symbol);
/// "CopyHostToDevice", "MEMORY_COPY_HOST_TO_DEVICE"; kUnknown where it says none.
[[nodiscard]] model::CopyKind copy_kind(std::string_view name);
/// A copy's name as PyTorch has it, "Memcpy HtoD", of which read/kineto knows the kind.
[[nodiscard]] std::string_view copy_name(std::string_view name);
/// Not a copy: memory is filled.
[[nodiscard]] bool is_fill(std::string_view name);
/// Of "( dst(0x1) src(0x2) sizeBytes(128) kind(4))"; 0 where it does not say.
[[nodiscard]] std::uint64_t copied_bytes(std::string_view arguments);

}  // namespace rangescope::read::rocm
