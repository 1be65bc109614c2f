#include "base/duckdb.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/deadline.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::base {

/// duckdb_result, with its layout.
struct DuckRawResult {
  std::uint64_t columns, rows, changed;
  void* column_data;
  char* error;
  void* internal;
};

namespace {

// duckdb.h of 1.x: what of it is used, with its numbers.
using RawResult = DuckRawResult;
using Index = std::uint64_t;
constexpr int kSuccess = 0;
constexpr int kSelect = 1;  // DUCKDB_STATEMENT_TYPE_SELECT

// Result, name behind duckdb_, arguments.
#define RANGESCOPE_DUCKDB(FUNCTION)                                       \
  FUNCTION(const char*, library_version)                                  \
  FUNCTION(int, create_config, void**)                                    \
  FUNCTION(int, set_config, void*, const char*, const char*)              \
  FUNCTION(void, destroy_config, void**)                                  \
  FUNCTION(int, open_ext, const char*, void**, void*, char**)             \
  FUNCTION(void, close, void**)                                           \
  FUNCTION(int, connect, void*, void**)                                   \
  FUNCTION(void, disconnect, void**)                                      \
  FUNCTION(void, interrupt, void*)                                        \
  FUNCTION(int, query, void*, const char*, RawResult*)                    \
  FUNCTION(void, destroy_result, RawResult*)                              \
  FUNCTION(const char*, result_error, RawResult*)                         \
  FUNCTION(Index, column_count, RawResult*)                               \
  FUNCTION(Index, row_count, RawResult*)                                  \
  FUNCTION(const char*, column_name, RawResult*, Index)                   \
  FUNCTION(int, column_type, RawResult*, Index)                           \
  FUNCTION(char*, value_varchar, RawResult*, Index, Index)                \
  FUNCTION(void, free, void*)                                             \
  FUNCTION(Index, extract_statements, void*, const char*, void**)         \
  FUNCTION(const char*, extract_statements_error, void*)                  \
  FUNCTION(int, prepare_extracted_statement, void*, void*, Index, void**) \
  FUNCTION(void, destroy_extracted, void**)                               \
  FUNCTION(const char*, prepare_error, void*)                             \
  FUNCTION(int, prepared_statement_type, void*)                           \
  FUNCTION(int, execute_prepared, void*, RawResult*)                      \
  FUNCTION(void, destroy_prepare, void**)                                 \
  FUNCTION(int, appender_create, void*, const char*, const char*, void**) \
  FUNCTION(const char*, appender_error, void*)                            \
  FUNCTION(int, appender_end_row, void*)                                  \
  FUNCTION(int, appender_close, void*)                                    \
  FUNCTION(int, appender_destroy, void**)                                 \
  FUNCTION(int, append_int64, void*, std::int64_t)                        \
  FUNCTION(int, append_double, void*, double)                             \
  FUNCTION(int, append_varchar_length, void*, const char*, Index)         \
  FUNCTION(int, append_null, void*)

struct Api {
  void* library = nullptr;
#define RANGESCOPE_DECLARE(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
  RANGESCOPE_DUCKDB(RANGESCOPE_DECLARE)
#undef RANGESCOPE_DECLARE
};

const char* const kCure =
    "Set RANGESCOPE_DUCKDB to a libduckdb.so (1.x: the C library of duckdb.org, or ./dev duckdb in "
    "a checkout)";

Result<Api> load() {
  Api api;
  std::string load_error;
  const char* named_path = std::getenv("RANGESCOPE_DUCKDB");
  const std::string installed_path =
      (self_path().parent_path().parent_path() / "lib" / "libduckdb.so").string();
  const bool is_named = named_path != nullptr && *named_path != '\0';
  std::vector<std::string> paths = {installed_path, "libduckdb.so"};
  if (is_named)
    paths = {named_path};
  for (const std::string& path : paths) {
    api.library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (api.library != nullptr)
      break;
    if (is_named)
      load_error = ::dlerror();
  }
  std::string variable;
  if (is_named)
    variable = "RANGESCOPE_DUCKDB";
  if (api.library == nullptr && is_named)
    return fail(Code::kToolMissing, "DuckDB cannot be loaded: " + load_error, variable, kCure);
  if (api.library == nullptr)
    return fail(Code::kToolMissing, "there is no DuckDB here", variable, kCure);
  std::string missing_function;
  const auto bind = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        ::dlsym(api.library, (std::string("duckdb_") + name).c_str()));
    if (function == nullptr)
      missing_function = std::string("duckdb_") + name;
  };
#define RANGESCOPE_BIND(result, name, ...) bind(api.name, #name);
  RANGESCOPE_DUCKDB(RANGESCOPE_BIND)
#undef RANGESCOPE_BIND
  if (!missing_function.empty())
    return fail(Code::kToolMissing,
                "this DuckDB is unknown to rangescope: it lacks " + missing_function,
                variable,
                kCure);
  return api;
}

/// Loaded once, never unloaded: it starts threads.
const Result<Api>& api() {
  static const Result<Api> kApi = load();
  return kApi;
}

std::string failure_text(const char* message) {
  return text_or(message, "unknown failure");
}

/// DuckDB's messages name the kind of failure first, and may go over several lines with a copy of
/// the SQL.
Error duck_error(const char* message) {
  const std::string text = failure_text(message);
  const std::string first_line(split(text, '\n').front());
  const bool is_about_data = text.starts_with("IO Error") || text.starts_with("Out of Memory") ||
                             text.starts_with("INTERRUPT") || text.starts_with("Invalid") ||
                             text.starts_with("Serialization");
  Code code = Code::kUsage;
  if (is_about_data)
    code = Code::kBadData;
  return {code, printable(first_line), "SQL", {}};
}

// duckdb_type
constexpr int kTinyint = 2, kDouble = 11, kHugeint = 16, kDecimal = 19, kTimestampNs = 22,
              kUhugeint = 32;

/// The first column that has no text: value_varchar gives NULL for nested values. what is empty
/// where all have one.
Error cannot_print(RawResult* result) {
  for (Index i = 0; i < api()->column_count(result); ++i) {
    const int type = api()->column_type(result, i);
    if (type > 0 && type <= kTimestampNs)
      continue;
    if (type == kUhugeint)
      continue;
    const std::string name = printable(api()->column_name(result, i));
    return {Code::kUsage,
            "column " + name + " holds lists or the like, which are not written",
            "SQL",
            "Write it as text: (" + name + ")::varchar"};
  }
  return {};
}

std::uint64_t half_of_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || size <= 0)
    return 1u << 30;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) / 2;
}

}  // namespace

std::string sql_quote(std::string_view text) {
  return "'" + replace_all(std::string(text), "'", "''") + "'";
}

Error took_too_long() {
  return {Code::kBadData,
          "the query took longer than it may",
          "SQL",
          "Ask for less, or allow more with --timeout"};
}

std::string sql_glob_escape(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool is_special = c == '*' || c == '?' || c == '[';
    if (is_special)
      out += '[';
    out += c;
    if (is_special)
      out += ']';
  }
  return out;
}

struct Duck::Handle {
  void* database = nullptr;
  void* connection = nullptr;
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (connection != nullptr)
      api()->disconnect(&connection);
    if (database != nullptr)
      api()->close(&database);
  }
};

struct DuckRows::Held {
  RawResult raw{};
  std::shared_ptr<void> database;
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { api()->destroy_result(&raw); }
};

std::string Duck::version() {
  if (!api())
    return "";
  return api()->library_version();
}

Result<Duck> Duck::open(int threads, const std::filesystem::path& temporary) {
  if (!api())
    return tl::make_unexpected(api().error());
  void* config = nullptr;
  if (api()->create_config(&config) != kSuccess)
    return fail(Code::kInternal, "DuckDB makes no configuration");
  if (threads <= 0)
    threads = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  const std::pair<const char*, std::string> settings[] = {
      {"autoinstall_known_extensions", "false"},
      {"autoload_known_extensions", "false"},
      {"allow_community_extensions", "false"},
      {"threads", std::to_string(threads)},
      {"memory_limit", std::to_string(half_of_memory()) + "B"},
      {"temp_directory", temporary.string()},
      {"max_temp_directory_size", "16GiB"}};
  for (const auto& [name, value] : settings)
    if (api()->set_config(config, name, value.c_str()) != kSuccess) {
      api()->destroy_config(&config);
      return fail(Code::kToolMissing, std::string("this DuckDB has no setting ") + name, {}, kCure);
    }
  Duck duck;
  duck.handle_ = std::make_shared<Handle>();
  char* error = nullptr;
  const int opened = api()->open_ext(":memory:", &duck.handle_->database, config, &error);
  api()->destroy_config(&config);
  if (opened != kSuccess ||
      api()->connect(duck.handle_->database, &duck.handle_->connection) != kSuccess) {
    const std::string reason = text_or(error, "no connection");
    api()->free(error);
    return fail(Code::kInternal, "DuckDB does not start: " + reason);
  }
  return duck;
}

Result<void> Duck::execute(const std::string& sql) const {
  RawResult raw{};
  const int state = api()->query(handle_->connection, sql.c_str(), &raw);
  Error error;
  if (state != kSuccess)
    error = duck_error(api()->result_error(&raw));
  api()->destroy_result(&raw);
  if (state == kSuccess)
    return {};
  error.where.clear();
  return tl::make_unexpected(std::move(error));
}

Result<void> Duck::lock(const std::vector<std::filesystem::path>& readable) const {
  std::vector<std::string> quoted;
  for (const auto& path : readable)
    quoted.push_back(sql_quote(path.string()));
  return execute("set allowed_paths = [" + join(quoted, ", ") +
                 "]; set enable_external_access = false; set lock_configuration = true");
}

Result<DuckRows> Duck::select(const std::string& sql,
                              std::chrono::nanoseconds most,
                              const std::function<void()>& give_up) const {
  void* statements = nullptr;
  const Index count = api()->extract_statements(handle_->connection, sql.c_str(), &statements);
  Error error;
  void* prepared = nullptr;
  const char* broken =
      statements != nullptr ? api()->extract_statements_error(statements) : nullptr;
  if (count == 0 && broken != nullptr)
    error = duck_error(broken);
  else if (count == 0)
    error = {Code::kUsage, "there is no SQL statement in it", "SQL", {}};
  else if (count > 1)
    error = {Code::kUsage, "there is more than one SQL statement in it", "SQL", {}};
  DuckRows rows;
  if (error.what.empty()) {
    Deadline timer(
        most, Deadline::wall_time(), [this] { api()->interrupt(handle_->connection); }, give_up);
    const int state =
        api()->prepare_extracted_statement(handle_->connection, statements, 0, &prepared);
    if (state != kSuccess) {
      error = duck_error(prepared != nullptr ? api()->prepare_error(prepared) : nullptr);
    } else if (api()->prepared_statement_type(prepared) != kSelect) {
      error = {Code::kUsage,
               "this is not a SELECT",
               "SQL",
               "Write one SELECT; nothing can be changed here"};
    } else {
      rows.result_ = std::make_shared<DuckRows::Held>();
      rows.result_->database = handle_;
      if (api()->execute_prepared(prepared, &rows.result_->raw) != kSuccess)
        error = duck_error(api()->result_error(&rows.result_->raw));
      else
        error = cannot_print(&rows.result_->raw);
    }
    if (timer.over() && !error.what.empty())
      error = took_too_long();
  }
  if (prepared != nullptr)
    api()->destroy_prepare(&prepared);
  if (statements != nullptr)
    api()->destroy_extracted(&statements);
  if (!error.what.empty())
    return tl::make_unexpected(std::move(error));
  rows.rows_ = static_cast<std::int64_t>(api()->row_count(&rows.result_->raw));
  rows.cells_.resize(static_cast<std::size_t>(rows.columns()));
  return rows;
}

Result<DuckAppender> Duck::append(const std::string& table) const {
  DuckAppender appender;
  void* raw = nullptr;
  const int state = api()->appender_create(handle_->connection, nullptr, table.c_str(), &raw);
  appender.handle_.reset(raw);
  TRY(appender.check(state));
  return appender;
}

void DuckAppender::Free::operator()(void* appender) const {
  api()->appender_destroy(&appender);
}
Result<void> DuckAppender::check(int state) const {
  if (state == kSuccess)
    return {};
  const char* error = handle_ ? api()->appender_error(handle_.get()) : nullptr;
  return fail(Code::kInternal, "DuckDB takes no row: " + failure_text(error));
}
// A failure of a value shows at the end of its row, which then lacks it.
void DuckAppender::add(std::int64_t value) {
  (void)api()->append_int64(handle_.get(), value);
}
void DuckAppender::add(double value) {
  (void)api()->append_double(handle_.get(), value);
}
void DuckAppender::add(std::string_view value) {
  (void)api()->append_varchar_length(handle_.get(), value.data(), value.size());
}
void DuckAppender::null() {
  (void)api()->append_null(handle_.get());
}
Result<void> DuckAppender::row() {
  return check(api()->appender_end_row(handle_.get()));
}
Result<void> DuckAppender::finish() {
  return check(api()->appender_close(handle_.get()));
}

Result<bool> DuckRows::step() {
  if (++row_ >= rows_)
    return false;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    char* value = api()->value_varchar(&result_->raw, i, static_cast<Index>(row_));
    cells_[i].reset();
    if (value != nullptr)
      cells_[i] = value;
    api()->free(value);
  }
  return true;
}
int DuckRows::columns() const {
  return static_cast<int>(api()->column_count(&result_->raw));
}
std::string_view DuckRows::column_name(int column) const {
  return api()->column_name(&result_->raw, static_cast<Index>(column));
}
bool DuckRows::is_null(int column) const {
  return !cells_[static_cast<std::size_t>(column)];
}
bool DuckRows::is_number(int column) const {
  const int type = api()->column_type(&result_->raw, static_cast<Index>(column));
  return (type >= kTinyint && type <= kDouble) || type == kHugeint || type == kDecimal ||
         type == kUhugeint;
}
double DuckRows::real(int column) const {
  if (is_null(column))
    return 0;
  return std::strtod(cells_[static_cast<std::size_t>(column)]->c_str(), nullptr);
}
std::string_view DuckRows::text(int column) const {
  const auto& cell = cells_[static_cast<std::size_t>(column)];
  if (!cell)
    return {};
  return *cell;
}

}  // namespace rangescope::base
