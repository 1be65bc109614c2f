// Roofline, bound and utilization of a region from its measured metrics, its GPU time and the peaks
// of the device.
//
// Roofline: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
// model for multicore architectures", CACM 52(4), 2009. attainable = min(peak, intensity *
// bandwidth). FLOPs and bytes are measured
// ("flop_*", "dram_bytes", "l2_bytes", "l1_bytes" of conf/metrics/roofline.yaml), time is GPU busy
// time of one occurrence.
#pragma once

#include <optional>
#include <vector>

#include "model/peaks.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// GPU busy time of one occurrence in ns: the timeline's union of work where there is one, else the
/// `gpu_time_ns` metric (which counts idle gaps); nothing without either.
[[nodiscard]] std::optional<double> busy_per_occurrence_ns(const model::Region& region);

/// One point per precision that did at least 1 % of the FLOPs and memory level with bytes. Empty
/// where FLOPs, bytes or time are missing. Roofs only where `peaks` has them (0 otherwise).
[[nodiscard]] std::vector<model::RooflinePoint> roofline(const model::Region& region,
                                                         const model::Peaks* peaks);

/// What bounds the region: "idle", "memory" (also "memory: L2", "memory: L1/TEX"), "compute:
/// <precision>", "balanced", "latency" or "unknown". Never from one number alone: memory and
/// compute must both be known, else "unknown" names what is missing.
[[nodiscard]] model::Bound classify(const model::Region& region, const model::Peaks* peaks);

/// Executed FLOPs over peak and busy time, and the region's useful FLOPs (utilization->useful_flop,
/// from the user) over peak and wall time. Useful FLOPs without peaks are kept, with the reason in
/// `formula`; nothing where nothing is known.
[[nodiscard]] std::optional<model::Utilization> utilization(const model::Region& region,
                                                            const model::Peaks* peaks);

/// Fills roofline, bound and utilization of every region that has metrics, GPU work or useful
/// FLOPs, and the bound of every kernel whose metrics say one.
void add_bounds(model::Report& report, const model::Peaks* peaks);

/// Peaks of a GPU that no file describes, from a report of ncu that holds its roofline: what the
/// hardware does in a cycle (peak_sustained) times the clock that was measured, the highest of all
/// results. Nothing where none names memory and some FLOPs. O(values).
[[nodiscard]] std::optional<model::Peaks> counted_peaks(const model::Session& session);

}  // namespace rangescope::analyze
