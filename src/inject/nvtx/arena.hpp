// Memory for the injected library. It never calls malloc: the program may interpose malloc, or be
// in a call of it. Arena memory is never freed.
//
// An arena maps blocks and cuts them with an atomic addition; null if the system has no memory.
// Safe in signal handlers.
#pragma once

#include <cstddef>

namespace rangescope::inject {

/// `bytes` of zeros, 16-byte aligned; null when there is no memory.
[[nodiscard]] void* arena_allocate(std::size_t bytes);

template <typename T>
[[nodiscard]] T* arena_array(std::size_t count) {
  return static_cast<T*>(arena_allocate(count * sizeof(T)));
}

/// Page size of the kernel: 4096 bytes, on arm64 also 16 or 64 KiB.
[[nodiscard]] std::size_t page_bytes();

/// A mapping outside the arena, for tables that grow by doubling. Free it with pages_free.
[[nodiscard]] void* pages_allocate(std::size_t bytes);
void pages_free(void* pages, std::size_t bytes);

}  // namespace rangescope::inject
