// What the allocators of one session did, as another one's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "model/allocations.hpp"

namespace rangescope::read {

/// `place(item)` is called for each allocator, allocation, change and failure: it gives process,
/// threads and times those of the other session. `text(id)` is the other session's id of a text.
template <class Place, class Text>
void append_allocators(model::Allocators from,
                       model::Allocators& to,
                       const Place& place,
                       const Text& text) {
  const auto allocators = static_cast<std::uint32_t>(to.allocators.size());
  const auto frames = static_cast<std::uint32_t>(to.frames.size());
  const auto stacks = static_cast<std::uint32_t>(to.stacks.size());
  std::ranges::for_each(from.allocators, place);
  const auto take = [&](auto& item) {
    item.allocator += allocators;
    if constexpr (requires { item.stack; })
      if (item.stack != model::kNone)
        item.stack += stacks;
    if constexpr (requires { item.owner; })
      if (item.owner != 0)
        item.owner = text(item.owner);
    place(item);
  };
  std::ranges::for_each(from.allocations, take);
  std::ranges::for_each(from.reserved, take);
  std::ranges::for_each(from.failures, take);
  for (model::AllocationFrame& frame : from.frames) {
    frame.function = text(frame.function);
    frame.file = text(frame.file);
  }
  for (std::vector<std::uint32_t>& stack : from.stacks)
    for (std::uint32_t& frame : stack)
      frame += frames;
  const auto move = [](auto& source, auto& target) {
    target.insert(target.end(),
                  std::make_move_iterator(source.begin()),
                  std::make_move_iterator(source.end()));
  };
  move(from.allocators, to.allocators);
  move(from.allocations, to.allocations);
  move(from.reserved, to.reserved);
  move(from.failures, to.failures);
  move(from.frames, to.frames);
  move(from.stacks, to.stacks);
}

}  // namespace rangescope::read
