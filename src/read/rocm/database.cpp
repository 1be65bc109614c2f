// SQLite of three tools, each a few statements whose columns are called what read/kineto's events have:
//
//   rocprof         results.db    HIP, OPS, COPY, rocTX: a row an event; "Index" is one number for a call and its work
//   rocmProfileData *.rpd         rocpd_api, rocpd_op and rocpd_api_ops, which joins them; texts in rocpd_string
//   rocprofv3       *_results.db  rocpd_region, rocpd_kernel_dispatch, rocpd_memory_copy, each with a UUID behind its
//                                 name; the event's stack_id is one number for a call and its work; the message of a
//                                 roctx range is in its event's extdata
//
// Views of a stranger's file do not run (base/sqlite.hpp), so none of theirs is used.
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/sqlite.hpp"
#include "base/text.hpp"
#include "read/kineto/build.hpp"
#include "read/rocm/events.hpp"
#include "read/rocm/reader.hpp"

namespace rangescope::read::rocm {
namespace {

/// It runs where the table `needs` exists; $ is the UUID behind the names of tables.
struct Query {
  std::string_view needs, category, sql;
};

constexpr Query kRocprof[] = {
    {"HIP", "hip_runtime", R"(select Name name, BeginNs start, EndNs "end", pid, tid, "Index" correlation from HIP)"},
    {"rocTX", "user_annotation", R"(select Name name, BeginNs start, EndNs "end", pid, tid from rocTX)"},
    {"OPS", "kernel",
     R"(select Name name, BeginNs start, EndNs "end", pid, tid, "Index" correlation, "dev-id" device,
        "queue-id" stream from OPS)"},
    {"COPY", "gpu_memcpy",
     R"(select c.Name name, c.BeginNs start, c.EndNs "end", c.pid, c.tid, c."Index" correlation,
        c."dev-id" device, c."queue-id" stream, h.args from COPY c left join HIP h on h."Index" = c."Index")"},
};

constexpr Query kRpd[] = {
    {"rocpd_api", "hip_runtime",
     R"(select n.string name, a.start, a."end", a.pid, a.tid, a.id correlation, g.string args
        from rocpd_api a join rocpd_string n on n.id = a.apiName_id
        left join rocpd_string g on g.id = a.args_id)"},
    {"rocpd_op", "kernel",
     R"(select coalesce(nullif(d.string, ''), t.string) name, o.start, o."end", o.gpuId device,
        o.queueId stream, x.api_id correlation, t.string type, k.gridX grid_x, k.gridY grid_y,
        k.gridZ grid_z, k.workgroupX block_x, k.workgroupY block_y, k.workgroupZ block_z, c.size bytes
        from rocpd_op o join rocpd_string t on t.id = o.opType_id
        left join rocpd_string d on d.id = o.description_id left join rocpd_api_ops x on x.op_id = o.id
        left join rocpd_kernelapi k on k.api_ptr_id = x.api_id
        left join rocpd_copyapi c on c.api_ptr_id = x.api_id group by o.id)"},
};

constexpr Query kRocpd[] = {
    {"rocpd_region$", "hip_runtime",
     R"(select coalesce(case when c.string like 'MARKER_%' then json_extract(e.extdata, '$.message') end,
        n.string) name, r.start, r."end", p.pid, t.tid, e.stack_id correlation, c.string type
        from "rocpd_region$" r join "rocpd_string$" n on n.id = r.name_id
        left join "rocpd_event$" e on e.id = r.event_id left join "rocpd_string$" c on c.id = e.category_id
        left join "rocpd_info_process$" p on p.id = r.pid left join "rocpd_info_thread$" t on t.id = r.tid)"},
    {"rocpd_kernel_dispatch$", "kernel",
     R"(select coalesce(s.display_name, s.kernel_name) name, k.start, k."end", p.pid,
        e.stack_id correlation, a.type_index device, k.stream_id stream,
        k.grid_size_x / max(k.workgroup_size_x, 1) grid_x, k.grid_size_y / max(k.workgroup_size_y,
        1) grid_y, k.grid_size_z / max(k.workgroup_size_z, 1) grid_z, k.workgroup_size_x block_x,
        k.workgroup_size_y block_y, k.workgroup_size_z block_z from "rocpd_kernel_dispatch$" k
        left join "rocpd_info_kernel_symbol$" s on s.id = k.kernel_id
        left join "rocpd_event$" e on e.id = k.event_id left join "rocpd_info_agent$" a on a.id = k.agent_id
        left join "rocpd_info_process$" p on p.id = k.pid)"},
    {"rocpd_memory_copy$", "gpu_memcpy",
     R"(select n.string name, m.start, m."end", p.pid, e.stack_id correlation, m.stream_id stream,
        m.size bytes, max(coalesce(case when d.type = 'GPU' then d.type_index end, -1),
        coalesce(case when s.type = 'GPU' then s.type_index end, -1)) device from "rocpd_memory_copy$" m
        left join "rocpd_string$" n on n.id = m.name_id left join "rocpd_event$" e on e.id = m.event_id
        left join "rocpd_info_process$" p on p.id = m.pid
        left join "rocpd_info_agent$" d on d.id = m.dst_agent_id
        left join "rocpd_info_agent$" s on s.id = m.src_agent_id)"},
};

/// A statement's columns by name; what is absent or null is nothing.
class Columns {
 public:
  explicit Columns(const base::Statement& statement) : s_(statement) {
    for (int i = 0; i < s_.columns(); ++i) at_.emplace(s_.column_name(i), i);
  }
  [[nodiscard]] std::string_view text(const std::string& name) const {
    const auto found = at_.find(name);
    return found == at_.end() || s_.is_null(found->second) ? std::string_view() : s_.text(found->second);
  }
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& name) const {
    const auto found = at_.find(name);
    if (found == at_.end() || !s_.is_number(found->second)) return std::nullopt;
    const std::int64_t value = s_.integer(found->second);
    return value >= 0 && value < (std::int64_t{1} << 62) ? std::optional(value) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> small(const std::string& name) const {
    const auto value = number(name);
    return value && *value < std::numeric_limits<std::uint32_t>::max()
               ? std::optional(static_cast<std::uint32_t>(*value))
               : std::nullopt;
  }

 private:
  const base::Statement& s_;
  std::unordered_map<std::string, int> at_;
};

class Rows {
 public:
  base::Result<void> read(const base::Database& database, const Query& query, const std::string& uuid) {
    const std::string table = base::replace_all(query.needs, "$", uuid);
    if (!database.has_table(table)) return {};
    std::string sql(query.sql);
    if (!uuid.empty()) sql = base::replace_all(sql, "$\"", uuid + '"');
    auto statement = TRY(database.prepare(base::replace_all(sql, "$\"", "\"")));
    const Columns columns(statement);
    for (;;) {
      auto more = TRY(statement.step());
      if (!more) return {};
      add(columns, query.category);
    }
  }

  [[nodiscard]] std::uint64_t known() const { return builder_.known(); }
  model::Session finish() { return builder_.finish(); }

 private:
  void add(const Columns& row, std::string_view category) {
    const auto start = row.number("start"), end = row.number("end");
    if (!start || !end) return builder_.bad();
    if (*end < *start) return builder_.bad_length();
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
      event.correlation = numbers_.emplace(*id, static_cast<std::uint32_t>(numbers_.size() + 1)).first->second;
    event.bytes = row.number("bytes");
    const char* kGrid[] = {"grid_x", "grid_y", "grid_z"};
    const char* kBlock[] = {"block_x", "block_y", "block_z"};
    for (std::size_t i = 0; i < 3; ++i) {
      event.grid.at(i) = row.small(kGrid[i]).value_or(0);
      event.block.at(i) = row.small(kBlock[i]).value_or(0);
    }
    const std::string_view type = row.text("type"), arguments = row.text("args");
    if (category == "hip_runtime") {
      if (event.name == "UserMarker") {  // a roctx range of rocmProfileData
        event.category = "user_annotation";
        event.name = arguments;
        event.correlation.reset();
      } else if (event.name.find("::") != std::string_view::npos || event.name == "hcc_activity_callback") {
        event.category = "rocmProfileData's own work";
      } else if (type.starts_with("MARKER_CORE_RANGE")) {
        event.category = "user_annotation";
        event.correlation.reset();
      } else if (!type.empty() && !type.starts_with("HIP_")) {
        event.category = type;
      }
    } else if (category == "kernel" && !type.empty() && type != "KernelExecution") {
      event.category = is_fill(type) ? "gpu_memset" : type.starts_with("Copy") ? "gpu_memcpy" : type;
      event.name = type;
    }
    if (event.category == "kernel") event.name = kernel_name(event.name);
    if (event.category == "gpu_memcpy") {
      if (is_fill(event.name)) event.category = "gpu_memset";
      if (const auto bytes = copied_bytes(arguments); !event.bytes && bytes > 0) event.bytes = bytes;
    }
    builder_.add(event);
  }

  kineto::Events builder_;
  std::unordered_map<std::int64_t, std::uint32_t> numbers_;
};

struct Tool {
  std::string_view name;
  std::span<const Query> queries;
  std::string uuid;
};

/// What wrote it, by its tables.
std::optional<Tool> tool_of(const base::Database& database) {
  constexpr std::string_view kDispatch = "rocpd_kernel_dispatch", kRegion = "rocpd_region",
                             kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  for (const std::string& table : database.tables())
    for (const std::string_view begin : {kDispatch, kRegion})
      if (table.starts_with(begin) && table.find_first_not_of(kWord) == std::string::npos)
        return Tool{"rocprofv3", kRocpd, table.substr(begin.size())};
  if (database.has_table("rocpd_op") || database.has_table("rocpd_api")) return Tool{"rocmProfileData", kRpd, {}};
  for (const char* table : {"OPS", "HIP", "COPY"})
    for (const std::string& column : database.columns(table))
      if (column == "BeginNs") return Tool{"rocprof", kRocprof, {}};
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
  if (!tool) return base::fail(base::Code::kBadData, "a database without the tables of rocprof", path.string());
  Rows rows;
  std::vector<std::string> damage;
  for (const Query& query : tool->queries)
    if (auto read = rows.read(database, query, tool->uuid); !read)
      damage.push_back(base::replace_all(query.needs, "$", {}) + ": " + read.error().what);
  if (rows.known() == 0)
    return base::fail(base::Code::kBadData,
                      damage.empty() ? "a database of " + std::string(tool->name) + " without kernels, copies and calls"
                                     : base::join(damage, "; "),
                      path.string(), "Record with rocprofv3 --runtime-trace, or rocprof --hip-trace --roctx-trace.");
  model::Session session = rows.finish();
  for (std::string& each : damage) session.losses.push_back({"damaged_table", 1, std::move(each)});
  session.sources.push_back({path.string(), "rocm", std::string(tool->name), {}});
  return session;
}

}  // namespace rangescope::read::rocm
