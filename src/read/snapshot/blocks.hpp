// The blocks of PyTorch's caching allocator, replayed from its events.
//
// An event has the bytes that were asked for; the allocator counts blocks. It rounds a request to
// 512 bytes (or to a division of a power of two) and cuts it from the front of a free block. What
// is left of that is split off, unless it is small: under 512 bytes in segments of small blocks or
// expandable ones, up to 1 MiB in others, or where the block is larger than max_split_size. So a
// block's size follows from the next block in use, and the replay knows all of those: it begins
// with the blocks that were in use when the recording began (those at its end, less what was
// allocated, and what was freed without having been allocated), and must end with exactly those at
// its end.
//
// c10/cuda/CUDACachingAllocator.cpp: round_size, should_split, alloc_found_block. O(n log n).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/allocations.hpp"

namespace rangescope::read::snapshot {

enum class Action : std::uint8_t {
  kAlloc,
  kFreeRequested,  ///< the program no longer uses it: it no longer counts as allocated
  kFreeCompleted,  ///< and no stream does: its block can be used again
  kSegmentAlloc,
  kSegmentFree,
  kOutOfMemory,
};

struct Event {
  std::int64_t time_ns = 0;
  std::uint64_t address = 0;  ///< kOutOfMemory: bytes that the device had free
  std::uint64_t bytes = 0;    ///< that were asked for
  std::uint32_t stack = model::kNone;
  Action action = Action::kAlloc;
};

struct Block {
  std::uint64_t bytes = 0;
  std::uint32_t stack = model::kNone;
};

struct Segment {
  std::uint64_t bytes = 0;
  bool small = false;
  bool expandable = false;
};

/// How the allocator rounds and splits: its settings, as the snapshot has them.
struct AllocatorSettings {
  std::int64_t most_split_bytes = -1;  ///< larger blocks are not split; -1: all are
  std::map<std::uint64_t, std::uint64_t>
      round_divisions;  ///< of sizes from so many MiB on, 0: none

  /// The bytes that a request takes where the rest of its block is split off.
  [[nodiscard]] std::uint64_t rounded(std::uint64_t bytes) const;
  [[nodiscard]] bool splits(const Segment& segment, std::uint64_t bytes, std::uint64_t rest) const;
};

/// What the snapshot says of one device.
struct DeviceTrace {
  std::uint32_t device = 0;
  std::vector<Event> events;                  ///< the oldest first
  std::map<std::uint64_t, Segment> segments;  ///< by address, at the end
  std::map<std::uint64_t, Block> blocks;      ///< in use at the end
  /// Modules whose tensors were in use at `owners_at_ns`, by address; texts of the session.
  std::map<std::uint64_t, model::StringId> owners;
  std::int64_t owners_at_ns = 0;
  std::vector<model::StringId> failure_owners;  ///< of allocations that failed, in their order
};

/// Appends the allocator of `trace` and all that happened in it. `trace.events` get distinct times.
void replay_blocks(DeviceTrace& trace, const AllocatorSettings& settings, model::Allocators& out);

}  // namespace rangescope::read::snapshot
