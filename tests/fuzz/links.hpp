// What every session of a reader promises: links lie within it, and nothing ends before it begins.
// Traps otherwise.
#pragma once

#include "model/session.hpp"

namespace rangescope::fuzz {

inline void check(bool promise) {
  if (!promise)
    __builtin_trap();
}

inline void check_links(const model::Session& s) {
  for (const model::Range& range : s.ranges)
    check(range.thread < s.threads.size() && range.domain < s.domains.size() &&
          range.end_ns >= range.start_ns &&
          (range.attributes == model::kNone || range.attributes < s.attributes.size()));
  for (const model::Thread& thread : s.threads)
    check(thread.process < s.processes.size());
  for (const model::Launch& launch : s.launches)
    check(launch.thread < s.threads.size());
  const auto works = [&](const auto& all) {
    for (const auto& work : all)
      check(work.stream < s.streams.size() &&
            (work.launch == model::kNone || work.launch < s.launches.size()));
  };
  works(s.kernels);
  works(s.copies);
  works(s.memsets);
  for (const model::Kernel& kernel : s.kernels)
    check(kernel.name < s.kernel_names.size() && kernel.shape < s.kernel_shapes.size());
  for (const model::Synchronization& wait : s.synchronizations)
    check(wait.launch == model::kNone || wait.launch < s.launches.size());
  for (const model::Stream& stream : s.streams)
    check(stream.process < s.processes.size() && stream.device < s.devices.size());
  const model::Allocators& memory = s.allocators;
  for (const model::Allocator& allocator : memory.allocators)
    check(allocator.process < s.processes.size());
  for (const model::Allocation& allocation : memory.allocations)
    check(allocation.allocator < memory.allocators.size() &&
          allocation.end_ns >= allocation.start_ns &&
          (allocation.thread == model::kNone || allocation.thread < s.threads.size()) &&
          (allocation.stack == model::kNone || allocation.stack < memory.stacks.size()));
  for (const auto& stack : memory.stacks)
    for (const std::uint32_t frame : stack)
      check(frame < memory.frames.size());
  for (const model::Projection& projection : s.projections)
    check(projection.range < s.ranges.size());
}

}  // namespace rangescope::fuzz
