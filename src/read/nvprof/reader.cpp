#include "read/nvprof/reader.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/sqlite.hpp"
#include "base/text.hpp"
#include "model/kernel_name.hpp"
#include "read/api_calls.hpp"
#include "read/demangle.hpp"
#include "read/nvprof/api_names.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::nvprof {
namespace {

using model::kNone;

constexpr char kFileHead[] = "SQLite format 3";
const std::string kPrefix = "CUPTI_ACTIVITY_KIND_";
constexpr std::int64_t kMark = 1, kBegin = 2, kEnd = 4;  ///< flags of MARKER

/// Tables that say nothing of what a program did, or that are read.
constexpr std::string_view kKnown[] = {
    "MEMCPY",   "MEMCPY2", "MEMSET",          "KERNEL",  "CONCURRENT_KERNEL", "DRIVER",        "RUNTIME",    "DEVICE",
    "MARKER",   "NAME",    "SYNCHRONIZATION", "CONTEXT", "DEVICE_ATTRIBUTE",  "STREAM",        "CUDA_EVENT", "PCIE",
    "OVERHEAD", "NVLINK",  "MARKER_DATA",     "MODULE",  "FUNCTION",          "SOURCE_LOCATOR"};

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  if (bytes.size() >= at + sizeof out) std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

class Importer {
 public:
  Importer(const base::Database& database, const Options& options) : db_(database), options_(options) {}

  model::Session run() {
    read_strings();
    read_devices();
    read_markers();
    if (options_.kernels) {
      read_calls("RUNTIME", kRuntime, "runtime");
      read_calls("DRIVER", kDriver, "driver");
      s_.unrecorded.calls = s_.launches.empty();
      read_kernels("CONCURRENT_KERNEL");
      read_kernels("KERNEL");
      read_copies("MEMCPY");
      read_copies("MEMCPY2");
      read_memsets();
      read_waits();
    }
    read_names();
    for (model::Stream& stream : s_.streams) stream.process = stream.process == kNone ? process(0) : stream.process;
    for (model::Device& device : s_.devices) device.process = s_.processes.empty() ? kNone : 0;
    order_ranges();
    add_waits_of_calls(s_);
    set_extents(s_);
    losses();
    return std::move(s_);
  }

 private:
  /// Calls row(statement) for each row of a table, with NULL for columns that it lacks.
  template <class Row>
  void rows(const std::string& table, std::initializer_list<std::string_view> columns, Row&& row) {
    const auto has = db_.columns(table);
    if (has.empty()) return;
    std::string sql = "select ";
    for (const std::string_view column : columns) {
      if (sql.size() > 7) sql += ", ";
      sql += std::find(has.begin(), has.end(), column) == has.end() ? "null" : '"' + std::string(column) + '"';
    }
    auto statement = db_.prepare(sql + " from \"" + table + '"');
    base::Result<bool> more = statement ? statement->step() : tl::make_unexpected(statement.error());
    for (; more && *more; more = statement->step()) row(*statement);
    if (!more) s_.losses.push_back({"damaged_table", 0, table + ": " + more.error().what});
  }

  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    if (count > 0) s_.losses.push_back({kind, count, std::move(detail)});
  }

  std::uint32_t process(std::uint32_t pid) {
    if (pid == 0 && !s_.processes.empty()) return 0;
    const auto [at, added] = process_of_.emplace(pid, static_cast<std::uint32_t>(s_.processes.size()));
    if (added) s_.processes.emplace_back().pid = pid;
    return at->second;
  }
  std::uint32_t thread(std::uint32_t pid, std::uint32_t tid) {
    const auto [at, added] = thread_of_.emplace(std::pair(pid, tid), static_cast<std::uint32_t>(s_.threads.size()));
    if (added) s_.threads.push_back({process(pid), tid, 0});
    return at->second;
  }
  model::StringId text(std::int64_t id) {
    const auto found = strings_.find(id);
    if (found != strings_.end()) return found->second;
    ++missing_strings_;
    return s_.strings.intern("[string " + std::to_string(id) + "]");
  }

  void read_strings() {
    rows("StringTable", {"_id_", "value"}, [&](const base::Statement& row) {
      strings_[row.integer(0)] = row.integer(0) == 0 ? 0 : s_.strings.intern(row.text(1));
    });
    strings_.emplace(0, 0);
  }

  void read_devices() {
    rows(kPrefix + "DEVICE",
         {"id", "name", "computeCapabilityMajor", "computeCapabilityMinor", "numMultiprocessors", "globalMemorySize",
          "l2CacheSize", "coreClockRate", "globalMemoryBandwidth"},
         [&](const base::Statement& row) {
           model::Device out;
           out.ordinal = static_cast<std::uint32_t>(row.integer(0));
           if (!device_of_.emplace(out.ordinal, s_.devices.size()).second) return;
           out.name = text(row.integer(1));
           out.compute_major = static_cast<std::uint32_t>(row.integer(2));
           out.compute_minor = static_cast<std::uint32_t>(row.integer(3));
           out.sm_count = static_cast<std::uint32_t>(row.integer(4));
           out.memory_bytes = static_cast<std::uint64_t>(row.integer(5));
           out.l2_bytes = static_cast<std::uint64_t>(row.integer(6));
           out.sm_clock_hz = static_cast<double>(row.integer(7)) * 1e3;         // kHz
           out.memory_bytes_per_s = static_cast<double>(row.integer(8)) * 1e3;  // kB/s
           s_.devices.push_back(out);
         });
  }

  void read_markers() {
    std::unordered_map<std::int64_t, std::uint32_t> open;
    std::uint64_t ends = 0;
    rows(kPrefix + "MARKER", {"flags", "timestamp", "id", "objectKind", "objectId", "name", "domain"},
         [&](const base::Statement& row) {
           const std::int64_t flags = row.integer(0), at = row.integer(1), id = row.integer(2);
           if (!row.is_number(1)) return void(++bad_rows_);
           const std::string_view object = row.text(4);
           // Of a process there is no thread; all other kinds of objects are GPUs, which NVTX does not mark.
           const std::uint32_t on = thread(number_at(object, 0), row.integer(3) == 2 ? number_at(object, 4) : 0);
           const model::StringId domain_name = text(row.integer(6));
           const auto [domain, added] = domains_.emplace(domain_name, static_cast<std::uint32_t>(s_.domains.size()));
           if (added) s_.domains.push_back({domain_name});
           if ((flags & kMark) != 0) {
             s_.marks.push_back({at, text(row.integer(5)), on, domain->second, kNone});
           } else if ((flags & kBegin) != 0) {
             open[id] = static_cast<std::uint32_t>(s_.ranges.size());
             model::Range out;
             out.start_ns = at;
             out.name = text(row.integer(5));
             out.thread = on;
             out.domain = domain->second;
             s_.ranges.push_back(out);
           } else if ((flags & kEnd) != 0) {
             const auto begun = open.find(id);
             if (begun == open.end()) return void(++ends);
             model::Range& range = s_.ranges[begun->second];
             if (at < range.start_ns) return void(++bad_rows_);
             range.end_ns = at;
             if (range.thread != on) {
               range.end_thread = on;
               range.kind = model::RangeKind::kStartEnd;
             }
             open.erase(begun);
           }
         });
    lose("unknown_end", ends, "ends of ranges whose begin was not recorded");
  }

  void read_calls(const char* table, std::span<const ApiName> names, const char* api) {
    rows(kPrefix + table, {"cbid", "start", "end", "processId", "threadId", "correlationId"},
         [&](const base::Statement& row) {
           model::Launch out;
           out.start_ns = row.integer(1);
           out.end_ns = row.integer(2);
           if (!row.is_number(1) || !row.is_number(2) || out.end_ns < out.start_ns) return void(++bad_rows_);
           out.thread = thread(static_cast<std::uint32_t>(row.integer(3)), static_cast<std::uint32_t>(row.integer(4)));
           out.correlation = static_cast<std::uint32_t>(row.integer(5));
           const std::string_view known = api_name(names, row.integer(0));
           out.kind = launch_kind(known);
           out.name = s_.strings.intern(known.empty() ? std::string(api) + " call " + std::to_string(row.integer(0))
                                                      : std::string(known));
           const auto [at, added] = call_of_.emplace(out.correlation, static_cast<std::uint32_t>(s_.launches.size()));
           ambiguous_ +=
               !added && s_.threads[s_.launches[at->second].thread].process != s_.threads[out.thread].process ? 1 : 0;
           s_.launches.push_back(out);
         });
  }

  /// Columns that the tables of GPU work have in common; what is behind them begins at kOwn.
  enum { kStart, kStop, kDevice, kContext, kStream, kCorrelation, kOwn };

  template <class Work>
  bool work(const base::Statement& row, Work& out, model::LaunchKind kind) {
    out.start_ns = row.integer(kStart);
    out.end_ns = row.integer(kStop);
    if (!row.is_number(kStart) || !row.is_number(kStop) || out.end_ns < out.start_ns) return ++bad_rows_, false;
    const auto call = call_of_.find(static_cast<std::uint32_t>(row.integer(kCorrelation)));
    std::uint32_t owner = kNone;
    if (call != call_of_.end()) {
      out.launch = call->second;
      owner = s_.threads[s_.launches[out.launch].thread].process;
      model::LaunchKind& known = s_.launches[out.launch].kind;
      if (known == model::LaunchKind::kOther) known = kind;
    }
    const auto ordinal = static_cast<std::uint32_t>(row.integer(kDevice));
    const auto context = static_cast<std::uint32_t>(row.integer(kContext));
    const auto id = static_cast<std::uint32_t>(row.integer(kStream));
    const auto [device, fresh] = device_of_.emplace(ordinal, s_.devices.size());
    if (fresh) s_.devices.emplace_back().ordinal = ordinal;
    const auto [at, added] =
        stream_of_.emplace(std::tuple(owner, ordinal, context, id), static_cast<std::uint32_t>(s_.streams.size()));
    if (added) s_.streams.push_back({owner, static_cast<std::uint32_t>(device->second), context, id, 0});
    out.stream = at->second;
    return true;
  }

  void read_kernels(const char* table) {
    rows(kPrefix + table,
         {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "name", "gridX", "gridY", "gridZ",
          "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"},
         [&](const base::Statement& row) {
           model::Kernel out;
           if (!work(row, out, model::LaunchKind::kKernel)) return;
           const auto [name, fresh] =
               kernel_of_.emplace(row.integer(kOwn), static_cast<std::uint32_t>(s_.kernel_names.size()));
           if (fresh) {
             const model::StringId mangled = text(row.integer(kOwn));
             const std::string full = demangle(std::string(s_.strings.view(mangled)));
             s_.kernel_names.push_back(
                 {s_.strings.intern(full), s_.strings.intern(model::short_kernel_name(full)), mangled});
           }
           out.name = name->second;
           const auto small = [&](int column) { return static_cast<std::uint32_t>(row.integer(kOwn + column)); };
           model::KernelShape shape;
           shape.grid = {small(1), small(2), small(3)};
           shape.block = {small(4), small(5), small(6)};
           shape.registers_per_thread = small(7);
           shape.static_shared_bytes = small(8);
           shape.dynamic_shared_bytes = small(9);
           const auto [at, added] = shapes_.emplace(shape, static_cast<std::uint32_t>(s_.kernel_shapes.size()));
           if (added) s_.kernel_shapes.push_back(shape);
           out.shape = at->second;
           s_.kernels.push_back(out);
         });
  }

  void read_copies(const char* table) {
    rows(kPrefix + table, {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "bytes", "copyKind"},
         [&](const base::Statement& row) {
           model::Copy out;
           if (!work(row, out, model::LaunchKind::kCopy)) return;
           out.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.integer(kOwn)));
           const std::int64_t kind = row.integer(kOwn + 1);
           if (kind > 0 && kind <= 10) out.kind = static_cast<model::CopyKind>(kind);
           s_.copies.push_back(out);
         });
  }

  void read_memsets() {
    rows(kPrefix + "MEMSET", {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "bytes"},
         [&](const base::Statement& row) {
           model::Memset out;
           if (!work(row, out, model::LaunchKind::kMemset)) return;
           out.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.integer(kOwn)));
           s_.memsets.push_back(out);
         });
  }

  void read_waits() {
    rows(kPrefix + "SYNCHRONIZATION", {"start", "end", "correlationId", "type"}, [&](const base::Statement& row) {
      model::Synchronization out;
      out.start_ns = row.integer(0);
      out.end_ns = row.integer(1);
      if (!row.is_number(0) || !row.is_number(1) || out.end_ns < out.start_ns) return void(++bad_rows_);
      const auto call = call_of_.find(static_cast<std::uint32_t>(row.integer(2)));
      if (call != call_of_.end()) out.launch = call->second;
      const std::int64_t kind = row.integer(3);
      if (kind > 0 && kind <= 4) out.kind = static_cast<model::SyncKind>(kind);
      s_.synchronizations.push_back(out);
    });
  }

  /// Names that NVTX gave to threads, and the command line of each process, of which the program is kept.
  void read_names() {
    rows(kPrefix + "NAME", {"objectKind", "objectId", "name"}, [&](const base::Statement& row) {
      const std::uint32_t pid = number_at(row.text(1), 0), tid = number_at(row.text(1), 4);
      const std::string_view full = s_.strings.view(text(row.integer(2)));
      if (row.integer(0) == 1)
        s_.processes[process(pid)].name = s_.strings.intern(std::string(full.substr(0, full.find(' '))));
      if (row.integer(0) == 2) s_.threads[thread(pid, tid)].name = s_.strings.intern(std::string(full));
    });
  }

  /// Into the order of the begins; pairs that cross on their thread become start/end ranges.
  void order_ranges() {
    std::stable_sort(s_.ranges.begin(), s_.ranges.end(), [](const model::Range& a, const model::Range& b) {
      if (a.thread != b.thread) return a.thread < b.thread;
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<model::Range*>> stacks;  // by thread and domain
    for (model::Range& range : s_.ranges) {
      if (range.kind == model::RangeKind::kStartEnd) continue;
      auto& open = stacks[{range.thread, range.domain}];
      while (!open.empty() && open.back()->end_ns <= range.start_ns) open.pop_back();
      if (!open.empty() && open.back()->end_ns < range.end_ns) {
        open.back()->kind = range.kind = model::RangeKind::kStartEnd;
        continue;
      }
      open.push_back(&range);
    }
  }

  void losses() {
    lose("bad_rows", bad_rows_, "rows without times, or that end before they start, were left out");
    lose("missing_string", missing_strings_, "names that StringTable does not hold");
    lose("ambiguous_correlation", ambiguous_, "calls of several processes have one correlation id: the first counts");
    std::uint64_t ignored = 0;
    std::string names;
    for (const std::string& table : db_.tables()) {
      if (!table.starts_with(kPrefix)) continue;
      const std::string kind = table.substr(kPrefix.size());
      if (std::find(std::begin(kKnown), std::end(kKnown), kind) != std::end(kKnown)) continue;
      auto some = db_.prepare("select 1 from \"" + table + "\" limit 1");
      auto any = some ? some->step() : base::Result<bool>(false);
      if (!any || !*any) continue;
      ++ignored;
      names += (names.empty() ? "" : ", ") + base::printable(kind);
    }
    lose("ignored_table", ignored, "tables of nvprof that are not read: " + names);
  }

  const base::Database& db_;
  const Options& options_;
  model::Session s_;
  std::unordered_map<std::int64_t, model::StringId> strings_;
  std::map<std::uint32_t, std::uint32_t> process_of_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> thread_of_;
  std::map<model::StringId, std::uint32_t> domains_{{0, 0}};
  std::map<std::uint32_t, std::size_t> device_of_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> stream_of_;
  std::unordered_map<std::int64_t, std::uint32_t> kernel_of_;
  std::map<model::KernelShape, std::uint32_t> shapes_;
  std::unordered_map<std::uint32_t, std::uint32_t> call_of_;  ///< by correlation id
  std::uint64_t bad_rows_ = 0, missing_strings_ = 0, ambiguous_ = 0;
};

}  // namespace

bool NvprofReader::sniff(std::span<const std::byte> head, const std::filesystem::path& path) const {
  if (head.size() < sizeof kFileHead || std::memcmp(head.data(), kFileHead, sizeof kFileHead) != 0) return false;
  const auto database = base::Database::open_readonly(path);
  return database && database->has_table("StringTable") && database->has_table(kPrefix + "RUNTIME");
}

base::Result<model::Session> NvprofReader::read(const std::filesystem::path& path, const Options& options) const {
  auto database = base::Database::open_readonly(path);
  if (!database) return base::fail(std::move(database));
  model::Session session = Importer(*database, options).run();
  std::string version;
  if (auto query = database->prepare("select version from Version"); query) {
    if (auto row = query->step(); row && *row) version = std::to_string(query->integer(0));
  }
  session.sources.push_back({path.string(), "nvprof", "nvprof", version});
  return session;
}

}  // namespace rangescope::read::nvprof
