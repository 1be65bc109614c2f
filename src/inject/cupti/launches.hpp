// Calls noted by callback: always calls with details (call_details.hpp), and launches if CUPTI
// cannot record chosen driver functions itself.
//
// Each thread writes 40 bytes a call, and 40 more for details, into its own chunk, without a lock.
// The flushing thread, or the owner if the chunk is full, hands them over. Memory: 40 KiB for each
// thread that launches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "inject/python/per_thread.hpp"
#include "wire/gpu.hpp"

namespace rangescope::inject::cupti {

struct NotedLaunch {
  std::uint64_t start_ns;
  std::uint32_t correlation;
  std::uint16_t cbid;
  bool has_details;
  std::uint32_t duration_ns;
  std::uint32_t tid;
  std::uint32_t module, same;  ///< see wire::gpu::LaunchIn; module 0: in no module
  wire::gpu::MadeBy made_by;
};

/// The contents of a record kMemory, kEvent or kStreamMade.
struct CallDetails {
  std::uint64_t object;  ///< address, or the handle of memory or of an event
  std::uint64_t bytes;
  std::uint64_t pool;
  std::uint32_t context;
  std::uint32_t stream;  ///< wire::gpu::kNoStream: none
  std::int32_t result;
  wire::gpu::Type type;
  std::uint8_t kind;       ///< of memory
  std::uint8_t operation;  ///< of memory or of an event; 1 of a stream that does not block
};
static_assert(sizeof(CallDetails) == sizeof(NotedLaunch));

class LaunchLog {
 public:
  /// `details`: null if the call has none.
  using Sink = void (*)(void* context, const NotedLaunch& launch, const CallDetails* details);

  /// The sink is called for each call that is handed over, under the log's lock.
  void set_sink(Sink sink, void* context) {
    sink_ = sink;
    context_ = context;
  }
  /// From any thread. Without memory the call is counted as dropped. `details` is read if the
  /// launch has_details.
  void note(const NotedLaunch& launch, const CallDetails* details);
  /// Hands over the calls that all threads have noted so far.
  void drain();
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kEntries = 1024;
  /// Details follow their launch.
  union Entry {
    Entry() : details{} {}
    NotedLaunch launch;
    CallDetails details;
  };
  struct Chunk {
    std::atomic<std::uint32_t> written{0};
    std::uint32_t handed = 0;  ///< under lock_
    Entry entries[kEntries];
  };
  void hand_over(Chunk& chunk);

  std::mutex lock_;
  python::PerThread<Chunk> chunks_;
  std::atomic<std::uint64_t> dropped_{0};
  Sink sink_ = nullptr;
  void* context_ = nullptr;
};

/// A pool of equal buffers for CUPTI's activity records.
///
/// Bounded: while kMost buffers are in use, requests are declined; CUPTI then drops records and
/// counts them. Buffers are zeroed, which CUPTI would otherwise do on the launching thread. They
/// are zeroed when they are given back, on CUPTI's worker thread.
class BufferPool {
 public:
  /// Room for 4,800 kernels. From 256 KiB to 8 MiB a launch costs the same.
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMost = 40;

  /// A zeroed buffer of kBytes; null if all are in use, or without memory.
  [[nodiscard]] std::uint8_t* take();
  void give_back(std::uint8_t* buffer);

 private:
  std::mutex lock_;
  std::uint8_t* free_[kMost] = {};
  std::size_t free_count_ = 0;
  std::size_t made_ = 0;
};

}  // namespace rangescope::inject::cupti
