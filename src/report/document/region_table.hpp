// The table of regions that people read: the rows that matter, columns that this run has something for, cells as text.
//
// By default one table over all processes (Report::rows: siblings that differ by a number are one row), of the largest
// twenty regions with what is above them, and a row for what lies outside all ranges. With Style::all every region, and
// a table for each process. Columns whose every cell would be unknown are left out, unless they were asked for. Metrics
// with long names are a table of their own, turned: metrics as rows. Shared by the terminal and Markdown.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {

/// Rows shown where nobody says how many: a screen.
inline constexpr std::size_t kDefaultRows = 20;

struct TableLine {
  std::string label;  ///< printable; "layer_# x32" for siblings that were put together
  std::size_t depth = 0;
  const model::Region* region = nullptr;  ///< null for what lies outside all ranges
  std::vector<std::string> cells;         ///< one a column; "-" where unknown
};

/// Metrics as rows.
struct TurnedTable {
  std::vector<std::string> heads;              ///< labels of regions or kernels
  std::vector<std::vector<std::string>> rows;  ///< name, then one cell a head
  std::size_t hidden = 0;                      ///< heads that have no room
};

struct RegionTable {
  std::string title;  ///< "all processes", "rank 3 (process 123 python3)", "thread 124 of process 123"
  std::vector<ColumnView> columns;
  std::vector<TableLine> lines;
  std::size_t hidden = 0;  ///< regions that are not shown, nor within a row that is
  TurnedTable metrics;     ///< empty unless names are too long for columns
};

/// The tables, in order. kUsage with the nearest name for an unknown column or sort.
[[nodiscard]] base::Result<std::vector<RegionTable>> region_tables(const model::Report& report, const Style& style);

struct KernelTable {
  std::vector<std::string> heads;  ///< "kernel", "calls" ... ; the first is text
  std::vector<std::vector<std::string>> rows;
  std::size_t hidden = 0;
  TurnedTable metrics;
};
/// The largest kernels of the run, `style.top_kernels` of them, with their counters where there are some.
[[nodiscard]] KernelTable kernel_table(const model::Report& report, const Style& style);

}  // namespace rangescope::report
