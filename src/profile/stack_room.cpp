#include "profile/stack_room.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::profile {
namespace {

/// The kernel keeps that much free between a stack that grows and the memory below it
/// (stack_guard_gap, 256 pages).
constexpr std::uint64_t kGuardGap = 256 * 4096;

using base::MemoryArea;
using Areas = std::vector<MemoryArea>;

Areas::const_iterator area_with(const Areas& areas, std::uint64_t address) {
  return std::ranges::find_if(areas, [&](const MemoryArea& area) { return area.holds(address); });
}

bool is_guard(const MemoryArea& area) {
  return !area.is_readable && !area.is_writable;
}

}  // namespace

std::optional<rlim_t> stack_limit_of(std::string_view limits) {
  constexpr std::string_view kName = "Max stack size";
  for (const std::string_view line : base::split(limits, '\n')) {
    if (!line.starts_with(kName))
      continue;
    std::string_view soft = base::trim(line.substr(kName.size()));
    soft = soft.substr(0, soft.find(' '));
    if (soft == "unlimited")
      return RLIM_INFINITY;
    const auto bytes = base::to_uint(soft);
    return bytes ? std::optional<rlim_t>(*bytes) : std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t room_of_first_thread(const Areas& areas, std::uint64_t stack_pointer, rlim_t limit) {
  const auto stack = area_with(areas, stack_pointer);
  if (stack == areas.end() || stack->name != "[stack]")
    return 0;
  std::uint64_t lowest = limit < stack->end ? stack->end - limit : 0;
  if (stack != areas.begin())
    lowest = std::max(lowest, (stack - 1)->end + kGuardGap);
  return stack_pointer - std::min(lowest, stack->begin);
}

std::uint64_t room_of_thread(const Areas& areas,
                             std::uint64_t stack_pointer,
                             std::uint64_t descriptor) {
  const auto stack = area_with(areas, stack_pointer);
  if (stack == areas.end() || stack == areas.begin())
    return 0;
  const bool is_own = stack->holds(descriptor) && stack_pointer < descriptor;
  const MemoryArea& below = *(stack - 1);
  const bool has_guard = below.end == stack->begin && is_guard(below);
  return is_own && has_guard ? stack_pointer - stack->begin : 0;
}

}  // namespace rangescope::profile
