// Memory for the injected library: never malloc (the program may interpose it, or be inside it),
// never given back.
//
// Blocks come from anonymous mmap and are cut by an atomic bump; null when the system refuses. Safe
// in signal handlers.
#pragma once

#include <cstddef>

namespace rangescope::inject {

/// `bytes` of zeros, 16-byte aligned; null when there is no memory.
[[nodiscard]] void* arena_allocate(std::size_t bytes);

template <typename T>
[[nodiscard]] T* arena_array(std::size_t count) {
  return static_cast<T*>(arena_allocate(count * sizeof(T)));
}

/// The page of the kernel: 4096, on arm64 16 or 64 KiB too.
[[nodiscard]] std::size_t page_bytes();

/// A mapping of its own, for what grows by doubling; the old one goes back with pages_free.
[[nodiscard]] void* pages_allocate(std::size_t bytes);
void pages_free(void* at, std::size_t bytes);

}  // namespace rangescope::inject
