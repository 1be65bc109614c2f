// The table of regions for people: the largest rows, the columns that this run has values for.
//
// By default there is one table over all processes (Report::rows: siblings that differ by a number
// are one row): the twenty largest regions and their ancestors, the time outside all ranges and the
// whole run. With Style::all it shows every region, and each process has a table. Default columns
// without information are left out. Metrics with long names get a table of their own, in which
// metrics are rows.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "report/document/document.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {

/// The tables and notes on their regions; `first_columns` receives the columns of the first table.
/// kUsage with the nearest name for an unknown column or sort.
[[nodiscard]] base::Result<std::vector<Section>> region_sections(
    const model::Report& report, const Style& style, std::vector<ColumnView>& first_columns);

/// The `top` kernels with most time and their counters; counters with long names are in `metrics`.
struct KernelGrids {
  Grid kernels, metrics;
};
[[nodiscard]] KernelGrids kernel_grids(const model::Report& report, std::size_t top);
/// Columns of KernelGrids::kernels before the counters.
inline constexpr std::size_t kKernelColumns = 6;

/// Collectives and messages of a parallel job, longest wait first: a section of at most `max_rows`
/// rows for each, none for an empty one.
[[nodiscard]] std::vector<Section> communication_sections(const model::Report& report,
                                                          std::size_t max_rows);

/// Why warps of kernels wait, from samples of the program counter; largest possible saving first.
[[nodiscard]] Grid stall_grid(const model::Report& report, std::size_t max_rows);

/// The operators of a framework.
[[nodiscard]] Grid operator_grid(const model::Report& report, std::size_t max_rows);

}  // namespace rangescope::report
