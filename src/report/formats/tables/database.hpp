// The tables of a report as SQLite, for `rangescope query` and `rangescope export`.
#pragma once

#include <filesystem>
#include <functional>
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

/// Does a file that begins so (256 bytes) come from write_database? Its application_id says it.
[[nodiscard]] bool is_own_export(std::string_view head);

/// The run that an export is of: its name and what it was read from. kBadData where it does not say.
[[nodiscard]] base::Result<std::string> exported_run(const std::filesystem::path& file);

}  // namespace rangescope::report::tables
