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

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void* pages_allocate(std::size_t bytes) {
  void* pages = ::mmap(
      nullptr, round_up(bytes, 4096), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return nullptr;
  return pages;
}

void pages_free(void* pages, std::size_t bytes) {
  if (pages != nullptr)
    ::munmap(pages, round_up(bytes, 4096));
}

void* arena_allocate(std::size_t bytes) {
  bytes = round_up(bytes, 16);
  if (bytes > kBlock / 8)
    return pages_allocate(bytes);
  for (;;) {
    Block* block = current.load(std::memory_order_acquire);
    if (block != nullptr) {
      const std::size_t offset = block->used.fetch_add(bytes, std::memory_order_relaxed);
      if (offset + bytes <= block->size)
        return reinterpret_cast<char*>(block) + offset;
    }
    void* pages = pages_allocate(kBlock);
    if (pages == nullptr)
      return nullptr;
    auto* new_block = static_cast<Block*>(pages);
    new_block->size = kBlock;
    new_block->used.store(round_up(sizeof(Block), 16), std::memory_order_relaxed);
    if (!current.compare_exchange_strong(block, new_block, std::memory_order_acq_rel))
      pages_free(pages, kBlock);  // another thread was first
  }
}

}  // namespace rangescope::inject
