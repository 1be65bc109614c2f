// The rows of a query, for `rangescope query` and `rangescope export`.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/duckdb.hpp"
#include "base/sqlite.hpp"
#include "report/exporter.hpp"

namespace rangescope::report::tables {

enum class RowFormat : std::uint8_t { kTable, kCsv, kJsonLines };
/// Their names on command lines.
inline constexpr std::pair<std::string_view, RowFormat> kRowFormats[] = {
    {"table", RowFormat::kTable}, {"csv", RowFormat::kCsv}, {"jsonl", RowFormat::kJsonLines}};

/// All rows of a statement; a table has `width` columns at most, 0 for no limit. Finishes the sink.
[[nodiscard]] base::Result<void> print_rows(base::Statement& statement, RowFormat format, Sink& sink,
                                            std::size_t width);
[[nodiscard]] base::Result<void> print_rows(base::DuckRows& rows, RowFormat format, Sink& sink, std::size_t width);

}  // namespace rangescope::report::tables
