// PM sampling through CUPTI: which counters fit one pass of a chip, and a sampler of one device.
// Only cupti.cpp includes CUPTI's headers; a build without them has none.cpp, whose answers say so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sample/gpu/sample_writer.hpp"

namespace rangescope::sample {

/// A counter that is wanted, by the names that chips have for it: the first that the chip knows
/// counts.
using Wanted = std::vector<std::string>;

/// What is collected in one pass.
struct CounterSet {
  std::vector<std::string> metrics;
  std::vector<std::string>
      left_out;  ///< wanted ones that the chip does not have, or that would take another pass
};

struct Device {
  int ordinal = 0;  ///< as CUDA counts them
  std::string uuid, name, chip;
};

/// Number of samples that are awaited between two polls.
inline constexpr std::uint32_t kPollSamples = 128;

/// What a sampler has cost of a core, in nanoseconds, and for how much.
struct Spent {
  std::int64_t decoding = 0, evaluating = 0, clearing = 0;
  std::uint64_t polls = 0, samples = 0, cleared = 0;  ///< cleared: room for samples
  std::int64_t first_ns = 0, last_ns = 0;  ///< where the first sample begins and the last one ends
};

/// Samples one device. Nothing of any program is touched: no context is made.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Hands every sample that is ready to `to`; kIo where sampling broke down.
  [[nodiscard]] virtual base::Result<void> poll(SampleWriter& to) = 0;
  /// Ends sampling and hands over the rest.
  [[nodiscard]] virtual base::Result<void> stop(SampleWriter& to) = 0;
  [[nodiscard]] virtual Spent spent() const = 0;
};

/// CUPTI, loaded at run time.
class Cupti {
 public:
  virtual ~Cupti() = default;
  /// "CUPTI 13.0.1, /usr/local/cuda/lib64/libcupti.so.13"
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual base::Result<std::vector<std::string>> chips() const = 0;
  /// The largest beginning of `wanted`, in its order, that one pass of the chip collects. No GPU is
  /// needed.
  [[nodiscard]] virtual base::Result<CounterSet> choose(
      const std::string& chip, const std::vector<Wanted>& wanted) const = 0;
  /// CUDA's devices as this process sees them; starts the driver.
  [[nodiscard]] virtual base::Result<std::vector<Device>> devices() = 0;
  /// Begins to sample every `interval_ns`. kPermission, or kToolMissing where the device is busy or
  /// too old: `what` begins with `denied`, `busy`, `old` or `failed`.
  [[nodiscard]] virtual base::Result<std::unique_ptr<Sampler>> start(const Device& device,
                                                                     const CounterSet& set,
                                                                     std::int64_t interval_ns) = 0;
};

/// kToolMissing where CUPTI cannot be loaded, is too old, or was not built in.
[[nodiscard]] base::Result<std::unique_ptr<Cupti>> open_cupti();

}  // namespace rangescope::sample
