// Samples of a device: what its counters, its energy meter or its clocks said over short stretches,
// whatever ran.
//
// A stream is one sampler of one device: columns over samples in time order, which do not overlap.
// Gaps between them are losses and are left as gaps.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace rangescope::model {

/// What a sample's value means when samples are put together.
enum class SampleKind : std::uint8_t {
  kAmount,  ///< adds up: bytes, joules
  kShare,   ///< of what the device can do at most, 0..1: adds up as time at full load
  kMean,    ///< of a state that work does not add to: a clock, a temperature
  kMax,     ///< the largest counts: memory in use
};

struct SampledMetric {
  std::string name;
  std::string unit;   ///< as MetricDef::unit
  std::string title;  ///< column head, where it is one of the most telling
  SampleKind kind = SampleKind::kShare;
  std::vector<float> values;  ///< one a sample; NaN where it was not read
};

struct SampleStream {
  std::string source;  ///< "CUPTI PM sampling", "NVML", "nsys GPU metrics"
  std::string uuid, name, chip;
  std::uint32_t device =
      std::numeric_limits<std::uint32_t>::max();  ///< index into Session::devices; kNone: unknown
  std::int64_t interval_ns = 0;
  /// Times are of the GPU's timer: `offset_ns` brings them about onto the session's clock, what ran
  /// says how exactly.
  bool other_clock = false;
  std::int64_t offset_ns = 0;
  std::vector<std::int64_t> start_ns, end_ns;
  std::vector<SampledMetric> metrics;
};

}  // namespace rangescope::model
