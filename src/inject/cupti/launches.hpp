// Launch calls noted by callback, for a CUPTI that cannot record chosen driver functions by itself.
//
// Each thread writes 24 bytes a call into a chunk of its own, without lock; the flushing thread, or the owner when the
// chunk is full, hands them over. Memory: 24 KiB a thread that launches.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace rangescope::inject::cupti {

struct NotedLaunch {
  std::uint64_t start_ns;
  std::uint32_t correlation;
  std::uint32_t cbid;
  std::uint32_t duration_ns;
  std::uint32_t tid;
};

class LaunchLog {
 public:
  using Sink = void (*)(void* context, const NotedLaunch& launch);

  /// Called with everything that is handed over, one at a time, under the log's lock.
  void set_sink(Sink sink, void* context) {
    sink_ = sink;
    context_ = context;
  }
  /// From any thread. Counts as dropped when memory is short.
  void note(const NotedLaunch& launch);
  /// Hands over what all threads noted so far.
  void drain();
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kLaunches = 1024;
  struct Chunk {
    Chunk* next = nullptr;
    std::atomic<std::uint32_t> written{0};
    std::uint32_t handed = 0;  ///< under lock_
    NotedLaunch launches[kLaunches];
  };
  void hand_over(Chunk& chunk);

  std::mutex lock_;
  std::atomic<Chunk*> chunks_{nullptr};
  std::atomic<std::uint64_t> dropped_{0};
  Sink sink_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace rangescope::inject::cupti
