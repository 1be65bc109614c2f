// Calls noted by callback: launches for a CUPTI that cannot record chosen driver functions by
// itself, and in any case calls with details (call_details.hpp).
//
// Each thread writes 40 bytes a call, and 40 more for details, into a chunk of its own, without
// lock; the flushing thread, or the owner when the chunk is full, hands them over. Memory: 40 KiB a
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
  std::uint32_t module, same;  ///< as in wire::gpu::LaunchIn; 0: in no module
  wire::gpu::MadeBy made_by;
};

/// What a call did, for one of the records kMemory, kEvent and kStreamMade.
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
  /// `details`: null where the call has none.
  using Sink = void (*)(void* context, const NotedLaunch& launch, const CallDetails* details);

  /// Called with everything that is handed over, one at a time, under the log's lock.
  void set_sink(Sink sink, void* context) {
    sink_ = sink;
    context_ = context;
  }
  /// From any thread. Counts as dropped when memory is short. `details` if the launch says so.
  void note(const NotedLaunch& launch, const CallDetails* details);
  /// Hands over what all threads noted so far.
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

// The memory that CUPTI writes activity records into: a pool of equal buffers that are given out
// and taken back.
//
// Bounded: when kMost buffers are out, a request is declined, CUPTI drops the records and counts
// them. Buffers are handed over zeroed (CUPTI would otherwise zero them on the launching thread);
// the zeroing is done where they come back, on CUPTI's worker thread.

class BufferPool {
 public:
  static constexpr std::size_t kBytes =
      std::size_t{1} << 20;  ///< 4,800 kernels; 256 KiB to 8 MiB cost the same a launch
  static constexpr std::size_t kMost = 40;

  /// A zeroed buffer of kBytes, or null when all are out or memory is short.
  [[nodiscard]] std::uint8_t* take();
  void give_back(std::uint8_t* buffer);

 private:
  std::mutex lock_;
  std::uint8_t* free_[kMost] = {};
  std::size_t free_count_ = 0;
  std::size_t made_ = 0;
};

}  // namespace rangescope::inject::cupti
