// Memory that an allocator of a framework hands out (PyTorch's caching allocator), as lifetimes.
//
// What a program takes from CUDA itself is in model/memory.hpp. Here an allocation counts what its
// allocator counts: whole blocks, rounded, with the rest that was not worth splitting off. The
// times of the events of one allocator are distinct and in the order in which they happened, so the
// sum over what lives at a time is what the allocator itself would have reported there.
#pragma once

#include <cstdint>
#include <vector>

#include "model/range.hpp"
#include "model/strings.hpp"

namespace rangescope::model {

/// How well the sizes of an allocator's blocks are known.
enum class BlockSizes : std::uint8_t {
  kRecorded,  ///< the recording has them
  kReplayed,  ///< the allocator's splitting was replayed, and ends in exactly the blocks that were
              ///< recorded at the end
  kRounded,   ///< requested sizes, rounded as the allocator does: a rest that it left unsplit is
              ///< missing
};

/// One allocator of one device of one process.
struct Allocator {
  std::uint32_t process = 0;
  std::uint32_t ordinal = 0;  ///< of its device, as the process numbers it
  StringId name = 0;          ///< "PyTorch"
  std::int64_t first_ns = 0;  ///< its first and last event
  std::int64_t last_ns = 0;
  BlockSizes sizes = BlockSizes::kRecorded;
  bool is_cut = false;                  ///< events before the first were dropped
  std::uint64_t stated_peak_bytes = 0;  ///< of the whole program, by its own statistics; 0: unknown
};

/// A block of memory from its allocation to its free. 48 bytes: there may be ten million.
struct Allocation {
  std::int64_t start_ns = 0;    ///< of an older one, just before the first event
  std::int64_t end_ns = kOpen;  ///< its free; kOpen: it was in use when the recording ended
  std::uint64_t bytes = 0;
  std::uint32_t allocator = 0;   ///< index into Allocators::allocators
  std::uint32_t thread = kNone;  ///< that allocated it, index into Session::threads
  std::uint32_t free_thread = kNone;
  std::uint32_t stack = kNone;  ///< index into Allocators::stacks
  StringId owner = 0;           ///< module whose parameter it is, by PyTorch; 0: unknown
  bool older = false;           ///< it was in use already when the recording began
};

/// What an allocator held of the device (its segments), from `at_ns` on.
struct ReservedMemory {
  std::int64_t at_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t allocator = 0;
};

/// An allocation for which there was no memory.
struct FailedAllocation {
  std::int64_t at_ns = 0;
  std::uint64_t bytes = 0;       ///< that it asked for
  std::uint64_t free_bytes = 0;  ///< that the device still had
  std::uint32_t allocator = 0;
  std::uint32_t thread = kNone;
  std::uint32_t stack = kNone;
  StringId owner = 0;  ///< module that asked for it, by PyTorch; 0: unknown
};

/// A line of Python (or a function of a library) that was on the stack.
struct AllocationFrame {
  StringId function = 0, file = 0;
  std::uint32_t line = 0;
};

struct Allocators {
  std::vector<Allocator> allocators;
  std::vector<Allocation> allocations;     ///< of each allocator by start
  std::vector<ReservedMemory> reserved;    ///< of each allocator by time
  std::vector<FailedAllocation> failures;  ///< of each allocator by time
  std::vector<AllocationFrame> frames;
  std::vector<std::vector<std::uint32_t>> stacks;  ///< indexes into `frames`, innermost first

  [[nodiscard]] bool empty() const { return allocators.empty(); }
};

}  // namespace rangescope::model
