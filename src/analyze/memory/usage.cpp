#include "analyze/memory/usage.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace rangescope::analyze {

namespace {

std::vector<MemoryChange> changes_of(const model::Session& session, std::uint32_t allocator) {
  // Bytes are unsigned: what a damaged file says may wrap around, and a free is the negative of its
  // allocation.
  std::vector<MemoryChange> changes;
  for (const model::Allocation& allocation : session.allocators.allocations) {
    if (allocation.allocator != allocator)
      continue;
    changes.push_back({allocation.start_ns, allocation.bytes});
    if (allocation.end_ns != model::kOpen)
      changes.push_back({allocation.end_ns, 0 - allocation.bytes});
  }
  return changes;
}

}  // namespace

MemoryUsage::MemoryUsage(const model::Session& session, std::uint32_t allocator)
    : MemoryUsage(changes_of(session, allocator)) {}

MemoryUsage::MemoryUsage(std::vector<MemoryChange> changes) {
  std::ranges::stable_sort(changes, {}, &MemoryChange::at_ns);
  std::uint64_t in_use = 0;
  for (const auto& [at_ns, bytes] : changes) {
    in_use += bytes;
    if (!times_.empty() && times_.back() == at_ns) {
      in_use_.back() = static_cast<std::int64_t>(in_use);
      continue;
    }
    times_.push_back(at_ns);
    in_use_.push_back(static_cast<std::int64_t>(in_use));
  }
  std::vector<std::int64_t> level;
  for (std::size_t first = 0; first < in_use_.size(); first += kBlock) {
    const std::size_t last = std::min(first + kBlock, in_use_.size());
    level.push_back(*std::max_element(in_use_.begin() + static_cast<std::ptrdiff_t>(first),
                                      in_use_.begin() + static_cast<std::ptrdiff_t>(last)));
  }
  for (std::size_t width = 1; !level.empty(); width *= 2) {
    block_highest_.push_back(level);
    if (level.size() <= width)
      break;
    std::vector<std::int64_t> wider(level.size() - width);
    for (std::size_t block = 0; block < wider.size(); ++block)
      wider[block] = std::max(level[block], level[block + width]);
    level = std::move(wider);
  }
}

std::size_t MemoryUsage::events_before(std::int64_t at_ns) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(times_, at_ns) - times_.begin());
}

double MemoryUsage::at(std::int64_t at_ns) const {
  const auto next = std::ranges::upper_bound(times_, at_ns);
  if (next == times_.begin())
    return 0;
  return static_cast<double>(in_use_[static_cast<std::size_t>(next - times_.begin()) - 1]);
}

std::int64_t MemoryUsage::highest_of(std::size_t first, std::size_t last) const {
  std::int64_t highest = 0;
  const auto take_singly = [&](std::size_t from, std::size_t to) {
    for (std::size_t event = from; event < to; ++event)
      highest = std::max(highest, in_use_[event]);
  };
  const std::size_t first_block = (first + kBlock - 1) / kBlock;
  const std::size_t last_block = last / kBlock;
  if (first_block >= last_block) {
    take_singly(first, last);
    return highest;
  }
  take_singly(first, first_block * kBlock);
  take_singly(last_block * kBlock, last);
  const std::size_t blocks = last_block - first_block;
  const auto level = static_cast<std::size_t>(std::bit_width(blocks) - 1);
  const std::vector<std::int64_t>& of_level = block_highest_[level];
  const std::size_t width = std::size_t{1} << level;
  return std::max({highest, of_level[first_block], of_level[last_block - width]});
}

double MemoryUsage::highest(std::int64_t from_ns, std::int64_t to_ns) const {
  const std::size_t first = events_before(from_ns);
  const auto last =
      static_cast<std::size_t>(std::ranges::upper_bound(times_, to_ns) - times_.begin());
  const double before = first > 0 ? after_event(first - 1) : 0;
  return first < last ? std::max(before, static_cast<double>(highest_of(first, last))) : before;
}

double MemoryUsage::peak() const {
  return empty() ? 0 : static_cast<double>(highest_of(0, in_use_.size()));
}

std::int64_t MemoryUsage::peak_at() const {
  const auto highest = std::ranges::max_element(in_use_);
  return highest == in_use_.end() ? 0 : times_[static_cast<std::size_t>(highest - in_use_.begin())];
}

}  // namespace rangescope::analyze
