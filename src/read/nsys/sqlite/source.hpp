// The tables of an export: which there are, which columns they have, and how to walk their rows.
//
// Nothing is known in advance: tables appear in an export only when they have rows, and columns
// come and go with the schema version (docs/formats/nsys-sqlite.md). Tables and columns are asked
// of SQLite; rows come from the pages directly (btree.hpp) wherever the file is plain, and through
// the SQLite library otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.hpp"
#include "base/result.hpp"
#include "base/sqlite.hpp"
#include "read/nsys/sqlite/btree.hpp"

namespace rangescope::read::nsys_sqlite {

struct Column {
  std::string name;
  bool rowid = false, real = false, has_default = false;
};

struct Table {
  std::string name;
  std::vector<Column> columns;
  std::uint32_t root = 0;  ///< root page; 0 for a view
  bool plain = false;      ///< a rowid table whose records hold exactly its columns

  [[nodiscard]] int find(std::string_view column) const;
  [[nodiscard]] bool has(std::string_view column) const { return find(column) >= 0; }
};

/// What became of a scan: rows seen, and where it had to stop.
struct Scanned {
  std::uint64_t rows = 0;
  std::optional<base::Error> damage;  ///< rows after this were not read
  std::string through;                ///< "pages", or why it went through the library
};

class Source {
 public:
  /// Opens and reads the schema. kNoInput; kBadData when it is no database or its schema cannot be
  /// read.
  [[nodiscard]] static base::Result<Source> open(const std::filesystem::path& path);

  [[nodiscard]] const Table* find(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, Table, std::less<>>& tables() const { return tables_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// For tests: read everything through the library.
  void forget_pages() { mapping_.reset(); }

  /// Walks all rows of `table`: `row(const Value*)` gets `columns` ("start end globalTid") in the
  /// given order, NULL for those that the table lacks. `restart(rows)` is called before the first
  /// row with a guess at their number, and again when pages were not plain and it starts over
  /// through the library: forget what came so far. Safe to call from several threads.
  template <class Restart, class Row>
  [[nodiscard]] Scanned scan(const Table& table,
                             std::string_view columns,
                             Restart&& restart,
                             Row&& row) const;

 private:
  [[nodiscard]] static std::vector<Wanted> wanted(const Table& table, std::string_view columns);
  [[nodiscard]] static base::Result<base::Statement> select(const base::Database& database,
                                                            const Table& table,
                                                            std::string_view columns);
  static void load(const base::Statement& statement, std::vector<Value>& row);

  std::filesystem::path path_;
  std::map<std::string, Table, std::less<>> tables_;
  std::shared_ptr<base::Mapping> mapping_;
};

template <class Restart, class Row>
Scanned Source::scan(const Table& table,
                     std::string_view columns,
                     Restart&& restart,
                     Row&& row) const {
  Scanned result;
  const std::vector<Wanted> want = wanted(table, columns);
  if (mapping_ != nullptr && table.plain) {
    Btree tree(mapping_->bytes());
    std::vector<std::uint32_t> leaves;
    if (tree.unusual().empty() && tree.leaves(table.root, leaves)) {
      restart(tree.estimate_rows(leaves));
      if (tree.scan(leaves, want, [&](const Value* values) {
            ++result.rows;
            row(values);
          })) {
        result.through = "pages";
        return result;
      }
    }
    result.through = tree.unusual();
  } else {
    result.through = table.plain ? "library asked for" : "not a plain table";
  }
  result.rows = 0;
  restart(std::size_t{0});
  const auto walk = [&]() -> base::Result<void> {
    const auto database = TRY(base::Database::open_readonly(path_));
    auto statement = TRY(select(database, table, columns));
    std::vector<Value> values(want.size());
    for (;;) {
      const bool has_row = TRY(statement.step());
      if (!has_row)
        return {};
      load(statement, values);
      ++result.rows;
      row(static_cast<const Value*>(values.data()));
    }
  };
  if (auto walked = walk(); !walked)
    result.damage = std::move(walked).error();
  return result;
}

}  // namespace rangescope::read::nsys_sqlite
