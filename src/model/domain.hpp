// NVTX domains whose owner is known.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace rangescope::model {

/// Domains of libraries in C++: CUB and Thrust, collectives, RAPIDS, TensorRT, XLA. Their ranges
/// lie within one call of the code that uses them, never around one. Sources: the libraries' own
/// documentation and headers.
inline constexpr std::array<std::string_view, 6> kLibraryDomains = {
    "CCCL", "NCCL", "MPI", "libcudf", "TensorRT", "TSL"};

[[nodiscard]] constexpr bool is_library_domain(std::string_view name) {
  return std::ranges::find(kLibraryDomains, name) != kLibraryDomains.end();
}

}  // namespace rangescope::model
