// GPU work of every region, of the whole run, and of what lies outside all ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/tree/busy.hpp"
#include "base/result.hpp"
#include "model/report.hpp"
#include "model/session.hpp"
#include "model/sketch.hpp"

namespace rangescope::analyze {

/// What the sums of GPU work are made of, for those who need more of it than a report holds.
struct GpuDetails {
  Sets sets;
  KernelGroups groups;
  Busy busy;
  std::vector<char> paused;  ///< as touched_by_pause()
};

/// Fills `gpu` of the report's regions, its totals, kernels and busy times of samples. `sampled`:
/// occurrences behind each region's samples. Adds losses for work whose launch is not known. GPU
/// busy time of each occurrence.
std::vector<std::uint64_t> add_gpu_work(const Regions& regions,
                                        const Contexts& contexts,
                                        const std::vector<std::vector<std::uint32_t>>& sampled,
                                        const std::vector<char>& chosen_kernels,
                                        model::Report& report,
                                        GpuDetails* details = nullptr);

/// Kernel time and busy time of each occurrence of a region that has ended and that no pause
/// touched.
struct OccurrenceWork {
  std::vector<std::int64_t> kernel_ns, busy_ns;
  model::Distribution without;  ///< of more that are not listed: zeros
};
[[nodiscard]] OccurrenceWork occurrence_work(const Regions& regions,
                                             std::size_t r,
                                             const Busy& busy,
                                             const std::vector<char>& paused);

/// Of an input without kernels: the span of the regions' GPU work, from Session::projections.
void add_projections(const Regions& regions, model::Report& report);

// Flat regions from totals by name (model::Summary): what an input without a timeline can say about
// ranges and kernels.
//
// A region has the path of its own name only. What cannot be known (nesting, exclusive times, busy
// time, overlap, threads) is absent: NaN or -1, which model::Measure turns into "no value".
// O(rows).

/// GPU work of which nothing is known yet: every count -1, every time NaN.
[[nodiscard]] model::GpuWork unknown_work();

/// Adds regions, kernels and totals of `session.summary` to the report. kUsage for an expression
/// that cannot be parsed.
[[nodiscard]] base::Result<void> add_summaries(const model::Session& session,
                                               const Options& options,
                                               model::Report& report);

// Operators of a framework by name, and by name and shapes of their inputs, as PyTorch's
// key_averages() sums them.
//
// One pass over each thread's ranges and CUDA functions in the order in which they began, with the
// stack of those that are open: O(n log n). Inclusive times of an operator inside one of its own
// name count twice, as they do there.

/// Fills report.operators and report.operators_by_shape; nothing where no process of the session
/// has operators, but the functions of a recording of CUDA calls alone. "ProfilerStep#12" is listed
/// as "ProfilerStep*".
void add_operators(const model::Session& session, model::Report& report);

}  // namespace rangescope::analyze
