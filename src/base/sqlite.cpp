#include "base/sqlite.hpp"

#include <sqlite3.h>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

Error error_of(sqlite3* db, const std::string& path, std::string_view sql) {
  const int code = sqlite3_errcode(db);
  const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ||
                       code == SQLITE_TOOBIG || code == SQLITE_INTERRUPT;
  std::string message = sqlite3_errmsg(db);
  if (code == SQLITE_INTERRUPT)
    message = "takes more work than a file of its size can need: it is damaged";
  if (!sql.empty())
    message += " in: " + std::string(sql.substr(0, 200));
  return {damaged ? Code::kBadData : Code::kIo, std::move(message), path, {}};
}

// Longest text or blob. The longest seen in an export of nsys has a few MB; SQLite's own limit, 1
// GB, is what a row that claims a zeroblob would make us allocate.
constexpr int kMostValue = 1 << 28;

std::string percent_encode(std::string_view path) {
  return replace_all(replace_all(replace_all(path, "%", "%25"), "?", "%3F"), "#", "%23");
}

/// The first column of all rows; none of a statement that fails.
std::vector<std::string> names_of(Result<Statement> query) {
  std::vector<std::string> names;
  if (!query)
    return names;
  for (auto row = query->step(); row && *row; row = query->step())
    names.emplace_back(query->text(0));
  return names;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* s) const {
  sqlite3_finalize(s);
}
void Database::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

void Database::interrupt() const {
  sqlite3_interrupt(handle_.get());
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW)
    return true;
  if (code == SQLITE_DONE)
    return false;
  return tl::make_unexpected(
      error_of(sqlite3_db_handle(handle_.get()), path_, sqlite3_sql(handle_.get())));
}

void Statement::reset() {
  sqlite3_reset(handle_.get());
}
void Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(handle_.get(), index, value);
}
void Statement::bind(int index, double value) {
  sqlite3_bind_double(handle_.get(), index, value);
}
void Statement::bind(int index, std::string_view value) {
  sqlite3_bind_text(
      handle_.get(), index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
}
void Statement::bind_null(int index) {
  sqlite3_bind_null(handle_.get(), index);
}
bool Statement::is_number(int column) const {
  const int type = sqlite3_column_type(handle_.get(), column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}
std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(handle_.get(), column);
}
std::string_view Statement::text(int column) const {
  // column_text converts a UTF-16 database; bytes of a UTF-8 one come as they are, valid or not.
  sqlite3_stmt* row = handle_.get();
  const void* bytes = nullptr;
  if (sqlite3_column_type(row, column) == SQLITE_TEXT)
    bytes = sqlite3_column_text(row, column);
  else
    bytes = sqlite3_column_blob(row, column);
  if (bytes == nullptr)
    return {};
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, column));
  return {static_cast<const char*>(bytes), size};
}
int Statement::columns() const {
  return sqlite3_column_count(handle_.get());
}
std::string_view Statement::column_name(int column) const {
  return sqlite3_column_name(handle_.get(), column);
}

Result<Database> Database::open(const std::string& file,
                                const std::filesystem::path& path,
                                int flags,
                                Code failure) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.handle_.reset(raw);
  database.path_ = path.string();
  if (code != SQLITE_OK)
    return fail(failure, sqlite3_errmsg(raw), database.path_);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kMostValue);
  return database;
}

void Database::distrust(std::uint64_t bytes, bool read_only) {
  constexpr int kSteps = 1'000'000;  // between two looks; some milliseconds
  constexpr std::uint64_t kAlways = 500'000'000, kPerByte = 64;
  sqlite3* db = handle_.get();
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  if (read_only) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);  // a vacuum attaches
  }
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 200);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1'000'000);
  effort_ = std::make_unique<Effort>(Effort{.done = 0, .most = kAlways + kPerByte * bytes});
  sqlite3_progress_handler(
      db,
      kSteps,
      [](void* data) {
        auto* effort = static_cast<Effort*>(data);
        effort->done += kSteps;
        return effort->done > effort->most ? 1 : 0;
      },
      effort_.get());
}

Result<Database> Database::open_readonly(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return fail(Code::kNoInput, "no such file", path.string());
  const auto bytes = std::filesystem::file_size(path, error);
  if (error)
    return fail(Code::kNoInput, "is not a regular file", path.string());
  // SQLite's own reading waits for what only looks like a file (/proc/kmsg).
  const std::string head = TRY(read_head(path, kSqliteMagic.size()));
  if (!head.empty() && !is_sqlite(head))
    return fail(Code::kBadData, "file is not a database", path.string());
  // A write-ahead log or journal next to the file holds a part of it: only then it is not
  // immutable.
  const auto left_over = [&](const char* suffix) {
    const auto size = std::filesystem::file_size(path.string() + suffix, error);
    return !error && size > 0;
  };
  const bool has_changes = left_over("-wal") || left_over("-journal");
  const std::string mode = has_changes ? "?mode=ro" : "?immutable=1";
  const std::string uri = "file:" + percent_encode(path.string()) + mode;
  auto database = open(uri, path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, Code::kBadData);
  if (database)
    database->distrust(bytes, true);
  return database;
}

Result<Database> Database::create(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error))
    std::filesystem::resize_file(path, 0, error);
  auto database =
      TRY(open(path.string(), path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, Code::kIo));
  TRY(database.execute("pragma synchronous=off; pragma journal_mode=off"));
  return database;
}

Result<Database> Database::open_write(const std::filesystem::path& path) {
  auto database = open(path.string(), path, SQLITE_OPEN_READWRITE, Code::kNoInput);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (database)
    database->distrust(error ? 0 : bytes, false);
  return database;
}

Result<Database> Database::in_memory() {
  return open(":memory:", ":memory:", SQLITE_OPEN_READWRITE, Code::kInternal);
}

Result<Statement> Database::prepare(std::string_view sql) const {
  if (effort_)
    effort_->done = 0;
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &raw, &rest) !=
      SQLITE_OK) {
    return tl::make_unexpected(error_of(handle_.get(), path_, sql));
  }
  if (raw == nullptr)
    return fail(Code::kUsage, "there is no SQL statement in it", path_);
  Statement statement;
  statement.handle_.reset(raw);
  statement.path_ = path_;
  const auto left = static_cast<int>(sql.data() + sql.size() - rest);
  sqlite3_stmt* second = nullptr;  // null where only white space and comments follow
  const int code = sqlite3_prepare_v2(handle_.get(), rest, left, &second, nullptr);
  const bool has_second = code != SQLITE_OK || second != nullptr;
  sqlite3_finalize(second);
  if (has_second)
    return fail(Code::kUsage, "there is more than one SQL statement in it", path_);
  return statement;
}

Result<void> Database::execute(std::string_view sql) const {
  if (sqlite3_exec(handle_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr) !=
      SQLITE_OK) {
    return tl::make_unexpected(error_of(handle_.get(), path_, sql));
  }
  return {};
}

std::vector<std::string> Database::tables() const {
  return names_of(prepare("select name from sqlite_master where type = 'table' order by name"));
}

bool Database::has_table(std::string_view table) const {
  return !columns(table).empty();
}

std::vector<std::string> Database::columns(std::string_view table) const {
  auto query = prepare(
      "select name from pragma_table_info(?1) where exists (select 1 from sqlite_master where type "
      "= 'table' and "
      "name = ?1 collate nocase)");
  if (query)
    query->bind(1, table);
  return names_of(std::move(query));
}

}  // namespace rangescope::base
