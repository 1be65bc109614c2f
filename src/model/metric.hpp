// Hardware counters and what is computed from them, as measured: one Measurement per range
// occurrence round, kernel, graph or ncu result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpu.hpp"
#include "model/range.hpp"

namespace rangescope::model {

/// A metric by name. Units are base units ("byte", "ns", "byte/s", "ratio": percent is 0..1).
struct MetricDef {
  std::string name;    ///< "dram__bytes.sum"
  std::string unit;    ///< "" where it has none or it is unknown
  std::string source;  ///< "cupti", "ncu", "derived: <formula>"
};

/// Begins the source of events of the CPU.
inline constexpr std::string_view kCpuEvents = "CPU events";

struct MetricValue {
  std::uint32_t metric = 0;  ///< index into Session::metrics
  double value = 0;          ///< NaN is never stored: an absent value is absent
};

enum class MeasuredScope : std::uint8_t { kRange, kKernel, kGraph, kCommandList };

/// The ranges that were open around a measurement. NVTX state of ncu is per domain: bottom to top
/// for push/pop.
struct OpenRange {
  std::uint32_t domain = 0;
  StringId name = 0;
  RangeKind kind = RangeKind::kPushPop;
  /// Tells occurrences of one range of a process apart, where the file says so (ncu: API calls
  /// before it began, or the start id, plus 1); 0 where it does not.
  std::uint64_t instance = 0;
  bool inherited = false;  ///< opened by another thread than the one that launched
  bool module = false;     ///< as in Range
};

/// One complete set of values for one thing that was measured.
struct Measurement {
  MeasuredScope scope = MeasuredScope::kKernel;
  std::uint32_t process = 0;
  std::uint32_t thread = kNone;
  std::uint32_t device = kNone;
  std::uint32_t kernel_name = kNone;  ///< index into Session::kernel_names
  std::uint32_t shape = kNone;
  std::uint32_t stream = kNone;
  std::uint32_t ordinal = 0;         ///< position among the kernels of its range occurrence, from 0
  std::uint32_t occurrence = kNone;  ///< first occurrence of the range that took part
  std::uint32_t passes = 1;
  std::uint32_t launches =
      1;  ///< that the values are means over: summaries of ncu have more than one
  /// Per domain bottom to top. The last one is what kRange measured; empty when it is not an NVTX
  /// range.
  std::vector<OpenRange> ranges;
  std::vector<MetricValue> values;
  std::string note;  ///< anything a reader of the number must know ("caches flushed before replay")
};

}  // namespace rangescope::model
