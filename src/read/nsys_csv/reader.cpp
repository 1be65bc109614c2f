#include "read/nsys_csv/reader.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/nsys_csv/csv.hpp"

namespace rangescope::read::nsys_csv {
namespace {

enum class Table {
  kNone,
  kKernels,
  kRanges,
  kRangesByStyle,
  kRangeKernels,
  kProjection,
  kCopyTimes,
  kCopySizes,
  kCalls
};

struct Column {
  std::size_t at = 0;
  double scale = 1;  ///< to nanoseconds or bytes
};

struct Header {
  Table table = Table::kNone;
  std::map<std::string, Column, std::less<>> columns;
  std::size_t width = 0;
  bool bare_names = false;  ///< of 2020: `Average` without unit, ranges without domain
};

std::optional<double> unit_scale(std::string_view unit) {
  if (unit == "ns" || unit == "nsec" || unit == "nanoseconds") return 1;
  if (unit == "us" || unit == "usec" || unit == "\xce\xbcs" || unit == "\xc2\xb5s" || unit == "microseconds")
    return 1e3;
  if (unit == "ms" || unit == "msec" || unit == "milliseconds") return 1e6;
  if (unit == "s" || unit == "sec" || unit == "seconds") return 1e9;
  if (unit == "MB") return 1e6;
  if (unit == "B" || unit == "bytes") return 1;
  if (unit == "KB" || unit == "kB") return 1e3;
  if (unit == "GB") return 1e9;
  return std::nullopt;
}

/// Names that changed with versions of nsys, in lower case and without unit.
std::string canonical(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOld[] = {
      {"average", "avg"}, {"minimum", "min"}, {"maximum", "max"}, {"median", "med"}, {"operations", "operation"}};
  for (const auto& [old, now] : kOld) {
    if (name == old) return std::string(now);
  }
  return std::string(name);
}

Header parse_header(const std::vector<std::string>& fields) {
  Header header;
  header.width = fields.size();
  double main_scale = 1;
  std::vector<std::string> without_unit;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::string name = base::lower(base::trim(fields[i]));
    Column column{i, 1};
    if (const auto bracket = fields[i].rfind('('); bracket != std::string::npos && fields[i].ends_with(")")) {
      const std::string_view unit = std::string_view(fields[i]).substr(bracket + 1, fields[i].size() - bracket - 2);
      if (const auto scale = unit_scale(unit)) column.scale = *scale;
      name = base::trim(base::lower(std::string_view(fields[i]).substr(0, bracket)));
      if (name == "total time" || name == "total") main_scale = column.scale;
    } else {
      without_unit.push_back(canonical(name));
    }
    header.columns.emplace(canonical(name), column);
  }
  header.bare_names = std::find(fields.begin(), fields.end(), "Average") != fields.end();
  for (const std::string& name : without_unit) {  // 2020 printed `Average` next to `Total Time (ns)`
    if (name == "avg" || name == "min" || name == "max" || name == "med" || name == "stddev")
      header.columns[name].scale = main_scale;
  }
  const auto has = [&](std::string_view name) { return header.columns.contains(name); };
  if (has("nvtx range") && has("kernel name") && has("total time"))
    header.table = Table::kRangeKernels;
  else if (has("range") && has("total proj time") && has("range instances"))
    header.table = Table::kProjection;
  else if (has("range") && has("total time") && has("instances"))
    header.table = has("style") ? Table::kRangesByStyle : Table::kRanges;
  else if (has("name") && has("total time") && has("instances"))
    header.table = Table::kKernels;
  else if (has("operation") && has("total time") && has("count"))
    header.table = Table::kCopyTimes;
  else if (has("operation") && has("total") && has("count"))
    header.table = Table::kCopySizes;
  else if (has("name") && has("total time") && has("num calls"))
    header.table = Table::kCalls;
  return header;
}

/// One row, by column name.
class Row {
 public:
  Row(const Header& header, const std::vector<std::string>& fields) : header_(header), fields_(fields) {}
  [[nodiscard]] std::string_view text(std::string_view column) const {
    const auto found = header_.columns.find(column);
    return found == header_.columns.end() ? std::string_view{} : std::string_view(fields_[found->second.at]);
  }
  [[nodiscard]] std::optional<double> number(std::string_view column) const {
    const auto found = header_.columns.find(column);
    if (found == header_.columns.end()) return std::nullopt;
    const auto value = base::to_double(base::trim(fields_[found->second.at]));
    return value ? std::optional(*value * found->second.scale) : std::nullopt;
  }
  [[nodiscard]] std::int64_t count(std::string_view column) const {
    return static_cast<std::int64_t>(number(column).value_or(0));
  }

 private:
  const Header& header_;
  const std::vector<std::string>& fields_;
};

model::SummarySpread spread(const Row& row, const std::string& prefix = {}) {
  return {row.number(prefix + "avg"), row.number(prefix + "med"), row.number(prefix + "min"),
          row.number(prefix + "max"), row.number(prefix + "stddev")};
}

class Builder {
 public:
  explicit Builder(model::Session& session) : s_(session) {}

  /// False when a number that the table lives by is not one.
  bool add(const Header& header, const Row& row, model::RangeKind kind) {
    bare_names_ = header.bare_names;
    switch (header.table) {
      case Table::kKernels: return add_kernel(row);
      case Table::kRanges:
      case Table::kRangesByStyle: return add_range(row, kind_of(row, kind));
      case Table::kRangeKernels: return add_range_kernel(row, kind_of(row, kind));
      case Table::kProjection: return add_projection(row, kind_of(row, kind));
      case Table::kCopyTimes:
      case Table::kCopySizes: return add_copy(row, header.table == Table::kCopySizes);
      case Table::kCalls:
      case Table::kNone: return true;
    }
    return true;
  }

 private:
  static model::RangeKind kind_of(const Row& row, model::RangeKind otherwise) {
    const std::string style = base::lower(row.text("style"));
    if (style.starts_with("start")) return model::RangeKind::kStartEnd;
    return style.starts_with("push") ? model::RangeKind::kPushPop : otherwise;
  }
  /// "LLM:decode", the default domain as ":decode"; tables of 2020 have bare names, colons and all.
  std::pair<model::StringId, model::StringId> split(std::string_view range) {
    const std::size_t colon = bare_names_ ? std::string_view::npos : range.find(':');
    if (colon == std::string_view::npos) return {0, s_.strings.intern(range)};
    return {s_.strings.intern(range.substr(0, colon)), s_.strings.intern(range.substr(colon + 1))};
  }
  model::RangeSummary& range(const Row& row, std::string_view column, model::RangeKind kind) {
    const auto [domain, name] = split(row.text(column));
    for (model::RangeSummary& known : s_.summary.ranges) {
      if (known.domain == domain && known.name == name && known.kind == kind) return known;
    }
    s_.summary.ranges.push_back({domain, name, kind});
    return s_.summary.ranges.back();
  }

  bool add_range(const Row& row, model::RangeKind kind) {
    if (!row.number("total time")) return false;
    model::RangeSummary& out =
        range(row, "range", kind);  // nvtx_sum and nvtx_pushpop_sum say the same: the last one stays
    out.occurrences = row.count("instances");
    out.total_ns = row.number("total time");
    out.per_occurrence_ns = spread(row);
    return true;
  }
  bool add_projection(const Row& row, model::RangeKind kind) {
    if (!row.number("total proj time")) return false;
    model::RangeSummary& out = range(row, "range", kind);
    out.gpu_span_ns = row.number("total proj time");
    out.gpu_operations = row.count("total gpu ops");
    if (out.occurrences == 0) {  // occurrences without GPU work are not in this table
      out.occurrences = row.count("range instances");
      out.total_ns = row.number("total range time");
    }
    return true;
  }
  bool add_kernel(const Row& row) {
    if (!row.number("total time")) return false;
    model::KernelSummary out;
    out.name = s_.strings.intern(row.text("name"));
    out.calls = row.count("instances");
    out.total_ns = *row.number("total time");
    out.duration_ns = spread(row);
    s_.summary.kernels.push_back(out);
    return true;
  }
  bool add_range_kernel(const Row& row, model::RangeKind kind) {
    if (!row.number("total time")) return false;
    model::KernelSummary out;
    out.in_range = true;
    const std::string_view name = row.text("nvtx range");
    out.outside = name.empty() || name == "None";
    if (!out.outside) std::tie(out.domain, out.range) = split(name);
    out.kind = kind;
    out.name = s_.strings.intern(row.text("kernel name"));
    out.calls = row.count("kern inst");
    out.total_ns = *row.number("total time");
    out.duration_ns = spread(row);
    out.occurrences = row.count("nvtx inst");
    out.pid = static_cast<std::uint32_t>(row.count("pid"));
    out.tid = static_cast<std::uint32_t>(row.count("tid"));
    s_.summary.kernels.push_back(out);
    return true;
  }
  bool add_copy(const Row& row, bool sizes) {
    const auto value = row.number(sizes ? "total" : "total time");
    if (!value) return false;
    const std::string what = base::lower(row.text("operation"));
    model::CopyKind kind = model::CopyKind::kUnknown;
    constexpr std::pair<std::string_view, model::CopyKind> kKinds[] = {
        {"host-to-device", model::CopyKind::kHostToDevice},     {"htod", model::CopyKind::kHostToDevice},
        {"device-to-host", model::CopyKind::kDeviceToHost},     {"dtoh", model::CopyKind::kDeviceToHost},
        {"device-to-device", model::CopyKind::kDeviceToDevice}, {"dtod", model::CopyKind::kDeviceToDevice},
        {"host-to-host", model::CopyKind::kHostToHost},         {"htoh", model::CopyKind::kHostToHost},
        {"peer-to-peer", model::CopyKind::kPeerToPeer},         {"ptop", model::CopyKind::kPeerToPeer}};
    for (const auto& [word, known] : kKinds) {
      if (what.find(word) != std::string::npos) kind = known;
    }
    const bool memset = what.find("memset") != std::string::npos;
    const auto same = [&](const model::CopySummary& copy) { return copy.kind == kind && copy.memset == memset; };
    auto found = std::find_if(s_.summary.copies.begin(), s_.summary.copies.end(), same);
    if (found == s_.summary.copies.end()) found = s_.summary.copies.insert(found, {kind, memset});
    found->calls = row.count("count");
    (sizes ? found->bytes : found->total_ns) += *value;
    return true;
  }

  model::Session& s_;
  bool bare_names_ = false;
};

/// What a line of chatter says about the report that follows.
std::optional<model::RangeKind> kind_in(std::string_view text) {
  for (const std::string_view word : {"startend", "nvtxsesum", "nvtxsssum"}) {
    if (text.find(word) != std::string_view::npos) return model::RangeKind::kStartEnd;
  }
  for (const std::string_view word : {"pushpop", "nvtxppsum"}) {
    if (text.find(word) != std::string_view::npos) return model::RangeKind::kPushPop;
  }
  return std::nullopt;
}

}  // namespace

base::Result<model::Session> read_text(std::string_view text, std::string_view name) {
  model::Session session;
  Builder builder(session);
  Header header;
  model::RangeKind kind = kind_in(name).value_or(model::RangeKind::kPushPop);
  std::size_t line = 1, tables = 0;
  std::uint64_t bad = 0;
  std::size_t first_bad = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t here = line;
    const std::string_view before = text;
    const std::vector<std::string> fields = take_record(text);
    line += static_cast<std::size_t>(
        std::count(before.begin(), before.end() - static_cast<std::ptrdiff_t>(text.size()), '\n'));
    if (fields.size() >= 3) {
      Header next = parse_header(fields);
      if (next.table != Table::kNone) {
        header = std::move(next);
        ++tables;
        if (header.table == Table::kCalls) {
          session.losses.push_back(
              {"ignored_table", model::Severity::kInfo, 0,
               "line " + std::to_string(here) + ": a summary of API calls says nothing about ranges or kernels"});
        }
        continue;
      }
    }
    if (header.table != Table::kNone && fields.size() == header.width) {
      if (!builder.add(header, Row(header, fields), kind) && bad++ == 0) first_bad = here;
      continue;
    }
    // Chatter, or the end of the table.
    const bool blank = fields.size() == 1 && base::trim(fields[0]).empty();
    if (header.table != Table::kNone && !blank && fields.size() > 2 && bad++ == 0) first_bad = here;
    header = {};
    if (!blank) kind = kind_in(fields[0]).value_or(kind);
  }
  if (tables == 0) {
    return base::fail(base::Code::kBadData, "no header of an nsys stats table in " + std::to_string(line) + " lines",
                      std::string(name),
                      "Make one with: nsys stats --report nvtx_sum --report nvtx_kern_sum --format csv FILE");
  }
  if (bad > 0) {
    session.losses.push_back(
        {"bad_rows", model::Severity::kWarning, bad,
         "rows that do not fit their header were left out, the first in line " + std::to_string(first_bad)});
  }
  session.losses.push_back(
      {"no_timeline", model::Severity::kInfo, 0,
       "nsys stats tables hold totals by name: nesting, exclusive times and overlap cannot be known"});
  return session;
}

bool NsysCsvReader::sniff(std::span<const std::byte> head, const std::filesystem::path&) const {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::vector<std::string> fields = take_record(text);
    if (fields.size() >= 3 && parse_header(fields).table != Table::kNone) return true;
  }
  return false;
}

base::Result<model::Session> NsysCsvReader::read(const std::filesystem::path& path, const Options&) const {
  auto text = base::read_file(path);
  if (!text) return base::fail(std::move(text));
  auto session = read_text(*text, path.string());
  if (session) session->sources.push_back({path.string(), "nsys-csv", {}, {}});
  return session;
}

}  // namespace rangescope::read::nsys_csv
