// The tables of a report as SQLite, for `rangescope query` and `rangescope export`.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/sqlite.hpp"
#include "report/formats/tables/tables.hpp"

namespace rangescope::report::tables {

/// Creates and fills the tables, as write_tables().
[[nodiscard]] base::Result<void> write_database(const Input& input, base::Database& database,
                                                const std::function<bool(std::string_view table)>& wanted);

/// All of them, in a new file that takes the name when it is whole.
[[nodiscard]] base::Result<void> write_file(const Input& input, const std::filesystem::path& to);

/// The name of the run that a file from write_database is of, by its application_id: "" where it names none, nothing
/// where the file is no export of ours.
[[nodiscard]] std::optional<std::string> exported_run(const std::filesystem::path& file);

}  // namespace rangescope::report::tables
