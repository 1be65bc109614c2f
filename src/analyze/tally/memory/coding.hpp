// How a digest's file has memory: behind all else, and nothing of it where no allocator was
// recorded.
#pragma once

#include "analyze/tally/coding.hpp"
#include "analyze/tally/digest.hpp"

namespace rangescope::analyze::tally::coding {

template <class Io, class List>
void visit_parts_of_memory(Io& io, List& parts, std::size_t names) {
  constexpr std::size_t kUses = model::kMemoryUseNames.size();
  io.list(parts, kMostMemoryParts, 5);
  for (auto& part : parts) {
    auto use = static_cast<std::uint32_t>(part.use);
    io.index(use, kUses);
    if constexpr (Io::kReads)
      part.use = static_cast<model::MemoryUse>(use);
    io.index(part.owner, names);
    io.flag(part.is_of_time);
    io.near(part.bytes, 0);
    io.field(part.blocks);
  }
}

/// Whether there is one. Of one that is read all fields are to follow.
template <class Io, class Optional>
bool visit_presence(Io& io, Optional& optional) {
  bool is_there = optional.has_value();
  io.flag(is_there);
  if constexpr (Io::kReads) {
    optional.reset();
    if (is_there)
      optional.emplace();
  }
  return is_there;
}

template <class Io, class Memory, class D>
void visit_device_memory(Io& io, Memory& memory, const D& digest) {
  const std::size_t names = digest.names.size();
  io.index(memory.process, digest.processes.size());
  io.field(memory.device);
  io.index(memory.allocator, names);
  io.index(memory.sizes, names);
  io.field(memory.allocations);
  for (auto* bytes : {&memory.older_bytes, &memory.end_bytes, &memory.peak_bytes})
    io.near(*bytes, 0);
  io.near(memory.peak_at_ns, digest.begin_ns);
  io.sum(memory.peak_reserved_bytes, 0);
  io.sum(memory.reserved_at_peak_bytes, 0);
  io.field(memory.steps);
  io.real(memory.owned_share);
  visit_parts_of_memory(io, memory.uses, names);
  visit_parts_of_memory(io, memory.parts, names);
  if (visit_presence(io, memory.growth)) {
    io.real(memory.growth->bytes_per_step);
    io.field(memory.growth->steps);
    io.index(memory.growth->owner, names);
  }
  if (!visit_presence(io, memory.failure))
    return;
  auto& failure = *memory.failure;
  io.near(failure.at_ns, digest.begin_ns);
  io.index(failure.owner, names);
  for (auto* bytes :
       {&failure.asked_bytes, &failure.in_use_bytes, &failure.reserved_bytes, &failure.free_bytes})
    io.near(*bytes, 0);
  io.field(failure.count);
}

template <class Io, class D>
void visit_memory(Io& io, D& digest, std::size_t regions) {
  if constexpr (Io::kReads) {
    digest.memory.clear();
    digest.memory_of_regions.clear();
    if (io.at_end())
      return;
  } else {
    if (digest.memory.empty())
      return;
  }
  constexpr std::size_t kMostAllocators = 1 << 20;
  io.list(digest.memory, kMostAllocators, 24);
  io.check(!digest.memory.empty());
  for (auto& memory : digest.memory)
    visit_device_memory(io, memory, digest);
  io.list(digest.memory_of_regions, regions, 5);
  std::uint32_t next = 0;
  for (auto& memory : digest.memory_of_regions) {
    io.index(memory.region, regions);
    io.check(memory.region >= next);
    next = memory.region + 1;
    io.field(memory.allocations);
    for (auto* bytes : {&memory.allocated_bytes, &memory.peak_bytes, &memory.held_bytes})
      io.near(*bytes, 0);
  }
}

}  // namespace rangescope::analyze::tally::coding
