// The tables of runs as Parquet files, written and read by DuckDB (base/duckdb.hpp).
//
//   DIR/_rangescope.json    { "schema": "rangescope.parquet/1" }: marks the folder
//   DIR/kernels/job=slurm-1234.0/rank=3/kernels.parquet
//   DIR/regions/job=slurm-1234.0/rank=3/regions.parquet
//
// Each table is hive-partitioned, with a folder for each job and rank. The table comes first: for
// Hive, Trino, Spark and pandas a partitioned table is a folder whose files have one schema,
// DIR/kernels. Columns are those of report/formats/tables/tables.hpp as BIGINT, DOUBLE and VARCHAR;
// `job` and `rank` are only in the path. An unknown rank is Hive's name for NULL. Pages are
// compressed with zstd. Bytes that are not UTF-8 are written as \xNN. Documented in
// docs/formats/parquet.md.
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

/// The job and rank that rows belong to.
struct Partition {
  std::string job;
  std::optional<std::uint32_t> rank;
};

/// kUsage unless the folder is new, empty or an earlier export.
[[nodiscard]] base::Result<void> check_parquet_folder(const std::filesystem::path& folder);
/// Writes all tables of one rank; files of the same partition are replaced at the end. kIo,
/// kPermission.
[[nodiscard]] base::Result<void> write_parquet(const Input& input,
                                               const Partition& partition,
                                               const base::Duck& duck,
                                               const std::filesystem::path& folder);

[[nodiscard]] bool is_parquet_folder(const std::filesystem::path& folder);
/// Makes a view of each table of the folder, with job and rank as first columns, and locks the
/// database. kBadData, kNoInput.
[[nodiscard]] base::Result<void> open_parquet(const base::Duck& duck,
                                              const std::filesystem::path& folder);

/// Writes the same tables into the database. Called for each partition, then Duck::lock().
[[nodiscard]] base::Result<void> write_duck(
    const Input& input,
    const Partition& partition,
    const base::Duck& duck,
    const std::function<bool(std::string_view table)>& wanted);

}  // namespace rangescope::report::tables
