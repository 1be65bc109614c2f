// The table of regions that people read: the rows that matter, columns that this run has something
// for, cells as text.
//
// By default one table over all processes (Report::rows: siblings that differ by a number are one
// row), of the largest twenty regions with what is above them, and rows for what lies outside all
// ranges and for the whole run. With Style::all every region, and a table for each process. Columns
// whose every cell would be unknown are left out, unless they were asked for. Metrics with long
// names are a table of their own, turned: metrics as rows.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "report/document/document.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {

/// The tables with what is to say of their regions, and with Style::explain what their columns are
/// (`explained`). kUsage with the nearest name for an unknown column or sort.
[[nodiscard]] base::Result<std::vector<Section>> region_sections(
    const model::Report& report, const Style& style, std::vector<ColumnView>& explained);

/// The `most` largest kernels of the run, with their counters where there are some: a table, and
/// those with long names as one of metrics by kernel.
struct KernelGrids {
  Grid kernels, metrics;
};
[[nodiscard]] KernelGrids kernel_grids(const model::Report& report, std::size_t most);
/// Columns before the counters.
inline constexpr std::size_t kKernelColumns = 6;

/// Collectives and messages of a parallel job: those with rows, each of at most `most` rows, the
/// most waiting first.
[[nodiscard]] std::vector<Section> communication_sections(const model::Report& report,
                                                          std::size_t most);

/// Why warps of kernels wait, where the program counter was sampled: what saves most first.
[[nodiscard]] Grid stall_grid(const model::Report& report, std::size_t most);

/// The operators of a framework.
[[nodiscard]] Grid operator_grid(const model::Report& report, std::size_t most);

}  // namespace rangescope::report
