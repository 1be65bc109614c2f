#include "inject/cupti/buffers.hpp"

#include <sys/mman.h>

#include <cstring>

namespace rangescope::inject::cupti {

std::uint8_t* BufferPool::take() {
  const std::lock_guard<std::mutex> guard(lock_);
  if (free_count_ > 0) {
    return free_[--free_count_];
  }
  if (made_ == kMost) return nullptr;
  // Populated at once: the first touch of a page would otherwise cost the launching thread a fault.
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ++made_;
  return static_cast<std::uint8_t*>(memory);
}

void BufferPool::give_back(std::uint8_t* buffer) {
  if (buffer == nullptr) {
    return;
  }
  std::memset(buffer, 0, kBytes);
  const std::lock_guard<std::mutex> guard(lock_);
  if (free_count_ < kMost) {
    free_[free_count_++] = buffer;
  }
}

}  // namespace rangescope::inject::cupti
