// Where the wall time of a region's threads went: Python, native code by library, CUDA calls by
// kind, waiting; and the functions that their call chains show.
//
// Calls and waits are recorded and so exact; waiting within a CUDA call is that call's. What
// remains of the wall time is shared out by samples. Without samples of the kernel
// (CpuProfile::kernel) their number falls short of the CPU time that was used: what is missing
// beyond chance is native, "[kernel]".
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "analyze/tree/contexts.hpp"
#include "analyze/tree/regions.hpp"
#include "model/metric_group.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Fills Region::cpu and Report::cpu_outside; without regions `whole`: what all threads ran, and
/// what the program's first one waited for. O(samples + waits + calls) after sorting, and for each
/// region its different stacks by their depth.
void add_cpu(const model::Session& session,
             const Options& options,
             const Tree& tree,
             const Contexts& contexts,
             const std::vector<RegionKey>& keys,
             model::Report& report,
             base::Held<model::CpuWork>& whole);

/// "launch", "allocate", "copy", "set", "synchronize", "load", "other": kind of a function of
/// CUDA's runtime or driver.
[[nodiscard]] std::string_view cuda_kind(std::string_view function);

/// Name, file and module of a frame; times are 0.
[[nodiscard]] model::CpuFunction function_of(const model::Session& session, std::uint32_t frame);

/// Adds another region's work, for rows of several regions.
void add_cpu_work(model::CpuWork& into, const model::CpuWork& other);

/// Parts and functions of a region whose CPU was sampled, without those of the regions inside it.
[[nodiscard]] model::CpuWork own_cpu_work(const model::Report& report, const model::Region& region);

// Metrics of a region from the events that its threads were counted by (model::CpuCount).

/// Adds the metrics of the groups whose counters were recorded, and one of each other counter
/// ("cpu_page_faults"), to the regions and rows that have them; per occurrence. Source "CPU
/// events", or "CPU events, sampled" where a record represents many: then `min` and `max` hold the
/// value (95 %), and `rounds` are the records. Their `column` metrics become the report's.
/// O(regions * metrics).
void add_cpu_metrics(std::span<const model::MetricGroup> groups, model::Report& report);

// A program without ranges is a region itself: from its start to its exit, with all its threads and
// processes.

/// The process that rangescope started, as the session has it; kNone where that is not known.
[[nodiscard]] std::uint32_t first_process(const model::Session& session);

/// Where the session has no range: makes the program the report's one region, with all GPU work of
/// the run and `cpu` in it, and notes how to name its parts. Before the rows are made.
void make_program_region(const model::Session& session,
                         base::Held<model::CpuWork> cpu,
                         model::Report& report);

}  // namespace rangescope::analyze
