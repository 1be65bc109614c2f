#include "analyze/memory/memory.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/memory/around.hpp"
#include "analyze/memory/asked_points.hpp"
#include "analyze/memory/owners.hpp"
#include "analyze/memory/usage.hpp"
#include "analyze/memory/uses.hpp"
#include "analyze/tree/contexts.hpp"

namespace rangescope::analyze {
namespace {

using model::Allocation;
using model::DeviceMemory;
using model::kOpen;
using model::MemoryPart;
using model::MemoryUse;
using model::Session;

constexpr std::size_t kMostPoints = 400;
constexpr std::size_t kFewestStepsOfGrowth = 4;
constexpr double kLeastGrowth = 4096;  ///< bytes a step

bool is_larger(const MemoryPart& a, const MemoryPart& b) {
  if (a.bytes != b.bytes)
    return a.bytes > b.bytes;
  return std::tie(a.use, a.owner) < std::tie(b.use, b.owner);
}

/// What an allocator held of its device over time.
class Reserved {
 public:
  Reserved(const Session& session, std::uint32_t allocator) {
    for (const model::ReservedMemory& reserved : session.allocators.reserved)
      if (reserved.allocator == allocator)
        changes_.push_back(reserved);
  }

  /// Before the first change that was recorded what it was then; nothing where none was.
  [[nodiscard]] std::optional<double> at(std::int64_t at_ns) const {
    if (changes_.empty())
      return std::nullopt;
    const auto next = std::ranges::upper_bound(changes_, at_ns, {}, &model::ReservedMemory::at_ns);
    const auto latest = next == changes_.begin() ? next : std::prev(next);
    return static_cast<double>(latest->bytes);
  }

  [[nodiscard]] std::optional<double> highest() const {
    if (changes_.empty())
      return std::nullopt;
    const auto highest = std::ranges::max_element(changes_, {}, &model::ReservedMemory::bytes);
    return static_cast<double>(highest->bytes);
  }

 private:
  std::vector<model::ReservedMemory> changes_;  ///< in order of time
};

class MemoryOfReport {
 public:
  MemoryOfReport(const Regions& regions, model::Report& report)
      : regions_(regions),
        session_(regions.session),
        report_(report),
        points_(asked_points(session_)),
        contexts_(build_contexts(session_, regions.tree, regions.options, points_.calls)),
        steps_(find_steps(session_)),
        owners_(regions, contexts_, steps_) {}

  void run() {
    const auto count = static_cast<std::uint32_t>(session_.allocators.allocators.size());
    for (std::uint32_t allocator = 0; allocator < count; ++allocator) {
      usages_.emplace_back(session_, allocator);
      describe(allocator);
    }
    add_to_regions();
  }

 private:
  [[nodiscard]] double since_begin(std::int64_t at_ns) const {
    return since_ns(session_.begin_ns, at_ns);
  }

  [[nodiscard]] std::uint32_t context_of(std::uint32_t point) const {
    return point == kNone ? 0 : contexts_.of_launch[point];
  }

  void describe(std::uint32_t allocator) {
    const MemoryUsage& usage = usages_.back();
    const Reserved reserved(session_, allocator);
    const model::Allocator& recorded = session_.allocators.allocators[allocator];
    DeviceMemory out;
    out.process = recorded.process;
    out.device = recorded.ordinal;
    out.allocator = session_.strings.view(recorded.name);
    out.sizes = sizes_text(recorded.sizes);
    add_failure(allocator, usage, reserved, out);
    if (!usage.empty())
      describe_use(allocator, usage, reserved, out);
    if (!usage.empty() || out.failure)
      report_.memory.push_back(std::move(out));
  }

  void describe_use(std::uint32_t allocator,
                    const MemoryUsage& usage,
                    const Reserved& reserved,
                    DeviceMemory& out) {
    out.end_bytes = usage.at(usage.times().back());
    out.peak_bytes = usage.peak();
    const std::int64_t peak_at_ns = usage.peak_at();
    out.peak_at_ns = std::max(0.0, since_begin(peak_at_ns));
    out.steps = std::ssize(steps_.ends_ns);
    const std::vector<MemoryUse> uses = memory_uses(session_, allocator, usage, steps_);
    count_allocations(allocator, out);
    add_parts(allocator, peak_at_ns, uses, out);
    out.peak_reserved_bytes = reserved.highest();
    out.reserved_at_peak_bytes = reserved.at(peak_at_ns);
    add_growth(allocator, usage, out);
    add_points(usage, reserved, out);
  }

  [[nodiscard]] static std::string_view sizes_text(model::BlockSizes sizes) {
    switch (sizes) {
      case model::BlockSizes::kRecorded: return "recorded";
      case model::BlockSizes::kReplayed: return "replayed";
      case model::BlockSizes::kRounded: return "rounded";
    }
    return "";
  }

  void count_allocations(std::uint32_t allocator, DeviceMemory& out) const {
    for (const Allocation& allocation : session_.allocators.allocations) {
      if (allocation.allocator != allocator)
        continue;
      if (allocation.older)
        out.older_bytes += static_cast<double>(allocation.bytes);
      else
        ++out.allocations;
    }
  }

  /// What was in use at a time, by use and owner.
  [[nodiscard]] std::vector<MemoryPart> parts_at(std::uint32_t allocator,
                                                 std::int64_t at_ns,
                                                 const std::vector<MemoryUse>& uses) {
    std::map<std::pair<MemoryUse, std::uint32_t>, MemoryPart> by_owner;
    const std::vector<Allocation>& allocations = session_.allocators.allocations;
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      const Allocation& allocation = allocations[i];
      const bool is_in_use = allocation.start_ns <= at_ns && at_ns < allocation.end_ns;
      if (allocation.allocator != allocator || !is_in_use)
        continue;
      const std::uint32_t owner =
          owners_.owner_of(allocation, context_of(points_.of_allocation[i]));
      MemoryPart& part = by_owner[{uses[i], owner}];
      part.bytes += static_cast<double>(allocation.bytes);
      ++part.blocks;
    }
    std::vector<std::uint32_t> owners;
    for (const auto& [key, part] : by_owner)
      owners.push_back(key.second);
    const std::vector<std::string> texts = owners_.folded_texts(owners);
    std::map<std::pair<MemoryUse, std::string>, MemoryPart> by_text;
    std::size_t place = 0;
    for (const auto& [key, part] : by_owner) {
      MemoryPart& folded = by_text[{key.first, texts[place++]}];
      folded.bytes += part.bytes;
      folded.blocks += part.blocks;
      folded.is_of_time = owners_.is_time(key.second);
    }
    std::vector<MemoryPart> parts;
    for (auto& [key, part] : by_text) {
      part.use = key.first;
      part.owner = key.second;
      parts.push_back(std::move(part));
    }
    std::ranges::sort(parts, is_larger);
    return parts;
  }

  void add_parts(std::uint32_t allocator,
                 std::int64_t at_ns,
                 const std::vector<MemoryUse>& uses,
                 DeviceMemory& out) {
    out.parts = parts_at(allocator, at_ns, uses);
    std::map<MemoryUse, MemoryPart> by_use;
    double owned_bytes = 0;
    for (const MemoryPart& part : out.parts) {
      MemoryPart& of_use = by_use[part.use];
      of_use.use = part.use;
      of_use.bytes += part.bytes;
      of_use.blocks += part.blocks;
      if (!part.owner.empty())
        owned_bytes += part.bytes;
    }
    for (const auto& [use, part] : by_use)
      out.uses.push_back(part);
    std::ranges::sort(out.uses, is_larger);
    if (out.peak_bytes > 0)
      out.owned_share = owned_bytes / out.peak_bytes;
  }

  void add_failure(std::uint32_t allocator,
                   const MemoryUsage& usage,
                   const Reserved& reserved,
                   DeviceMemory& out) {
    const auto& failures = session_.allocators.failures;
    for (std::size_t i = 0; i < failures.size(); ++i) {
      const model::FailedAllocation& failed = failures[i];
      if (failed.allocator != allocator)
        continue;
      if (out.failure) {
        ++out.failure->count;
        continue;
      }
      model::MemoryFailure& failure = out.failure.emplace();
      failure.at_ns = since_begin(failed.at_ns);
      failure.owner = owners_.text(owners_.owner_of(failed, context_of(points_.of_failure[i])));
      failure.asked_bytes = static_cast<double>(failed.bytes);
      failure.free_bytes = static_cast<double>(failed.free_bytes);
      failure.in_use_bytes = usage.at(failed.at_ns);
      failure.reserved_bytes = reserved.at(failed.at_ns).value_or(0);
    }
  }

  /// A leak: more in use at the end of each step than of the one before, the first two steps aside,
  /// which fill caches.
  void add_growth(std::uint32_t allocator, const MemoryUsage& usage, DeviceMemory& out) {
    std::vector<std::int64_t> ends_ns;
    for (const std::int64_t end_ns : steps_.ends_ns)
      if (end_ns <= usage.times().back())
        ends_ns.push_back(end_ns);
    if (ends_ns.size() < 2 + kFewestStepsOfGrowth)
      return;
    std::vector<double> growths;
    for (std::size_t step = 2; step < ends_ns.size(); ++step)
      growths.push_back(usage.at(ends_ns[step]) - usage.at(ends_ns[step - 1]));
    const auto grew = std::ranges::count_if(growths, [](double bytes) { return bytes > 0; });
    if (static_cast<std::size_t>(grew) < growths.size())
      return;
    const auto middle = growths.begin() + std::ssize(growths) / 2;
    std::ranges::nth_element(growths, middle);
    if (*middle < kLeastGrowth)
      return;
    model::MemoryGrowth& growth = out.growth.emplace();
    growth.bytes_per_step = *middle;
    growth.steps = std::ssize(growths);
    growth.owner = owner_of_kept(allocator, ends_ns[1], ends_ns.back());
  }

  /// The owner of most of what was allocated after `from_ns` and was in use at `at_ns`.
  [[nodiscard]] std::string owner_of_kept(std::uint32_t allocator,
                                          std::int64_t from_ns,
                                          std::int64_t at_ns) {
    std::map<std::uint32_t, std::uint64_t> bytes_of;
    const std::vector<Allocation>& allocations = session_.allocators.allocations;
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      const Allocation& allocation = allocations[i];
      const bool is_kept = allocation.start_ns > from_ns && allocation.start_ns <= at_ns &&
                           allocation.end_ns > at_ns;
      if (allocation.allocator != allocator || !is_kept)
        continue;
      bytes_of[owners_.owner_of(allocation, context_of(points_.of_allocation[i]))] +=
          allocation.bytes;
    }
    const auto largest =
        std::ranges::max_element(bytes_of, {}, [](const auto& owner) { return owner.second; });
    return largest == bytes_of.end() ? std::string() : owners_.text(largest->first);
  }

  /// The highest of each of kMostPoints stretches.
  void add_points(const MemoryUsage& usage, const Reserved& reserved, DeviceMemory& out) const {
    const auto times = usage.times();
    const std::int64_t first_ns = times.front();
    const std::int64_t stretch_ns =
        (times.back() - first_ns) / static_cast<std::int64_t>(kMostPoints) + 1;
    std::size_t event = 0;
    while (event < times.size()) {
      const std::int64_t end_ns =
          first_ns + ((times[event] - first_ns) / stretch_ns + 1) * stretch_ns;
      std::size_t highest = event;
      for (; event < times.size() && times[event] < end_ns; ++event)
        if (usage.after_event(event) > usage.after_event(highest))
          highest = event;
      model::MemoryPoint& point = out.points.emplace_back();
      point.at_ns = std::max(0.0, since_begin(times[highest]));
      point.allocated_bytes = usage.after_event(highest);
      point.reserved_bytes = reserved.at(times[highest]);
    }
  }

  struct OfOccurrence {
    double allocated_bytes = 0, held_bytes = 0;
    std::int64_t allocations = 0;
  };

  /// An allocation counts in every range around it once.
  [[nodiscard]] std::vector<OfOccurrence> by_occurrence() const {
    std::vector<OfOccurrence> out(regions_.tree.parent.size());
    OccurrencesAround around(regions_.tree, contexts_);
    const std::vector<Allocation>& allocations = session_.allocators.allocations;
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      const Allocation& allocation = allocations[i];
      const auto bytes = static_cast<double>(allocation.bytes);
      around.for_each(context_of(points_.of_allocation[i]), [&](std::uint32_t o) {
        OfOccurrence& occurrence = out[o];
        occurrence.allocated_bytes += bytes;
        ++occurrence.allocations;
        const model::Range* range = closed_range(session_, regions_.tree, o);
        if (range != nullptr && allocation.end_ns > range->end_ns)
          occurrence.held_bytes += bytes;
      });
    }
    return out;
  }

  [[nodiscard]] double highest_in(const model::Range& range) const {
    const std::uint32_t process = session_.threads[range.thread].process;
    double highest = 0;
    for (std::size_t allocator = 0; allocator < usages_.size(); ++allocator)
      if (session_.allocators.allocators[allocator].process == process)
        highest = std::max(highest, usages_[allocator].highest(range.start_ns, range.end_ns));
    return highest;
  }

  void add_to_regions() {
    const std::vector<OfOccurrence> occurrences = by_occurrence();
    for (std::size_t r = 0; r < report_.regions.size() && r < regions_.keys.size(); ++r) {
      model::RegionMemory memory;
      regions_.for_each_closed(r, [&](std::uint32_t o, const model::Range& range) {
        if (is_beside_program(session_, range))
          return;
        memory.allocated_bytes += occurrences[o].allocated_bytes;
        memory.allocations += occurrences[o].allocations;
        memory.held_bytes = std::max(memory.held_bytes, occurrences[o].held_bytes);
        memory.peak_bytes = std::max(memory.peak_bytes, highest_in(range));
      });
      report_.regions[r].memory = memory;
    }
  }

  const Regions& regions_;
  const Session& session_;
  model::Report& report_;
  AskedPoints points_;
  Contexts contexts_;
  Steps steps_;
  MemoryOwners owners_;
  std::vector<MemoryUsage> usages_;
};

}  // namespace

void add_memory(const Regions& regions, model::Report& report) {
  if (regions.session.allocators.empty())
    return;
  MemoryOfReport(regions, report).run();
}

void add_region_memory(model::RegionMemory& to, const model::RegionMemory& from) {
  to.allocated_bytes += from.allocated_bytes;
  to.allocations += from.allocations;
  to.peak_bytes = std::max(to.peak_bytes, from.peak_bytes);
  to.held_bytes = std::max(to.held_bytes, from.held_bytes);
}

}  // namespace rangescope::analyze
