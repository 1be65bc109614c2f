#include "analyze/cures/result_bytes.hpp"

#include <algorithm>
#include <tuple>

namespace rangescope::analyze::cures {
namespace {

/// PyTorch leaves up to 1 MiB of a large block unsplit: of smaller blocks the size says too little.
constexpr std::uint64_t kSmallestBlock_bytes = 16 << 20;

/// Allocations have microseconds: a call's middle is surely behind those made for it.
std::int64_t middle_ns(const Operation& operation) {
  return operation.start_ns + (operation.end_ns - operation.start_ns) / 2;
}

}  // namespace

ResultBytes::ResultBytes(const Recording& recording) : recording_(recording) {
  const model::Allocators& allocators = recording.session().allocators;
  for (const model::Allocation& allocation : allocators.allocations) {
    if (allocation.older)
      continue;
    const std::uint32_t process = allocators.allocators[allocation.allocator].process;
    handouts_.push_back({process, allocation.start_ns, allocation.bytes});
  }
  std::ranges::stable_sort(handouts_, {}, [](const Handout& handout) {
    return std::tuple(handout.process, handout.at_ns);
  });
}

std::optional<double> ResultBytes::of(Id work) const {
  const Id call = replay::launch_of(recording_.graph(), work);
  if (call == model::kNone)
    return std::nullopt;
  const Operation& launching = recording_.operation(call);
  const Id thread = recording_.graph().lanes[launching.lane].thread;
  if (thread == model::kNone)
    return std::nullopt;
  std::int64_t from_ns = 0;
  const auto operations = recording_.operations_of(launching.lane);
  for (auto before = std::ranges::lower_bound(operations, call); before != operations.begin();) {
    const Operation& operation = recording_.operation(*--before);
    if (operation.kind == Kind::kStretch)
      continue;
    from_ns = middle_ns(operation);
    break;
  }
  const std::uint32_t process = recording_.session().threads[thread].process;
  const auto order = [](const Handout& handout) {
    return std::tuple(handout.process, handout.at_ns);
  };
  auto next = std::ranges::upper_bound(handouts_, std::tuple(process, from_ns), {}, order);
  std::uint64_t largest_bytes = 0;
  for (; next != handouts_.end(); ++next) {
    if (order(*next) > std::tuple(process, middle_ns(launching)))
      break;
    largest_bytes = std::max(largest_bytes, next->bytes);
  }
  if (largest_bytes < kSmallestBlock_bytes)
    return std::nullopt;
  return static_cast<double>(largest_bytes);
}

}  // namespace rangescope::analyze::cures
