// The tables of runs as Parquet files, written and read by DuckDB (base/duckdb.hpp).
//
//   DIR/_rangescope.json                                   { "schema": "rangescope.parquet/1" }:
//   whose folder it is DIR/kernels/job=slurm-1234.0/rank=3/kernels.parquet    a folder for each
//   rank in every table, hive-partitioned DIR/regions/job=slurm-1234.0/rank=3/regions.parquet
//
// The table comes first: a partitioned table of Hive, Trino, Spark or pandas is a folder whose
// files have one schema, DIR/kernels. Columns are those of report/formats/tables/tables.hpp as
// BIGINT, DOUBLE and VARCHAR; `job` and `rank` stand in the path alone. A rank that is not known is
// Hive's name for NULL. Pages are compressed with zstd. Text that is not UTF-8 has \xNN for each
// foreign byte. Documented in docs/formats/parquet.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/duckdb.hpp"
#include "base/result.hpp"
#include "report/formats/tables/tables.hpp"

namespace rangescope::report::tables {

/// Whose rows they are.
struct Partition {
  std::string job;
  std::optional<std::uint32_t> rank;
};

/// May Parquet be written there? A folder that is new, empty or has been written by this; kUsage
/// else.
[[nodiscard]] base::Result<void> check_parquet_folder(const std::filesystem::path& folder);
/// All tables of one rank; files of the same partition are replaced when all are written. kIo,
/// kPermission.
[[nodiscard]] base::Result<void> write_parquet(const Input& input, const Partition& partition,
                                               const base::Duck& duck,
                                               const std::filesystem::path& folder);

[[nodiscard]] bool is_parquet_folder(const std::filesystem::path& folder);
/// A view for each table of the folder, with the columns job and rank in front, after which the
/// database is locked. kBadData, kNoInput.
[[nodiscard]] base::Result<void> open_parquet(const base::Duck& duck,
                                              const std::filesystem::path& folder);

/// The same tables in the database itself. To be called for each partition, then Duck::lock().
[[nodiscard]] base::Result<void> write_duck(
    const Input& input, const Partition& partition, const base::Duck& duck,
    const std::function<bool(std::string_view table)>& wanted);

}  // namespace rangescope::report::tables
