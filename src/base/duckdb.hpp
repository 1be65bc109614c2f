// DuckDB through its C API, from a libduckdb.so that is found when it is needed: nothing is linked,
// and without it all else works. Parquet is written and read by it.
//
// It is looked for in $RANGESCOPE_DUCKDB (then nowhere else), in the lib/ next to the program's own
// folder, and where the dynamic linker looks; kToolMissing with the cure where it is in none of
// them.
//
// What is asked may come from a stranger, and so may the files. A database here is in memory; no
// extension is loaded or fetched, and memory, threads and temporary files are bounded. lock() ends
// all access to files but those named, and all change of settings; select() takes one SELECT and
// interrupts it when its time is over.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::base {

/// 'text' with its quotes doubled, for SQL that is put together here.
[[nodiscard]] std::string sql_quote(std::string_view text);
/// A path as DuckDB's functions for files take it: characters of patterns are escaped. Not quoted.
[[nodiscard]] std::string sql_glob_escape(std::string_view path);

/// What a query that was ended for its time says.
[[nodiscard]] Error took_too_long();

/// The rows of a SELECT, all in memory. As base::Statement.
class DuckRows {
 public:
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string_view column_name(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] bool is_number(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string_view text(int column) const;  ///< valid until the next step

 private:
  friend class Duck;
  struct Held;
  std::shared_ptr<Held> result_;
  std::int64_t row_ = -1, rows_ = 0;
  std::vector<std::optional<std::string>> cells_;
};

/// Rows into a table, column by column.
class DuckAppender {
 public:
  void add(std::int64_t value);
  void add(double value);
  void add(std::string_view value);  ///< UTF-8
  void null();
  [[nodiscard]] base::Result<void> row();
  [[nodiscard]] base::Result<void> finish();

 private:
  friend class Duck;
  struct Free {
    void operator()(void* appender) const;
  };
  [[nodiscard]] base::Result<void> check(int state) const;
  std::unique_ptr<void, Free> handle_;
};

class Duck {
 public:
  /// `threads`: 0 for one a core. It takes half of the machine's memory; `temporary` is for what
  /// does not fit into it, at most 16 GiB. kToolMissing, kInternal.
  [[nodiscard]] static Result<Duck> open(int threads, const std::filesystem::path& temporary);
  /// "v1.5.6"; "" where there is no libduckdb.so that can be used.
  [[nodiscard]] static std::string version();
  [[nodiscard]] Result<void> execute(const std::string& sql) const;
  [[nodiscard]] Result<DuckAppender> append(const std::string& table) const;
  /// From now on only these files can be read, none be written, and no setting changed.
  [[nodiscard]] Result<void> lock(const std::vector<std::filesystem::path>& readable) const;
  /// kUsage for what is not one SELECT, or is wrong; kBadData for files that are not as they should
  /// be, and when the time or the memory is over. `give_up`: called where DuckDB goes on in spite
  /// of that, inside of a function.
  [[nodiscard]] Result<DuckRows> select(const std::string& sql,
                                        std::chrono::nanoseconds most,
                                        const std::function<void()>& give_up) const;

 private:
  struct Handle;
  std::shared_ptr<Handle> handle_;
};

}  // namespace rangescope::base
