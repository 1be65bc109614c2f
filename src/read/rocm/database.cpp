// SQLite of three tools, each a few statements whose columns are called what read/kineto's events
// have:
//
//   rocprof         results.db    HIP, OPS, COPY, rocTX: a row an event; "Index" is one number for
//   a call and its work rocmProfileData *.rpd         rocpd_api, rocpd_op and rocpd_api_ops, which
//   joins them; texts in rocpd_string rocprofv3       *_results.db  rocpd_region,
//   rocpd_kernel_dispatch, rocpd_memory_copy, each with a UUID behind its
//                                 name; the event's stack_id is one number for a call and its work;
//                                 the message of a roctx range is in its event's extdata
//
// Views of a stranger's file do not run (base/sqlite.hpp), so none of theirs is used.
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/embedded.hpp"
#include "base/sqlite.hpp"
#include "base/text.hpp"
#include "read/kineto/build.hpp"
#include "read/rocm/events.hpp"
#include "read/rocm/reader.hpp"

RANGESCOPE_EMBED(rocm_database, RANGESCOPE_SQL);

namespace rangescope::read::rocm {
namespace {

/// It runs where the table `needs` exists; $ is the UUID behind the names of tables.
struct Query {
  std::string_view needs, category, sql;
};
std::vector<Query> queries_of(std::string_view tool) {
  std::vector<Query> out;
  for (const auto& [name, sql] : base::statements(rangescope_rocm_database))
    if (const auto words = base::split(name, ' '); words.front() == tool)
      out.push_back({words[1], words[2], sql});
  return out;
}

/// A statement's columns by name; what is absent or null is nothing.
class Columns {
 public:
  explicit Columns(const base::Statement& statement) : s_(statement) {
    for (int i = 0; i < s_.columns(); ++i)
      at_.emplace(s_.column_name(i), i);
  }
  [[nodiscard]] std::string_view text(const std::string& name) const {
    const auto found = at_.find(name);
    if (found == at_.end() || s_.is_null(found->second))
      return {};
    return s_.text(found->second);
  }
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& name) const {
    const auto found = at_.find(name);
    if (found == at_.end() || !s_.is_number(found->second))
      return std::nullopt;
    const std::int64_t value = s_.integer(found->second);
    if (value < 0 || value >= (std::int64_t{1} << 62))
      return std::nullopt;
    return value;
  }
  [[nodiscard]] std::optional<std::uint32_t> small(const std::string& name) const {
    const auto value = number(name);
    if (!value || *value >= std::numeric_limits<std::uint32_t>::max())
      return std::nullopt;
    return static_cast<std::uint32_t>(*value);
  }

 private:
  const base::Statement& s_;
  std::unordered_map<std::string, int> at_;
};

base::Result<std::int64_t> count_rows(const base::Database& database, const std::string& table) {
  auto statement = TRY(database.prepare("select count(*) from \"" + table + '"'));
  TRY(statement.step());
  return statement.integer(0);
}

class Rows {
 public:
  base::Result<void> read(const base::Database& database,
                          const Query& query,
                          const std::string& uuid) {
    const std::string table = base::replace_all(query.needs, "$", uuid);
    if (!database.has_table(table))
      return {};
    std::string sql(query.sql);
    if (!uuid.empty())
      sql = base::replace_all(sql, "$\"", uuid + '"');
    auto statement = TRY(database.prepare(base::replace_all(sql, "$\"", "\"")));
    const Columns columns(statement);
    const std::int64_t events_in_table = TRY(count_rows(database, table));
    for (std::int64_t events = 0;; ++events) {
      const bool has_event = TRY(statement.step());
      if (!has_event)
        return {};
      if (events == events_in_table)
        return base::fail(base::Code::kBadData,
                          "identifiers of the tables that belong to it are not unique");
      add(columns, query.category);
    }
  }

  [[nodiscard]] std::uint64_t known() const { return builder_.known(); }
  model::Session finish() { return builder_.finish(); }

 private:
  void add(const Columns& row, std::string_view category) {
    const auto start = row.number("start"), end = row.number("end");
    if (!start || !end)
      return builder_.bad();
    if (*end < *start)
      return builder_.bad_length();
    kineto::Event event;
    event.phase = 'X';
    event.category = category;
    event.name = row.text("name");
    event.start_ns = start;
    event.length_ns = *end - *start;
    event.fraction = true;
    event.pid = row.small("pid").value_or(0);
    event.tid = row.small("tid").value_or(0);
    event.device = row.small("device").value_or(0);
    event.stream = row.small("stream").value_or(0);
    if (const auto id = row.number("correlation"); id && *id > 0)
      event.correlation =
          numbers_.emplace(*id, static_cast<std::uint32_t>(numbers_.size() + 1)).first->second;
    event.bytes = row.number("bytes");
    const char* kGrid[] = {"grid_x", "grid_y", "grid_z"};
    const char* kBlock[] = {"block_x", "block_y", "block_z"};
    for (std::size_t i = 0; i < 3; ++i) {
      event.grid.at(i) = row.small(kGrid[i]).value_or(0);
      event.block.at(i) = row.small(kBlock[i]).value_or(0);
    }
    const std::string_view type = row.text("type"), arguments = row.text("args");
    if (category == "hip_runtime")
      classify_call(type, arguments, event);
    else if (category == "kernel")
      classify_work(type, event);
    if (event.category == "kernel")
      event.name = kernel_name(event.name);
    if (event.category == "gpu_memcpy") {
      if (is_fill(event.name))
        event.category = "gpu_memset";
      if (const auto bytes = copied_bytes(arguments); !event.bytes && bytes > 0)
        event.bytes = bytes;
    }
    builder_.add(event);
  }

  static void classify_call(std::string_view type,
                            std::string_view arguments,
                            kineto::Event& event) {
    const bool is_own_work =
        event.name.find("::") != std::string_view::npos || event.name == "hcc_activity_callback";
    if (event.name == "UserMarker") {  // a roctx range of rocmProfileData
      event.category = "user_annotation";
      event.name = arguments;
      event.correlation.reset();
    } else if (is_own_work) {
      event.category = "rocmProfileData's own work";
    } else if (type.starts_with("MARKER_CORE_RANGE")) {
      event.category = "user_annotation";
      event.correlation.reset();
    } else if (!type.empty() && !type.starts_with("HIP_")) {
      event.category = type;
    }
  }

  /// Tables of operations name a kernel, or the type of other work.
  static void classify_work(std::string_view type, kineto::Event& event) {
    if (type.empty() || type == "KernelExecution")
      return;
    event.name = type;
    if (is_fill(type))
      event.category = "gpu_memset";
    else if (type.starts_with("Copy"))
      event.category = "gpu_memcpy";
    else
      event.category = type;
  }

  kineto::Events builder_;
  std::unordered_map<std::int64_t, std::uint32_t> numbers_;
};

struct Tool {
  std::string_view name;
  std::string uuid;
};

/// What wrote it, by its tables.
std::optional<Tool> tool_of(const base::Database& database) {
  constexpr std::string_view kDispatch = "rocpd_kernel_dispatch";
  constexpr std::string_view kRegion = "rocpd_region";
  constexpr std::string_view kWord =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  for (const std::string& table : database.tables())
    for (const std::string_view begin : {kDispatch, kRegion})
      if (table.starts_with(begin) && table.find_first_not_of(kWord) == std::string::npos)
        return Tool{"rocprofv3", table.substr(begin.size())};
  if (database.has_table("rocpd_op") || database.has_table("rocpd_api"))
    return Tool{"rocmProfileData", {}};
  for (const char* table : {"OPS", "HIP", "COPY"})
    for (const std::string& column : database.columns(table))
      if (column == "BeginNs")
        return Tool{"rocprof", {}};
  return std::nullopt;
}

}  // namespace

bool is_database(const std::filesystem::path& path) {
  const auto database = base::Database::open_readonly(path);
  return database && tool_of(*database);
}

base::Result<model::Session> read_database(const std::filesystem::path& path) {
  const auto database = TRY(base::Database::open_readonly(path));
  const auto tool = tool_of(database);
  if (!tool)
    return base::fail(
        base::Code::kBadData, "a database without the tables of rocprof", path.string());
  Rows rows;
  std::vector<std::string> damage;
  for (const Query& query : queries_of(tool->name))
    if (auto read = rows.read(database, query, tool->uuid); !read)
      damage.push_back(base::replace_all(query.needs, "$", {}) + ": " + read.error().what);
  if (rows.known() == 0) {
    std::string message = base::join(damage, "; ");
    if (damage.empty())
      message = "a database of " + std::string(tool->name) + " without kernels, copies and calls";
    return base::fail(
        base::Code::kBadData,
        message,
        path.string(),
        "Record with rocprofv3 --runtime-trace, or rocprof --hip-trace --roctx-trace.");
  }
  model::Session session = rows.finish();
  for (std::string& detail : damage)
    session.losses.push_back({"damaged_table", 1, std::move(detail)});
  session.sources.push_back({path.string(), "rocm", std::string(tool->name), {}});
  return session;
}

}  // namespace rangescope::read::rocm
