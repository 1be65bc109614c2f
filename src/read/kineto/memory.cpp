#include "read/kineto/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rangescope::read::kineto {
namespace {

constexpr std::int64_t kCuda = 1;
constexpr std::int64_t kUnknown = -1;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  ///< more is no memory of a GPU
constexpr std::string_view kUnknownFrees = "frees of memory that the trace never saw allocated";

struct Block {
  std::uint64_t address, bytes;
};

/// The allocations of one allocator, from its events in order of time.
class Lifetimes {
 public:
  /// `older_bytes`: in use when the recording began, just after `begin_ns`.
  Lifetimes(model::Allocators& out, std::int64_t begin_ns, std::uint64_t older_bytes)
      : out_(out), begin_ns_(begin_ns), older_bytes_(older_bytes) {}

  void allocate(std::int64_t at_ns, const Block& block, std::uint32_t thread) {
    close(at_ns, block.address, thread);  // a free that was not recorded
    open_[block.address] = out_.allocations.size();
    add(at_ns, block.bytes).thread = thread;
  }

  void free(std::int64_t at_ns, const Block& block, std::uint32_t thread) {
    if (close(at_ns, block.address, thread))
      return;
    const std::uint64_t of_older = std::min(block.bytes, older_bytes_);
    older_bytes_ -= of_older;
    if (of_older < block.bytes)
      ++unknown_frees_;
    if (of_older == 0)
      return;
    model::Allocation& older = add(begin_ns_, of_older);
    older.older = true;
    older.end_ns = at_ns;
    older.free_thread = thread;
  }

  /// What was in use before the recording and is to its end.
  void finish() {
    if (older_bytes_ > 0)
      add(begin_ns_, older_bytes_).older = true;
  }

  /// Of more than was in use before the recording, and not allocated in it.
  [[nodiscard]] std::uint64_t unknown_frees() const { return unknown_frees_; }

 private:
  model::Allocation& add(std::int64_t at_ns, std::uint64_t bytes) {
    model::Allocation& allocation = out_.allocations.emplace_back();
    allocation.start_ns = at_ns;
    allocation.bytes = bytes;
    allocation.allocator = static_cast<std::uint32_t>(out_.allocators.size() - 1);
    return allocation;
  }

  bool close(std::int64_t at_ns, std::uint64_t address, std::uint32_t thread) {
    const auto open = open_.find(address);
    if (open == open_.end())
      return false;
    out_.allocations[open->second].end_ns = at_ns;
    out_.allocations[open->second].free_thread = thread;
    open_.erase(open);
    return true;
  }

  model::Allocators& out_;
  std::int64_t begin_ns_;
  std::uint64_t older_bytes_, unknown_frees_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> open_;
};

}  // namespace

void MemoryEvents::add(const Event& event, std::uint32_t thread) {
  if (event.device_type != kCuda || !event.start_ns || event.bytes.value_or(0) == 0)
    return;
  if (!event.total_allocated)
    return;  // of old versions: what was in use before is unknown
  const auto is_possible = [](std::int64_t bytes) { return std::abs(bytes) < kMostBytes; };
  if (!is_possible(*event.bytes) || !is_possible(*event.total_allocated))
    return;
  if (!is_possible(event.total_reserved.value_or(0)))
    return;
  Change change{};
  change.at_ns = *event.start_ns;
  change.bytes = *event.bytes;
  change.address = event.address.value_or(0);
  change.total_bytes = *event.total_allocated;
  change.reserved_bytes = event.total_reserved.value_or(kUnknown);
  change.thread = thread;
  of_device_[event.device_id.value_or(0)].push_back(change);
}

void MemoryEvents::add_allocator(Key key, std::vector<Change>& changes, model::Session& session) {
  std::ranges::stable_sort(changes, {}, &Change::at_ns);
  std::int64_t previous_ns = changes.front().at_ns - 1;
  for (Change& change : changes) {
    change.at_ns = std::max(change.at_ns, previous_ns + 1);
    previous_ns = change.at_ns;
  }
  model::Allocators& out = session.allocators;
  const auto number = static_cast<std::uint32_t>(out.allocators.size());
  model::Allocator& allocator = out.allocators.emplace_back();
  allocator.process = key.process;
  allocator.ordinal = key.device;
  allocator.name = session.strings.intern("PyTorch");
  allocator.first_ns = changes.front().at_ns;
  allocator.last_ns = changes.back().at_ns;
  const Change& first = changes.front();
  const std::int64_t older = first.total_bytes - first.bytes;
  const auto older_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, older));
  Lifetimes lifetimes(out, first.at_ns - 1, older_bytes);
  std::int64_t reserved_bytes = kUnknown;
  for (const Change& change : changes) {
    const Block block{change.address, static_cast<std::uint64_t>(std::abs(change.bytes))};
    if (change.bytes > 0)
      lifetimes.allocate(change.at_ns, block, change.thread);
    else
      lifetimes.free(change.at_ns, block, change.thread);
    if (change.reserved_bytes == reserved_bytes)
      continue;
    reserved_bytes = change.reserved_bytes;
    if (reserved_bytes < 0)
      continue;
    out.reserved.push_back({change.at_ns, static_cast<std::uint64_t>(reserved_bytes), number});
  }
  lifetimes.finish();
  if (lifetimes.unknown_frees() > 0)
    session.losses.push_back({"bad_rows", lifetimes.unknown_frees(), std::string(kUnknownFrees)});
}

void MemoryEvents::finish(model::Session& session) {
  std::map<Key, std::vector<Change>> of_allocator;
  for (const auto& [device, changes] : of_device_)
    for (const Change& change : changes)
      of_allocator[{session.threads[change.thread].process, device}].push_back(change);
  for (auto& [key, changes] : of_allocator)
    add_allocator(key, changes, session);
}

}  // namespace rangescope::read::kineto
