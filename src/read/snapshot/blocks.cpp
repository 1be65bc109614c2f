#include "read/snapshot/blocks.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

namespace rangescope::read::snapshot {
namespace {

using model::Allocation;
using model::kNone;
using model::kOpen;

constexpr std::uint64_t kSmallestBlock = 512;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallSegment = 2 * kMiB;

/// Two events of one microsecond keep their order: each is at least a nanosecond after the one
/// before.
void make_times_distinct(std::vector<Event>& events) {
  std::int64_t previous_ns = 0;
  for (Event& event : events) {
    event.time_ns = std::max(event.time_ns, previous_ns + 1);
    previous_ns = event.time_ns;
  }
}

class Replay {
 public:
  Replay(const DeviceTrace& trace, const AllocatorSettings& settings, model::Allocators& out)
      : trace_(trace), settings_(settings), out_(out) {}

  void run() {
    const auto allocator = static_cast<std::uint32_t>(out_.allocators.size());
    out_.allocators.emplace_back();
    out_.allocators.back().ordinal = trace_.device;
    allocator_ = allocator;
    first_allocation_ = out_.allocations.size();
    begin_ns_ = trace_.events.empty() ? 0 : trace_.events.front().time_ns;
    find_beginning();
    add_older();
    for (const Event& event : trace_.events)
      apply(event);
    finish();
  }

 private:
  /// The blocks and segments when the recording began: the events backward from the end.
  void find_beginning() {
    std::set<std::uint64_t> requested;  // whose size is what was asked for, as their free has it
    used_ = trace_.blocks;
    segments_ = trace_.segments;
    for (auto event = trace_.events.rbegin(); event != trace_.events.rend(); ++event) {
      switch (event->action) {
        case Action::kAlloc:
          used_.erase(event->address);
          requested.erase(event->address);
          break;
        case Action::kFreeCompleted:
          used_[event->address] = {event->bytes, event->stack};
          requested.insert(event->address);
          break;
        case Action::kSegmentAlloc: undo_segment_alloc(*event); break;
        case Action::kSegmentFree: segments_[event->address] = segment_of(*event); break;
        case Action::kFreeRequested:
        case Action::kOutOfMemory: break;
      }
    }
    for (const std::uint64_t address : requested)
      used_[address].bytes = block_bytes(address, used_[address].bytes);
    for (const auto& [address, segment] : segments_)
      reserved_ += segment.bytes;
  }

  /// An expandable segment grows in place: its beginning is a shorter one.
  void undo_segment_alloc(const Event& event) {
    const auto exact = segments_.find(event.address);
    if (exact != segments_.end() && !exact->second.expandable) {
      segments_.erase(exact);
      return;
    }
    const auto segment = segment_around(event.address);
    if (segment == segments_.end() || !segment->second.expandable)
      return;
    segment->second.bytes -= std::min(segment->second.bytes, event.bytes);
    if (segment->second.bytes == 0)
      segments_.erase(segment);
  }

  [[nodiscard]] static Segment segment_of(const Event& event) {
    return {event.bytes, event.bytes <= kSmallSegment, false};
  }

  [[nodiscard]] std::map<std::uint64_t, Segment>::iterator segment_around(std::uint64_t address) {
    auto segment = segments_.upper_bound(address);
    if (segment == segments_.begin())
      return segments_.end();
    --segment;
    if (address - segment->first >= std::max<std::uint64_t>(segment->second.bytes, 1))
      return segments_.end();
    return segment;
  }

  void add_older() {
    add_reserved(begin_ns_);
    for (const auto& [address, block] : used_) {
      Allocation& older = add_allocation(address, begin_ns_ - 1, block);
      older.older = true;
    }
  }

  Allocation& add_allocation(std::uint64_t address, std::int64_t time_ns, const Block& block) {
    open_[address] = static_cast<std::uint32_t>(out_.allocations.size() - first_allocation_);
    Allocation& allocation = out_.allocations.emplace_back();
    allocation.start_ns = time_ns;
    allocation.bytes = block.bytes;
    allocation.stack = block.stack;
    allocation.allocator = allocator_;
    const auto owner = trace_.owners.find(address);
    const bool is_named = owner != trace_.owners.end() && time_ns <= trace_.owners_at_ns;
    if (is_named)
      allocation.owner = owner->second;
    return allocation;
  }

  void apply(const Event& event) {
    switch (event.action) {
      case Action::kAlloc: allocate(event); break;
      case Action::kFreeRequested: free(event); break;
      case Action::kFreeCompleted:
        free(event);  // a recording that began between the two has this one alone
        used_.erase(event.address);
        break;
      case Action::kSegmentAlloc: add_segment(event); break;
      case Action::kSegmentFree: remove_segment(event); break;
      case Action::kOutOfMemory: add_failure(event); break;
    }
  }

  void allocate(const Event& event) {
    const Block block{block_bytes(event.address, event.bytes), event.stack};
    used_[event.address] = block;
    free(event);  // a free that was not recorded
    add_allocation(event.address, event.time_ns, block);
  }

  [[nodiscard]] std::uint64_t block_bytes(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t rounded = settings_.rounded(bytes);
    const auto segment = segment_around(address);
    if (segment == segments_.end())
      return rounded;
    std::uint64_t end = segment->first + segment->second.bytes;
    const auto next = used_.upper_bound(address);
    if (next != used_.end())
      end = std::min(end, next->first);
    const std::uint64_t room = end - address;
    if (room < rounded || settings_.splits(segment->second, rounded, room - rounded))
      return rounded;
    return room;
  }

  void free(const Event& event) {
    const auto open = open_.find(event.address);
    if (open == open_.end())
      return;
    Allocation& allocation = out_.allocations[first_allocation_ + open->second];
    allocation.end_ns = event.time_ns;
    if (event.time_ns < trace_.owners_at_ns)
      allocation.owner = 0;  // another one was there by then
    open_.erase(open);
  }

  void add_segment(const Event& event) {
    const auto final_segment = trace_.segments.upper_bound(event.address);
    const bool expandable =
        final_segment != trace_.segments.begin() && std::prev(final_segment)->second.expandable &&
        event.address - std::prev(final_segment)->first < std::prev(final_segment)->second.bytes;
    Segment segment = segment_of(event);
    segment.expandable = expandable;
    const auto before = segments_.lower_bound(event.address);
    const bool grows = expandable && before != segments_.begin() &&
                       std::prev(before)->first + std::prev(before)->second.bytes == event.address;
    if (grows)
      std::prev(before)->second.bytes += event.bytes;
    else
      segments_[event.address] = segment;
    reserved_ += event.bytes;
    add_reserved(event.time_ns);
  }

  void remove_segment(const Event& event) {
    segments_.erase(event.address);
    reserved_ -= std::min(reserved_, event.bytes);
    add_reserved(event.time_ns);
  }

  void add_reserved(std::int64_t time_ns) {
    out_.reserved.push_back({time_ns, reserved_, allocator_});
  }

  void add_failure(const Event& event) {
    model::FailedAllocation& failure = out_.failures.emplace_back();
    failure.at_ns = event.time_ns;
    failure.bytes = event.bytes;
    failure.free_bytes = event.address;
    failure.allocator = allocator_;
    failure.stack = event.stack;
    if (failures_ < trace_.failure_owners.size())
      failure.owner = trace_.failure_owners[failures_];
    ++failures_;
  }

  void finish() {
    model::Allocator& allocator = out_.allocators.back();
    allocator.first_ns = begin_ns_;
    allocator.last_ns = trace_.events.empty() ? 0 : trace_.events.back().time_ns;
    const bool same_end =
        std::ranges::equal(used_, trace_.blocks, [](const auto& mine, const auto& recorded) {
          return mine.first == recorded.first && mine.second.bytes == recorded.second.bytes;
        });
    allocator.sizes = same_end ? model::BlockSizes::kReplayed : model::BlockSizes::kRounded;
    // Blocks that are in use at the end were recorded with their sizes and stacks.
    for (const auto& [address, open] : open_) {
      const auto recorded = trace_.blocks.find(address);
      if (recorded == trace_.blocks.end())
        continue;
      Allocation& allocation = out_.allocations[first_allocation_ + open];
      allocation.bytes = recorded->second.bytes;
      if (allocation.stack == kNone)
        allocation.stack = recorded->second.stack;
    }
  }

  const DeviceTrace& trace_;
  const AllocatorSettings& settings_;
  model::Allocators& out_;
  std::uint32_t allocator_ = 0;
  std::size_t first_allocation_ = 0;
  std::int64_t begin_ns_ = 0;
  std::uint64_t reserved_ = 0;
  std::size_t failures_ = 0;
  std::map<std::uint64_t, Segment> segments_;
  std::map<std::uint64_t, Block> used_;
  std::unordered_map<std::uint64_t, std::uint32_t>
      open_;  ///< by address, from first_allocation_ on
};

}  // namespace

std::uint64_t AllocatorSettings::rounded(std::uint64_t bytes) const {
  if (bytes < kSmallestBlock)
    return kSmallestBlock;
  std::uint64_t divisions = 0;
  const std::uint64_t mebibytes = std::bit_floor(std::max<std::uint64_t>(bytes / kMiB, 1));
  const auto setting = round_divisions.upper_bound(mebibytes);
  if (setting != round_divisions.begin())
    divisions = std::prev(setting)->second;
  if (divisions > 1 && bytes > kSmallestBlock * divisions) {
    const std::uint64_t power = std::bit_floor(bytes);
    if (power == bytes)
      return bytes;
    const std::uint64_t step = power / std::bit_floor(divisions);
    if (step >= kSmallestBlock)
      return (bytes + step - 1) / step * step;
  }
  return (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock;
}

bool AllocatorSettings::splits(const Segment& segment,
                               std::uint64_t bytes,
                               std::uint64_t rest) const {
  if (segment.small || segment.expandable)
    return rest >= kSmallestBlock;
  const bool is_splittable =
      most_split_bytes < 0 || bytes < static_cast<std::uint64_t>(most_split_bytes);
  return is_splittable && rest > kMiB;
}

void replay_blocks(DeviceTrace& trace, const AllocatorSettings& settings, model::Allocators& out) {
  make_times_distinct(trace.events);
  Replay(trace, settings, out).run();
}

}  // namespace rangescope::read::snapshot
