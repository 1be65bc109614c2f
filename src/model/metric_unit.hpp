// The unit of a hardware metric, from its name alone: neither .ncu-rep nor CUPTI's counter data say
// it.
//
// Names are <unit>__<counter>[_<qualifier>...][.<rollup>[.<submetric>]] with rollups sum, avg, min,
// max and submetrics per_second, per_cycle_*, peak_sustained, pct_of_peak_sustained_*; ratios end
// in .ratio, .pct or .max_rate. The quantity is what the counter's words say (bytes, sectors,
// cycles, inst, warps ...), the submetric divides it. A few names of launch__, profiler__ and
// derived__ do not follow and are listed in a table. Checked against the 2,685 names and units that
// ncu 2024.1.1 prints (tests/golden/ncu/metric_units_2024.1.1_base.tsv): all equal.
#pragma once

#include <string>
#include <string_view>

namespace rangescope::model {

/// How units are spelled. Nsight Compute changed its words in 2024.2; rangescope's own are those of
/// model::MetricDef.
enum class UnitSpelling : unsigned char {
  kModel,    ///< "ns", "byte/s", "1/s", "ratio" (a percent metric's values are divided by 100)
  kNcu2024,  ///< "nsecond", "byte/second", "/second", "%"
  kNcu2025,  ///< "ns", "byte/s", "", "%"
};

/// The base unit of the metric `name`, "" where it has none or it is unknown. O(length of the
/// name).
[[nodiscard]] std::string metric_unit(std::string_view name,
                                      UnitSpelling spelling = UnitSpelling::kModel);

/// True for metrics that ncu gives in percent and the model as 0..1.
[[nodiscard]] bool is_percent(std::string_view ncu_unit);

/// A unit as ncu printed it, of any version and scale: what it is in the model, and what to
/// multiply its values with.
/// ("Mbyte" -> "byte", 1e6; "%" -> "ratio", 0.01; "usecond" and "us" -> "ns", 1e3; "Ghz" -> "Hz",
/// 1e9.)
struct ScaledUnit {
  std::string unit;
  double factor = 1;
};
[[nodiscard]] ScaledUnit parse_ncu_unit(std::string_view ncu_unit);

}  // namespace rangescope::model
