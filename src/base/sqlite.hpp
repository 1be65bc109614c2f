// A small owner for sqlite3 handles: open, prepare, step, column. Errors name the table or
// statement.
//
// Damaged databases answer with kBadData; text columns are bytes (not every writer keeps to UTF-8).
//
// A file that is opened here may come from a stranger. Its schema is not trusted: views and
// triggers do not run, only tables count as tables, values and expressions are bounded, and a
// statement that does more work than a file of that size can need is stopped (kBadData). Without
// that, a view over an endless recursive query never returns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace rangescope::base {

/// The first bytes of every SQLite database, the terminating zero included.
inline constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

/// Whether a file that starts with `head`, 16 bytes at least, is a SQLite database.
[[nodiscard]] inline bool is_sqlite(std::string_view head) {
  return head.starts_with(kSqliteMagic);
}

class Statement {
 public:
  /// True on a row, false at the end; kBadData when the database is damaged.
  [[nodiscard]] Result<bool> step();
  void reset();
  void bind(int index, std::int64_t value);  ///< from 1
  void bind(int index, double value);
  void bind(int index, std::string_view value);
  void bind_null(int index);
  [[nodiscard]] bool is_null(int column) const;    ///< columns from 0
  [[nodiscard]] bool is_number(int column) const;  ///< stored as INTEGER or REAL
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string_view text(int column) const;  ///< valid until the next step
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string_view column_name(int column) const;
  [[nodiscard]] sqlite3_stmt* raw() const { return handle_.get(); }

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* s) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  std::string path_;
};

class Database {
 public:
  /// Read-only; immutable (no journal, no lock) so that files on read-only media open. kNoInput (no
  /// regular file, too), kBadData.
  [[nodiscard]] static Result<Database> open_readonly(const std::filesystem::path& path);
  /// A new database for writing (what the file held is gone); synchronous off.
  [[nodiscard]] static Result<Database> create(const std::filesystem::path& path);
  /// An existing file, to change it. kNoInput, kBadData.
  [[nodiscard]] static Result<Database> open_write(const std::filesystem::path& path);
  [[nodiscard]] static Result<Database> in_memory();
  [[nodiscard]] Result<Statement> prepare(std::string_view sql) const;
  [[nodiscard]] Result<void> execute(std::string_view sql) const;
  [[nodiscard]] bool has_table(std::string_view table) const;
  [[nodiscard]] std::vector<std::string> tables() const;
  /// Column names of a table in order; empty when it does not exist.
  [[nodiscard]] std::vector<std::string> columns(std::string_view table) const;
  [[nodiscard]] sqlite3* raw() const { return handle_.get(); }
  /// Ends what runs, from another thread.
  void interrupt() const;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  /// Stops a statement after so many steps of SQLite's machine.
  struct Effort {
    std::uint64_t done = 0, most = 0;
  };
  [[nodiscard]] static Result<Database> open(const std::string& file,
                                             const std::filesystem::path& path,
                                             int flags,
                                             Code failure);
  void distrust(std::uint64_t bytes, bool read_only);
  std::unique_ptr<Effort> effort_;  ///< outlives the handle, which calls with it
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
};

}  // namespace rangescope::base
