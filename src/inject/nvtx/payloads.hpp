// Numbers in structured payloads (NVTX's payload extension): their types and offsets, from the
// schemas that the program registers.
#pragma once

#include <cstdint>

#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {

/// The numbers in a payload of one schema. Texts, arrays, nested schemas and data behind pointers
/// are left out, and numbers that end after kMostBytes.
struct PayloadLayout {
  static constexpr std::uint32_t kMostEntries = 12;  ///< keeps records short (thread_stream.cpp)
  static constexpr std::uint32_t kMostBytes = 192;
  struct Entry {
    Name name;
    wire::native::Number number;
    std::uint8_t bytes;
    std::uint16_t offset;
  };
  Entry entries[kMostEntries];
  std::uint32_t count;
  std::uint32_t bytes;  ///< of a payload, up to the end of its last number
};
inline constexpr std::uint32_t kMostLayouts = 256;

/// Records the payloads of an event for the innermost open range of the domain. `data` is an array
/// of nvtxPayloadData_t.
void take_payloads(std::uint32_t domain, const void* data, std::size_t count);

}  // namespace rangescope::inject
