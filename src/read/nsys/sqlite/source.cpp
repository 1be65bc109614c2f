#include "read/nsys/sqlite/source.hpp"

#include <sqlite3.h>

#include "base/find.hpp"
#include "base/text.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

std::string quote_name(std::string_view name) {
  return '"' + base::replace_all(name, "\"", "\"\"") + '"';
}

/// Columns of a table as SQLite knows them; sets `plain` to what the page decoder may assume.
base::Result<void> read_columns(const base::Database& database,
                                Table& table,
                                std::string_view sql) {
  auto query = TRY(database.prepare(
      "select name, type, \"notnull\", dflt_value, pk, hidden from pragma_table_xinfo(?)"));
  query.bind(1, table.name);
  int keys = 0;
  bool generated = false;
  Column* key = nullptr;
  std::vector<std::string> types;
  for (;;) {
    auto row = TRY(query.step());
    if (!row)
      break;
    Column column;
    column.name = query.text(0);
    const std::string type = base::lower(query.text(1));
    const bool integer_affinity = type.find("int") != std::string::npos;
    const bool text_affinity = type.find("char") != std::string::npos ||
                               type.find("clob") != std::string::npos ||
                               type.find("text") != std::string::npos;
    column.real =
        !integer_affinity && !text_affinity &&
        (type.find("real") != std::string::npos || type.find("floa") != std::string::npos ||
         type.find("doub") != std::string::npos);
    column.has_default = !query.is_null(3) && base::lower(query.text(3)) != "null";
    generated |= query.integer(5) != 0;
    const bool is_key = query.integer(4) != 0;
    if (is_key)
      ++keys;
    column.rowid = is_key && type == "integer";
    types.push_back(type);
    table.columns.push_back(std::move(column));
  }
  for (Column& column : table.columns) {
    if (keys != 1)
      column.rowid = false;
    if (column.rowid)
      key = &column;
  }
  // "integer primary key desc" is not an alias of the rowid (a bug that SQLite keeps). WITHOUT
  // ROWID tables have another kind of page, which the decoder refuses by itself.
  const std::string lowered = base::lower(sql);
  const std::size_t primary = lowered.find("primary key");
  const bool descending_key =
      key != nullptr && primary != std::string::npos &&
      base::trim(std::string_view(lowered).substr(primary + 11)).starts_with("desc");
  table.plain = table.root != 0 && !generated && !descending_key;
  return {};
}

}  // namespace

int Table::find(std::string_view column) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column)
      return static_cast<int>(i);
  }
  return -1;
}

base::Result<Source> Source::open(const std::filesystem::path& path) {
  auto database = TRY(base::Database::open_readonly(path));
  Source source;
  source.path_ = path;
  auto query =
      TRY(database.prepare("select name, rootpage, sql from sqlite_master where type = 'table'"));
  for (;;) {
    auto row = TRY(query.step());
    if (!row)
      break;
    Table table;
    table.name = query.text(0);
    const std::int64_t page = query.integer(1);
    if (page > 0 && page < 0xffffffff)
      table.root = static_cast<std::uint32_t>(page);
    TRY(read_columns(database, table, query.text(2)));
    std::string name = table.name;
    source.tables_.insert_or_assign(std::move(name), std::move(table));
  }
  std::error_code ignored;
  const bool journal = std::filesystem::exists(path.string() + "-wal", ignored) ||
                       std::filesystem::exists(path.string() + "-journal", ignored);
  if (!journal) {
    auto mapping = base::Mapping::open(path);
    if (mapping)
      source.mapping_ = std::make_shared<base::Mapping>(std::move(*mapping));
  }
  return source;
}

const Table* Source::find(std::string_view name) const {
  return base::find_value(tables_, name);
}

std::vector<Wanted> Source::wanted(const Table& table, std::string_view columns) {
  std::vector<Wanted> out;
  for (const std::string_view name : base::split(columns, ' ')) {
    Wanted want;
    want.column = table.find(name);
    if (want.column >= 0) {
      const Column& column = table.columns[static_cast<std::size_t>(want.column)];
      want.rowid = column.rowid;
      want.real = column.real;
      want.default_value = column.has_default;
    }
    out.push_back(want);
  }
  return out;
}

base::Result<base::Statement> Source::select(const base::Database& database,
                                             const Table& table,
                                             std::string_view columns) {
  std::vector<std::string> names;
  for (const std::string_view name : base::split(columns, ' '))
    names.push_back(table.has(name) ? quote_name(name) : "null");
  return database.prepare("select " + base::join(names, ", ") + " from " + quote_name(table.name));
}

void Source::load(const base::Statement& statement, std::vector<Value>& row) {
  sqlite3_stmt* raw = statement.raw();
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int column = static_cast<int>(i);
    Value& value = row[i];
    switch (sqlite3_column_type(raw, column)) {
      case SQLITE_INTEGER:
        value.type = Type::kInteger;
        value.bits = sqlite3_column_int64(raw, column);
        break;
      case SQLITE_FLOAT:
        value.type = Type::kReal;
        value.bits = std::bit_cast<std::int64_t>(sqlite3_column_double(raw, column));
        break;
      case SQLITE_TEXT:
      case SQLITE_BLOB:
        value.type = sqlite3_column_type(raw, column) == SQLITE_TEXT ? Type::kText : Type::kBlob;
        value.bytes = static_cast<const char*>(sqlite3_column_blob(raw, column));
        value.size = static_cast<std::uint32_t>(sqlite3_column_bytes(raw, column));
        break;
      default: value.type = Type::kNull;
    }
  }
}

}  // namespace rangescope::read::nsys_sqlite
