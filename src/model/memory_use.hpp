// What used the memory of a GPU, as a report has it: at the peak and over time, of what kind, and
// whose.
//
// Every amount is bytes of an allocator's blocks. What is 0 was measured; what is unknown is
// absent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/memory.hpp"
#include "model/range.hpp"

namespace rangescope::model {

/// What an allocation is for, by when it lives: docs/manual/memory.md has the rules.
enum class MemoryUse : std::uint8_t {
  kParameters,      ///< in use before the recording and to its end
  kGradients,       ///< allocated in a step, read by its optimizer, then freed
                    ///< step's
  kOptimizerState,  ///< allocated by an optimizer, which keeps it
  kActivations,     ///< allocated in a step and freed in it
  kCache,           ///< kept over steps: workspaces of libraries, caches of keys and values
  kTemporary,       ///< freed after a few further allocations
  kOlder,           ///< in use before the recording, of any kind
};
inline constexpr std::array<std::string_view, 7> kMemoryUseNames = {
    "parameters", "gradients", "optimizer state", "activations", "cache", "temporary", "older"};
[[nodiscard]] constexpr std::string_view memory_use_name(MemoryUse use) {
  return kMemoryUseNames[static_cast<std::size_t>(use)];
}

/// A part of what is in use at a time.
struct MemoryPart {
  MemoryUse use = MemoryUse::kTemporary;
  std::string owner;        ///< module, range, or line of the program; "" where nothing says
  bool is_of_time = false;  ///< nothing else is known: the owner is when it was allocated
  double bytes = 0;
  std::int64_t blocks = 0;
};

struct MemoryPoint {
  double at_ns = 0;  ///< since the run's start
  double allocated_bytes = 0;
  std::optional<double> reserved_bytes;
};

/// An allocation that failed.
struct MemoryFailure {
  double at_ns = 0;
  std::string owner;
  double asked_bytes = 0;
  double in_use_bytes = 0;
  double reserved_bytes = 0;
  double free_bytes = 0;   ///< of the device
  std::int64_t count = 1;  ///< how often
};

/// What is in use at the end of each step, where that grows from step to step.
struct MemoryGrowth {
  double bytes_per_step = 0;
  std::int64_t steps = 0;  ///< over which it grew
  std::string owner;       ///< of most of it
};

/// One allocator of one device of one process.
struct DeviceMemory {
  std::uint32_t process = 0;  ///< index in Report::processes
  std::uint32_t device = 0;
  std::string allocator;  ///< "PyTorch"
  std::string sizes;      ///< "recorded", "replayed", "rounded": how well blocks are known
  std::int64_t allocations = 0;
  double older_bytes = 0;  ///< in use when the recording began
  double end_bytes = 0;    ///< in use when it ended
  double peak_bytes = 0;
  double peak_at_ns = 0;
  std::optional<double> peak_reserved_bytes;
  std::optional<double> reserved_at_peak_bytes;
  std::int64_t steps = 0;         ///< whose ends are known
  double owned_share = 0;         ///< of the peak, with an owner
  std::vector<MemoryPart> uses;   ///< of the peak by use, most first; without owners
  std::vector<MemoryPart> parts;  ///< of the peak by use and owner, most first
  std::optional<MemoryGrowth> growth;
  std::optional<MemoryFailure> failure;  ///< the first
  std::vector<MemoryPoint> points;       ///< a few hundred, the highest of each stretch
};

/// Memory of one kind that a process took from CUDA itself.
struct CudaMemory {
  std::uint32_t process = 0;            ///< index in Report::processes
  std::optional<std::uint32_t> device;  ///< ordinal; absent of host memory
  MemoryKind kind = MemoryKind::kUnknown;
  std::int64_t allocations = 0, frees = 0;
  std::int64_t failures = 0;  ///< allocations that failed
  double allocated_bytes = 0;
  double call_ns = 0;     ///< in the calls that allocate and free
  double peak_bytes = 0;  ///< of what was allocated while it was recorded
  double peak_at_ns = 0;
  std::int64_t kept = 0;  ///< allocations that were not freed while it was recorded
  double kept_bytes = 0;
};

/// What a region's instances took from CUDA itself.
struct RegionCudaMemory {
  std::int64_t allocations = 0, frees = 0;
  double allocated_bytes = 0;
  double call_ns = 0;
  double peak_bytes = 0;  ///< most that was in use on one device while an instance ran
  double kept_bytes = 0;  ///< allocated inside, and not freed while it was recorded
};

/// Memory of a region's instances.
struct RegionMemory {
  double allocated_bytes = 0;  ///< sum of allocations inside
  std::int64_t allocations = 0;
  double peak_bytes = 0;  ///< most that was in use on one device while an instance ran
  double held_bytes = 0;  ///< most that an instance allocated and had not freed at its end
};

}  // namespace rangescope::model
