// A report and its session as SQLite tables, for `rangescope query` and `rangescope export`.
//
//   run(key, value)                          facts of the run
//   regions(id, parent, path, name, domain, kind, depth, pid, tid, <one column a measure>)
//                                            measure columns are tags with '_' for '.': wall_ns_inclusive,
//                                            gpu_kernel_ns
//   region_kernels(region, name, calls, total_ns, share)         the kernels of a region, most expensive first
//   metrics(region, kernel, ordinal, name, value, min, max, unit, rounds, source, absent)
//                                            kernel and ordinal are NULL for values of the region itself
//   ranges(id, name, domain, kind, start_ns, end_ns, pid, tid, end_tid, category, color, payload)
//   launches(id, name, kind, start_ns, end_ns, pid, tid, correlation)
//   kernels(id, name, short_name, start_ns, end_ns, duration_ns, pid, device, context, stream, launch, grid, block,
//           registers, shared_bytes)
//   copies(id, kind, bytes, start_ns, end_ns, pid, device, stream, launch)
//   losses(kind, severity, count, detail)
//
// Times are nanoseconds of the session. What is not known is NULL. Documented in docs/formats/sqlite-view.md.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/sqlite.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report::sqlite {

/// Creates and fills the tables. Large tables (ranges, launches, kernels, copies) are created always, but filled only
/// when `wanted` says so. O(rows).
[[nodiscard]] base::Result<void> write_database(const model::Report& report, const model::Session& session,
                                                base::Database& database,
                                                const std::function<bool(std::string_view table)>& wanted);

/// All of them, in a new file that takes the name when it is whole.
[[nodiscard]] base::Result<void> write_file(const model::Report& report, const model::Session& session,
                                            const std::filesystem::path& to);
[[nodiscard]] std::vector<std::string> table_names();

/// Does a file that begins so (256 bytes) come from write_database? Its application_id says it.
[[nodiscard]] bool is_own_export(std::string_view head);

}  // namespace rangescope::report::sqlite
