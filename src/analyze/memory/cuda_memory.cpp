#include "analyze/memory/cuda_memory.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/memory/around.hpp"
#include "analyze/memory/usage.hpp"

namespace rangescope::analyze {
namespace {

using model::CudaMemory;
using model::MemoryEvent;
using model::MemoryOperation;
using model::RegionCudaMemory;
using model::Session;

/// Of each event of the session: the event that frees it, or that allocated what it frees.
std::vector<std::uint32_t> partners_of(const Session& session) {
  std::vector<std::uint32_t> partners(session.memory_events.size(), kNone);
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> in_use;
  for (std::uint32_t i = 0; i < partners.size(); ++i) {
    const MemoryEvent& event = session.memory_events[i];
    const std::pair key(event.process, event.address);
    if (event.operation == MemoryOperation::kAllocate)
      in_use[key] = i;
    if (event.operation != MemoryOperation::kFree)
      continue;
    const auto allocation = in_use.find(key);
    if (allocation == in_use.end())
      continue;
    partners[i] = allocation->second;
    partners[allocation->second] = i;
    in_use.erase(allocation);
  }
  return partners;
}

class CudaMemoryOfReport {
 public:
  CudaMemoryOfReport(const Regions& regions, const Contexts& contexts, model::Report& report)
      : regions_(regions),
        session_(regions.session),
        contexts_(contexts),
        report_(report),
        partners_(partners_of(session_)),
        call_ns_(session_.memory_events.size(), 0) {
    time_calls();
  }

  void run() {
    add_kinds();
    collect_usages();
    add_to_regions();
  }

 private:
  /// A call counts with its first event.
  void time_calls() {
    std::vector<char> is_counted(session_.launches.size(), 0);
    for (std::size_t i = 0; i < call_ns_.size(); ++i) {
      const std::uint32_t launch = session_.memory_events[i].launch;
      if (launch >= is_counted.size() || is_counted[launch] != 0)
        continue;
      is_counted[launch] = 1;
      const model::Launch& call = session_.launches[launch];
      if (call.end_ns != model::kOpen)
        call_ns_[i] = since_ns(call.start_ns, call.end_ns);
    }
  }

  [[nodiscard]] bool is_kept(std::size_t event) const {
    const bool is_allocation =
        session_.memory_events[event].operation == MemoryOperation::kAllocate;
    return is_allocation && partners_[event] == kNone;
  }

  /// Its allocation's; 0 of a free of what is older.
  [[nodiscard]] MemoryChange change_of(std::size_t event) const {
    const MemoryEvent& changed = session_.memory_events[event];
    if (changed.operation == MemoryOperation::kAllocate)
      return {changed.at_ns, changed.bytes};
    if (partners_[event] == kNone)
      return {changed.at_ns, 0};
    return {changed.at_ns, 0 - session_.memory_events[partners_[event]].bytes};
  }

  void add_kinds() {
    using Key = std::tuple<std::uint32_t, std::uint32_t, model::MemoryKind>;
    struct OfKind {
      CudaMemory memory;
      std::vector<MemoryChange> changes;
    };
    std::map<Key, OfKind> kinds;
    for (std::size_t i = 0; i < session_.memory_events.size(); ++i) {
      const MemoryEvent& event = session_.memory_events[i];
      OfKind& kind = kinds[{event.process, event.device, event.kind}];
      count(i, kind.memory);
      kind.changes.push_back(change_of(i));
    }
    for (auto& [key, kind] : kinds) {
      const auto [process, device, memory_kind] = key;
      const MemoryUsage usage(std::move(kind.changes));
      kind.memory.process = process;
      if (device < session_.devices.size())
        kind.memory.device = session_.devices[device].ordinal;
      kind.memory.kind = memory_kind;
      kind.memory.peak_bytes = usage.peak();
      kind.memory.peak_at_ns = std::max(0.0, since_ns(session_.begin_ns, usage.peak_at()));
      report_.cuda_memory.push_back(kind.memory);
    }
  }

  void count(std::size_t i, CudaMemory& memory) const {
    const MemoryEvent& event = session_.memory_events[i];
    memory.call_ns += call_ns_[i];
    if (event.operation == MemoryOperation::kFailedAllocation)
      ++memory.failures;
    if (event.operation == MemoryOperation::kFree)
      ++memory.frees;
    if (event.operation != MemoryOperation::kAllocate)
      return;
    ++memory.allocations;
    memory.allocated_bytes += static_cast<double>(event.bytes);
    if (!is_kept(i))
      return;
    ++memory.kept;
    memory.kept_bytes += static_cast<double>(event.bytes);
  }

  /// Of each device of each process, all kinds together.
  void collect_usages() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<MemoryChange>> changes;
    for (std::size_t i = 0; i < session_.memory_events.size(); ++i) {
      const MemoryEvent& event = session_.memory_events[i];
      if (is_on_device(event.kind))
        changes[{event.process, event.device}].push_back(change_of(i));
    }
    for (auto& [key, of_device] : changes)
      usages_.emplace_back(key.first, MemoryUsage(std::move(of_device)));
  }

  [[nodiscard]] double highest_in(const model::Range& range) const {
    const std::uint32_t range_process = session_.threads[range.thread].process;
    double highest = 0;
    for (const auto& [process, usage] : usages_)
      if (process == range_process)
        highest = std::max(highest, usage.highest(range.start_ns, range.end_ns));
    return highest;
  }

  /// Each event counts in every range around its call.
  [[nodiscard]] std::vector<RegionCudaMemory> by_occurrence() const {
    std::vector<RegionCudaMemory> out(regions_.tree.parent.size());
    OccurrencesAround around(regions_.tree, contexts_);
    for (std::size_t i = 0; i < session_.memory_events.size(); ++i) {
      const std::uint32_t launch = session_.memory_events[i].launch;
      if (launch >= contexts_.of_launch.size())
        continue;
      CudaMemory counted;
      count(i, counted);
      around.for_each(contexts_.of_launch[launch], [&](std::uint32_t occurrence) {
        RegionCudaMemory& memory = out[occurrence];
        memory.allocations += counted.allocations;
        memory.frees += counted.frees;
        memory.allocated_bytes += counted.allocated_bytes;
        memory.call_ns += counted.call_ns;
        memory.kept_bytes += counted.kept_bytes;
      });
    }
    return out;
  }

  void add_to_regions() {
    const std::vector<RegionCudaMemory> occurrences = by_occurrence();
    for (std::size_t r = 0; r < report_.regions.size() && r < regions_.keys.size(); ++r) {
      RegionCudaMemory memory;
      regions_.for_each_closed(r, [&](std::uint32_t occurrence, const model::Range& range) {
        if (is_beside_program(session_, range))
          return;
        add_region_cuda_memory(memory, occurrences[occurrence]);
        memory.peak_bytes = std::max(memory.peak_bytes, highest_in(range));
      });
      report_.regions[r].cuda_memory = memory;
    }
  }

  const Regions& regions_;
  const Session& session_;
  const Contexts& contexts_;
  model::Report& report_;
  std::vector<std::uint32_t> partners_;
  std::vector<double> call_ns_;                                ///< of each event
  std::vector<std::pair<std::uint32_t, MemoryUsage>> usages_;  ///< of a process
};

}  // namespace

void add_cuda_memory(const Regions& regions, const Contexts& contexts, model::Report& report) {
  const Session& session = regions.session;
  if (session.memory_events.empty())
    return;
  const bool has_contexts = contexts.of_launch.size() == session.launches.size();
  Contexts of_launches;
  if (!has_contexts)
    of_launches = build_contexts(session, regions.tree, regions.options);
  CudaMemoryOfReport(regions, has_contexts ? contexts : of_launches, report).run();
}

void add_region_cuda_memory(model::RegionCudaMemory& to, const model::RegionCudaMemory& from) {
  to.allocations += from.allocations;
  to.frees += from.frees;
  to.allocated_bytes += from.allocated_bytes;
  to.call_ns += from.call_ns;
  to.peak_bytes = std::max(to.peak_bytes, from.peak_bytes);
  to.kept_bytes += from.kept_bytes;
}

}  // namespace rangescope::analyze
