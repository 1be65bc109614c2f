// Names in PyTorch's traces, as the session has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rangescope::read::kineto {

/// AMD's functions have CUDA's names but for the beginning.
[[nodiscard]] std::string cuda_name(std::string_view api);

/// Of an element, by PyTorch's name of its type; 0 where that is not known.
[[nodiscard]] std::uint64_t bytes_of(std::string_view dtype);

/// What NCCL calls an operation that PyTorch calls `name`; "" for waits, messages between two ranks
/// and other things.
[[nodiscard]] std::string_view nccl_name(std::string_view name);

}  // namespace rangescope::read::kineto
