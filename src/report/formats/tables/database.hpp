// The tables of a report as SQLite, and the rows of a query, for `rangescope query` and `rangescope
// export`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/duckdb.hpp"
#include "base/result.hpp"
#include "base/sqlite.hpp"
#include "report/exporter.hpp"
#include "report/formats/tables/tables.hpp"

namespace rangescope::report::tables {

/// Creates and fills the tables, as write_tables().
[[nodiscard]] base::Result<void> write_database(
    const Input& input,
    base::Database& database,
    const std::function<bool(std::string_view table)>& wanted);

/// All of them, in a new file that takes the name when it is whole.
[[nodiscard]] base::Result<void> write_file(const Input& input, const std::filesystem::path& to);

/// The name of the run that a file from write_database is of, by its application_id: "" where it
/// names none, nothing where the file is no export of ours.
[[nodiscard]] std::optional<std::string> exported_run(const std::filesystem::path& file);

enum class RowFormat : std::uint8_t { kTable, kCsv, kJsonLines };
/// Their names on command lines.
inline constexpr std::pair<std::string_view, RowFormat> kRowFormats[] = {
    {"table", RowFormat::kTable}, {"csv", RowFormat::kCsv}, {"jsonl", RowFormat::kJsonLines}};

/// All rows of a statement; a table has `width` columns at most, 0 for no limit.
[[nodiscard]] base::Result<void> print_rows(base::Statement& statement,
                                            RowFormat format,
                                            Sink& sink,
                                            std::size_t width);
[[nodiscard]] base::Result<void> print_rows(base::DuckRows& rows,
                                            RowFormat format,
                                            Sink& sink,
                                            std::size_t width);

}  // namespace rangescope::report::tables
