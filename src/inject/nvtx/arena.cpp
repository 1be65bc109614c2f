#include "inject/nvtx/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace rangescope::inject {
namespace {

constexpr std::size_t kBlock = 256 * 1024;

struct Block {
  std::atomic<std::size_t> used;
  std::size_t size;
};

std::atomic<Block*> current{nullptr};

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void* pages_allocate(std::size_t bytes) {
  void* at = ::mmap(nullptr, round_up(bytes, 4096), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void pages_free(void* at, std::size_t bytes) {
  if (at != nullptr) ::munmap(at, round_up(bytes, 4096));
}

void* arena_allocate(std::size_t bytes) {
  bytes = round_up(bytes, 16);
  if (bytes > kBlock / 8) return pages_allocate(bytes);
  for (;;) {
    Block* block = current.load(std::memory_order_acquire);
    if (block != nullptr) {
      const std::size_t at = block->used.fetch_add(bytes, std::memory_order_relaxed);
      if (at + bytes <= block->size) return reinterpret_cast<char*>(block) + at;
    }
    void* fresh = pages_allocate(kBlock);
    if (fresh == nullptr) return nullptr;
    auto* made = static_cast<Block*>(fresh);
    made->size = kBlock;
    made->used.store(round_up(sizeof(Block), 16), std::memory_order_relaxed);
    if (!current.compare_exchange_strong(block, made, std::memory_order_acq_rel))
      pages_free(fresh, kBlock);
  }
}

}  // namespace rangescope::inject
