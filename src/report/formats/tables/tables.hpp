// A report and its session as tables: the one definition of their names, columns and rows, for
// SQLite (tables/database.hpp) and for Parquet (tables/parquet.hpp).
//
//   run(key, value)
//       facts of the run
//   regions(id, parent, path, name, domain, kind, depth, pid, tid, ...)
//       then a column for each measure: its tag with '_' for '.', as wall_ns_inclusive
//   region_kernels(region, name, calls, total_ns, share)
//       kernels of a region, most expensive first
//   metrics(region, kernel, ordinal, name, value, min, max, unit, rounds, source, absent)
//       kernel and ordinal are NULL for values of the region itself
//   ranges(id, name, domain, kind, start_ns, end_ns, pid, tid, end_tid, category, color, payload)
//   launches(id, name, kind, start_ns, end_ns, pid, tid, correlation)
//   kernels(id, name, short_name, start_ns, end_ns, duration_ns, pid, device, context, stream,
//           launch, grid, block, registers, shared_bytes, place)
//   places(place, region, innermost)
//       the regions that contain the kernels of a place, with all their ancestors
//   copies(id, kind, bytes, start_ns, end_ns, pid, device, stream, launch, source, destination)
//   memory_events(id, operation, kind, bytes, at_ns, pid, tid, device, stream, launch, address,
//   pool) event_calls(launch, operation, event, pid, stream) losses(kind, severity, count, detail)
//   memory(id, pid, device, allocator, sizes, allocations, older_bytes, end_bytes, peak_bytes,
//          peak_at_ns, peak_reserved_bytes, steps, owned_share, growth_bytes_per_step,
//          failed_bytes, failed_owner)
//   memory_parts(memory, use, owner, bytes, blocks)
//       parts of the peak
//   memory_points(memory, at_ns, allocated_bytes, reserved_bytes)
//
// Times are nanoseconds of the session. Unknown values are NULL. docs/formats/sqlite-view.md
// documents these and the other tables.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/places.hpp"
#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report::tables {

/// What is written: a report, its session, and where its kernels belong.
struct Input {
  const model::Report& report;
  const model::Session& session;
  const model::Places& places;
};

struct TableColumn {
  enum Type : std::uint8_t {
    kInteger,
    kReal,
    kText
  };  ///< 64 bits each; text in the bytes of the session
  std::string name;
  Type type = kText;
};

/// Takes the values of a table, row by row in the order of its columns.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual void integer(std::int64_t value) = 0;
  virtual void real(double value) = 0;  ///< no NaN
  virtual void text(std::string_view value) = 0;
  virtual void null() = 0;
  [[nodiscard]] virtual base::Result<void> end() = 0;     ///< of a row
  [[nodiscard]] virtual base::Result<void> finish() = 0;  ///< of the table
};

class Store {
 public:
  virtual ~Store() = default;
  [[nodiscard]] virtual base::Result<std::unique_ptr<Rows>> begin(
      std::string_view table, const std::vector<TableColumn>& columns) = 0;
};

/// Every table, one after the other. Large ones (ranges, launches, kernels, copies, samples) are
/// begun always, but filled only when `wanted(table)`. O(rows).
[[nodiscard]] base::Result<void> write_tables(
    const Input& input, Store& store, const std::function<bool(std::string_view table)>& wanted);
[[nodiscard]] std::vector<std::string> table_names();

}  // namespace rangescope::report::tables
