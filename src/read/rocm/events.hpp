// What AMD's tools call kernels, copies and functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace rangescope::read::rocm {

/// Without " [clone .kd]" and ".kd" of the kernel descriptor.
[[nodiscard]] std::string_view kernel_name(std::string_view symbol);
/// Not a copy: memory is filled.
[[nodiscard]] bool is_fill(std::string_view name);
/// Of "( dst(0x1) src(0x2) sizeBytes(128) kind(4))"; 0 where it gives none.
[[nodiscard]] std::uint64_t copied_bytes(std::string_view arguments);

}  // namespace rangescope::read::rocm
