// Numbers of structured payloads (NVTX's payload extension): which lie where, by the schemas that
// the program registers.
#pragma once

#include <cstdint>

#include "inject/nvtx/writer.hpp"

namespace rangescope::inject {

/// What a payload of one schema has: its numbers. Texts, arrays, nested schemas and what lies
/// behind pointers are left out. A schema that is larger than kMostBytes is not kept.
struct PayloadLayout {
  static constexpr std::uint32_t kMostEntries =
      12;  ///< a record with them stays short (stream.cpp)
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

/// Takes the payloads that an event was given for the innermost open range of the domain. `data` is
/// an array of nvtxPayloadData_t.
void take_payloads(std::uint32_t domain, const void* data, std::size_t count);

}  // namespace rangescope::inject
