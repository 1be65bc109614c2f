// Memory that a program allocated and freed through CUDA, one event per call.
//
// What is in use at a time is the sum over the events before it. Memory that a framework's own
// allocator hands out (PyTorch's, JAX's) is not here: of it only what that took from CUDA is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/range.hpp"

namespace rangescope::model {

/// CUpti_ActivityMemoryKind. nsys counts from 0 for pageable memory.
enum class MemoryKind : std::uint8_t {
  kUnknown = 0,
  kPageable = 1,  ///< ordinary memory of the host
  kPinned = 2,    ///< of the host, page-locked: allocated so, or registered
  kDevice = 3,
  kArray = 4,  ///< of a device, for textures
  kManaged = 5,
  kDeviceStatic = 6,
  kManagedStatic = 7,
};

enum class MemoryOperation : std::uint8_t {
  kAllocate,
  kFree,
  kFailedAllocation,  ///< `bytes` are what the call asked for; nothing changed
};

/// An allocation or a free. 56 bytes.
struct MemoryEvent {
  std::int64_t at_ns = 0;     ///< when the allocating call returned, or the freeing one began
  std::uint64_t address = 0;  ///< or handle: names the allocation within its process until freed
  std::uint64_t bytes = 0;    ///< of a free: those of its allocation, 0 where that is unknown
  std::uint64_t pool = 0;     ///< handle or address of its memory pool, 0 where it is from none
  std::uint32_t process = kNone;
  std::uint32_t thread = kNone;  ///< index into Session::threads, kNone where unknown
  std::uint32_t device = kNone;  ///< index into Session::devices; kNone of host memory
  std::uint32_t stream = kNone;  ///< that it is ordered in (cudaMallocAsync), else kNone
  std::uint32_t launch = kNone;  ///< the call, index into Session::launches
  MemoryKind kind = MemoryKind::kUnknown;
  MemoryOperation operation = MemoryOperation::kAllocate;
};

/// "device", "pinned"; nothing of what is unknown.
[[nodiscard]] constexpr std::optional<std::string_view> memory_kind_name(MemoryKind kind) {
  constexpr std::string_view kNames[] = {
      "pageable", "pinned", "device", "array", "managed", "device static", "managed static"};
  if (kind == MemoryKind::kUnknown)
    return std::nullopt;
  return kNames[static_cast<std::size_t>(kind) - 1];
}

/// Whether it takes memory of a device, not of the host.
[[nodiscard]] constexpr bool is_on_device(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kUnknown:
    case MemoryKind::kPageable:
    case MemoryKind::kPinned: return false;
    default: return true;
  }
}

}  // namespace rangescope::model
