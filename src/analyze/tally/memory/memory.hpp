// Memory of allocators in digests: what a rank's report says of each, but for its curve over time,
// and of each region. Bytes are integers, which add up in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/statistics/sums.hpp"
#include "model/memory_use.hpp"
#include "model/range.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::tally {

struct Digest;
struct Places;

/// Parts that are kept of a peak: those with most bytes.
inline constexpr std::size_t kMostMemoryParts = 1024;

/// As model::MemoryPart; texts are names.
struct PartOfMemory {
  model::MemoryUse use = model::MemoryUse::kTemporary;
  std::uint32_t owner = 0;
  bool is_of_time = false;
  std::int64_t bytes = 0, blocks = 0;
};

/// As model::MemoryGrowth.
struct GrowthOfMemory {
  double bytes_per_step = 0;
  std::int64_t steps = 0;
  std::uint32_t owner = 0;
};

/// As model::MemoryFailure.
struct FailureOfMemory {
  std::int64_t at_ns = 0;
  std::uint32_t owner = 0;
  std::int64_t asked_bytes = 0, in_use_bytes = 0, reserved_bytes = 0, free_bytes = 0, count = 0;
};

/// As model::DeviceMemory; texts are names, times UTC.
struct MemoryOfDevice {
  std::uint32_t process = 0;  ///< index into Digest::processes
  std::uint32_t device = 0, allocator = 0, sizes = 0;
  std::int64_t allocations = 0, older_bytes = 0, end_bytes = 0, peak_bytes = 0, peak_at_ns = 0;
  std::int64_t peak_reserved_bytes = kUnknown, reserved_at_peak_bytes = kUnknown;
  std::int64_t steps = 0;
  double owned_share = 0;
  std::vector<PartOfMemory> uses, parts;
  std::optional<GrowthOfMemory> growth;
  std::optional<FailureOfMemory> failure;
};

/// As model::RegionMemory.
struct MemoryOfRegion {
  std::uint32_t region = 0;  ///< index into Digest::regions
  std::int64_t allocations = 0, allocated_bytes = 0, peak_bytes = 0, held_bytes = 0;

  void add(const MemoryOfRegion& other);
};

/// Of a rank's report, whose first `regions` are those of the digest.
void tally_memory(const model::Report& report,
                  std::size_t regions,
                  const std::function<std::uint32_t(std::string_view)>& name,
                  Digest& digest);

/// renumber() of memory.
void renumber_memory(Digest& digest, const Places& places);

/// Adds what `from` has of regions, each once, in any order; `into` is by region, and stays so.
void add_memory_of_regions(const std::vector<MemoryOfRegion>& from,
                           std::vector<MemoryOfRegion>& into);

/// Fills Report::memory and Region::memory, behind its processes and regions. `region_of`: of each
/// of the digest's regions that of the report.
void report_memory(const Digest& digest,
                   const std::vector<std::uint32_t>& region_of,
                   const model::Session& session,
                   model::Report& report);

}  // namespace rangescope::analyze::tally
