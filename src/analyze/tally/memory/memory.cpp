#include "analyze/tally/memory/memory.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "analyze/tally/digest.hpp"
#include "analyze/tally/report.hpp"

namespace rangescope::analyze::tally {
namespace {

using model::DeviceMemory;
using model::MemoryPart;
using NameOf = std::function<std::uint32_t(std::string_view)>;

std::int64_t to_integer(double value) {
  return std::llround(value);
}

std::int64_t to_integer(const std::optional<double>& value) {
  return value ? std::llround(*value) : kUnknown;
}

double to_real(std::int64_t value) {
  return static_cast<double>(value);
}

std::optional<double> optional_real(std::int64_t value) {
  if (value == kUnknown)
    return std::nullopt;
  return to_real(value);
}

std::vector<PartOfMemory> largest_parts(const std::vector<MemoryPart>& parts, const NameOf& name) {
  std::vector<PartOfMemory> kept;
  for (const MemoryPart& part : parts) {
    if (kept.size() == kMostMemoryParts)
      break;
    kept.push_back(
        {part.use, name(part.owner), part.is_of_time, to_integer(part.bytes), part.blocks});
  }
  return kept;
}

MemoryOfDevice memory_of(const DeviceMemory& from, std::int64_t begin_ns, const NameOf& name) {
  MemoryOfDevice out;
  out.process = from.process;
  out.device = from.device;
  out.allocator = name(from.allocator);
  out.sizes = name(from.sizes);
  out.allocations = from.allocations;
  out.older_bytes = to_integer(from.older_bytes);
  out.end_bytes = to_integer(from.end_bytes);
  out.peak_bytes = to_integer(from.peak_bytes);
  out.peak_at_ns = plus(begin_ns, to_integer(from.peak_at_ns));
  out.peak_reserved_bytes = to_integer(from.peak_reserved_bytes);
  out.reserved_at_peak_bytes = to_integer(from.reserved_at_peak_bytes);
  out.steps = from.steps;
  out.owned_share = from.owned_share;
  out.uses = largest_parts(from.uses, name);
  out.parts = largest_parts(from.parts, name);
  if (from.growth)
    out.growth = {from.growth->bytes_per_step, from.growth->steps, name(from.growth->owner)};
  if (!from.failure)
    return out;
  const model::MemoryFailure& failure = *from.failure;
  out.failure = {plus(begin_ns, to_integer(failure.at_ns)),
                 name(failure.owner),
                 to_integer(failure.asked_bytes),
                 to_integer(failure.in_use_bytes),
                 to_integer(failure.reserved_bytes),
                 to_integer(failure.free_bytes),
                 failure.count};
  return out;
}

class MemoryReporter {
 public:
  MemoryReporter(const Digest& digest, const model::Session& session)
      : digest_(digest), session_(session) {}

  [[nodiscard]] DeviceMemory memory(const MemoryOfDevice& from) const {
    DeviceMemory out;
    out.process = from.process;
    out.device = from.device;
    out.allocator = text(from.allocator);
    out.sizes = text(from.sizes);
    out.allocations = from.allocations;
    out.older_bytes = to_real(from.older_bytes);
    out.end_bytes = to_real(from.end_bytes);
    out.peak_bytes = to_real(from.peak_bytes);
    out.peak_at_ns = time(from.peak_at_ns, from.process);
    out.peak_reserved_bytes = optional_real(from.peak_reserved_bytes);
    out.reserved_at_peak_bytes = optional_real(from.reserved_at_peak_bytes);
    out.steps = from.steps;
    out.owned_share = from.owned_share;
    out.uses = parts(from.uses);
    out.parts = parts(from.parts);
    if (from.growth)
      out.growth = {from.growth->bytes_per_step, from.growth->steps, text(from.growth->owner)};
    if (!from.failure)
      return out;
    const FailureOfMemory& failure = *from.failure;
    out.failure = {time(failure.at_ns, from.process),
                   text(failure.owner),
                   to_real(failure.asked_bytes),
                   to_real(failure.in_use_bytes),
                   to_real(failure.reserved_bytes),
                   to_real(failure.free_bytes),
                   failure.count};
    return out;
  }

 private:
  [[nodiscard]] const std::string& text(std::uint32_t name) const { return digest_.names[name]; }

  /// Since the run's start, by the clock that the process's times were brought to.
  [[nodiscard]] double time(std::int64_t at_ns, std::uint32_t process) const {
    const std::int64_t recorded_ns = since(digest_.processes[process].start_ns, digest_);
    const std::int64_t start_ns = session_.processes[process].start_ns;
    return to_real(since(at_ns, digest_)) + to_real(start_ns) - to_real(recorded_ns) -
           to_real(session_.begin_ns);
  }

  [[nodiscard]] std::vector<MemoryPart> parts(const std::vector<PartOfMemory>& from) const {
    std::vector<MemoryPart> out;
    for (const PartOfMemory& part : from)
      out.push_back(
          {part.use, text(part.owner), part.is_of_time, to_real(part.bytes), part.blocks});
    return out;
  }

  const Digest& digest_;
  const model::Session& session_;
};

}  // namespace

void MemoryOfRegion::add(const MemoryOfRegion& other) {
  allocations = plus(allocations, other.allocations);
  allocated_bytes = plus(allocated_bytes, other.allocated_bytes);
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
  held_bytes = std::max(held_bytes, other.held_bytes);
}

void tally_memory(const model::Report& report,
                  std::size_t regions,
                  const NameOf& name,
                  Digest& digest) {
  for (const DeviceMemory& memory : report.memory)
    digest.memory.push_back(memory_of(memory, digest.begin_ns, name));
  for (std::size_t region = 0; region < regions; ++region) {
    const auto& memory = report.regions[region].memory;
    const bool has_some = memory && (memory->allocations > 0 || memory->peak_bytes > 0);
    if (!has_some)
      continue;
    digest.memory_of_regions.push_back({static_cast<std::uint32_t>(region),
                                        memory->allocations,
                                        to_integer(memory->allocated_bytes),
                                        to_integer(memory->peak_bytes),
                                        to_integer(memory->held_bytes)});
  }
}

void renumber_memory(Digest& digest, const Places& places) {
  const auto move = [](const std::vector<std::uint32_t>& to, std::uint32_t& number) {
    if (!to.empty())
      number = to[number];
  };
  for (MemoryOfDevice& memory : digest.memory) {
    move(places.processes, memory.process);
    move(places.names, memory.allocator);
    move(places.names, memory.sizes);
    for (PartOfMemory& part : memory.uses)
      move(places.names, part.owner);
    for (PartOfMemory& part : memory.parts)
      move(places.names, part.owner);
    if (memory.growth)
      move(places.names, memory.growth->owner);
    if (memory.failure)
      move(places.names, memory.failure->owner);
  }
  for (MemoryOfRegion& memory : digest.memory_of_regions)
    move(places.regions, memory.region);
}

void add_memory_of_regions(const std::vector<MemoryOfRegion>& from,
                           std::vector<MemoryOfRegion>& into) {
  if (from.empty())
    return;
  const auto added = into.insert(into.end(), from.begin(), from.end());
  const auto is_before = [](const MemoryOfRegion& a, const MemoryOfRegion& b) {
    return a.region < b.region;
  };
  std::sort(added, into.end(), is_before);
  std::inplace_merge(into.begin(), added, into.end(), is_before);
  std::vector<MemoryOfRegion> sums;
  for (const MemoryOfRegion& memory : into) {
    const bool is_same = !sums.empty() && sums.back().region == memory.region;
    if (is_same)
      sums.back().add(memory);
    if (!is_same)
      sums.push_back(memory);
  }
  into = std::move(sums);
}

void report_memory(const Digest& digest,
                   const std::vector<std::uint32_t>& region_of,
                   const model::Session& session,
                   model::Report& report) {
  if (digest.memory.empty())
    return;
  const MemoryReporter reporter(digest, session);
  for (const MemoryOfDevice& memory : digest.memory)
    report.memory.push_back(reporter.memory(memory));
  // As of a recording: a region without allocations has none, which is known.
  for (model::Region& region : report.regions)
    region.memory.emplace();
  for (const MemoryOfRegion& tallied : digest.memory_of_regions) {
    model::RegionMemory& memory = *report.regions[region_of[tallied.region]].memory;
    memory.allocations = tallied.allocations;
    memory.allocated_bytes = to_real(tallied.allocated_bytes);
    memory.peak_bytes = to_real(tallied.peak_bytes);
    memory.held_bytes = to_real(tallied.held_bytes);
  }
}

}  // namespace rangescope::analyze::tally
