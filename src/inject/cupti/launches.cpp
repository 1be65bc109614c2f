#include "inject/cupti/launches.hpp"

#include <sys/mman.h>

#include <cstring>

namespace rangescope::inject::cupti {

void LaunchLog::hand_over(Chunk& chunk) {
  const std::uint32_t written = chunk.written.load(std::memory_order_acquire);
  while (chunk.handed < written) {
    const NotedLaunch& launch = chunk.entries[chunk.handed++].launch;
    const CallDetails* details = nullptr;
    if (launch.has_details)
      details = &chunk.entries[chunk.handed++].details;
    sink_(context_, launch, details);
  }
}

void LaunchLog::note(const NotedLaunch& launch, const CallDetails* details) {
  Chunk* chunk = chunks_.mine();
  if (chunk == nullptr) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::uint32_t next = chunk->written.load(std::memory_order_relaxed);
  const std::uint32_t entries = launch.has_details ? 2 : 1;
  if (next + entries > kEntries) {
    const std::lock_guard<std::mutex> guard(lock_);
    hand_over(*chunk);
    chunk->handed = 0;
    chunk->written.store(0, std::memory_order_release);
    next = 0;
  }
  chunk->entries[next].launch = launch;
  if (launch.has_details)
    chunk->entries[next + 1].details = *details;
  chunk->written.store(next + entries, std::memory_order_release);
}

void LaunchLog::drain() {
  const std::lock_guard<std::mutex> guard(lock_);
  chunks_.each([this](Chunk& chunk) { hand_over(chunk); });
}

std::uint8_t* BufferPool::take() {
  const std::lock_guard<std::mutex> guard(lock_);
  if (free_count_ > 0)
    return free_[--free_count_];
  if (made_ == kMost)
    return nullptr;
  // Populated, so that the launching thread has no page faults.
  void* memory = mmap(
      nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  ++made_;
  return static_cast<std::uint8_t*>(memory);
}

void BufferPool::give_back(std::uint8_t* buffer) {
  if (buffer == nullptr)
    return;
  std::memset(buffer, 0, kBytes);
  const std::lock_guard<std::mutex> guard(lock_);
  if (free_count_ < kMost)
    free_[free_count_++] = buffer;
}

}  // namespace rangescope::inject::cupti
