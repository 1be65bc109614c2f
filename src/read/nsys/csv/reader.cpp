#include "read/nsys/csv/reader.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fs.hpp"
#include "base/nsys_reports.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/session.hpp"
#include "read/csv.hpp"
#include "read/nsys/csv/domains.hpp"
#include "read/nsys/csv/header.hpp"
#include "read/nsys/csv/traces.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::nsys_csv {
namespace {

// Tables of sums of nsys stats, one row a name: they become model::Summary.

model::SummarySpread spread(const Row& row, const std::string& prefix = {}) {
  return {row.number(prefix + "avg"), row.number(prefix + "med"), row.number(prefix + "min"),
          row.number(prefix + "max"), row.number(prefix + "stddev")};
}

model::RangeKind kind_of(const Row& row, model::RangeKind otherwise) {
  const std::string style = base::lower(row.text("style"));
  if (style.starts_with("start")) return model::RangeKind::kStartEnd;
  return style.starts_with("push") ? model::RangeKind::kPushPop : otherwise;
}

/// A row with a total that so many of at most so long can come to; half as much again, and more, is
/// rounding.
bool has_total(const Row& row, const char* count) {
  const auto total = row.number("total time"), longest = row.number("max");
  if (!total || !longest || *longest <= 0) return total.has_value();
  return *total <= 2 * *longest * static_cast<double>(row.count(count));
}

/// Two rows of one kernel: extremes and mean can be put together, the middle cannot.
void merge(model::KernelSummary& into, const model::KernelSummary& row) {
  into.calls += row.calls;
  into.total_ns += row.total_ns;
  model::SummarySpread& all = into.duration_ns;
  const auto extreme = [](std::optional<double>& known, const std::optional<double>& other,
                          bool least) {
    if (!known || !other)
      known.reset();
    else
      known = least ? std::min(*known, *other) : std::max(*known, *other);
  };
  extreme(all.min, row.duration_ns.min, true);
  extreme(all.max, row.duration_ns.max, false);
  all.median = all.stddev = std::nullopt;
  if (into.calls > 0) all.mean = into.total_ns / static_cast<double>(into.calls);
}

class Sums {
 public:
  explicit Sums(model::Session& session) : s_(session) {}

  /// False when a number that the table lives by is not one. `kind` is for rows that do not name
  /// theirs.
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
      default: return true;
    }
  }

  /// Splits the names of ranges into domain and name; returns how many of them it had to guess.
  /// Call it once.
  std::uint64_t finish() {
    std::vector<std::string_view> names;
    for (const model::StringId name : full_) names.push_back(s_.strings.view(name));
    const Domains domains(names, certain_names());
    const auto split = [&](model::StringId& domain, model::StringId& range) {
      if (bare_.contains(range)) return;
      const auto [domain_name, range_name] = domains.split(s_.strings.view(range));
      domain = s_.strings.intern(domain_name);
      range = s_.strings.intern(range_name);
    };
    for (model::RangeSummary& range : s_.summary.ranges) split(range.domain, range.name);
    for (model::KernelSummary& kernel : s_.summary.kernels)
      if (kernel.in_range && !kernel.outside) split(kernel.domain, kernel.range);
    return domains.guessed();
  }

  /// Names with their domain, where the tables of sums print it in front of each; else none.
  [[nodiscard]] FullNames certain_names() const {
    FullNames names;
    for (const model::StringId name : full_) names.emplace(s_.strings.view(name));
    return every_domain_is_printed(names) ? names : FullNames{};
  }

 private:
  /// A range's name as the table has it, domain and name in one: finish() splits it.
  model::StringId full_name(std::string_view range) {
    const model::StringId name = s_.strings.intern(range);
    (bare_names_ ? bare_ : full_).insert(name);
    return name;
  }

  model::RangeSummary& range(const Row& row, std::string_view column, model::RangeKind kind) {
    const model::StringId name = full_name(row.text(column));
    const auto [at, added] =
        range_of_.emplace(std::tuple(bare_names_, name, kind), s_.summary.ranges.size());
    if (added) s_.summary.ranges.push_back({0, name, kind});
    return s_.summary.ranges[at->second];
  }

  bool add_range(const Row& row, model::RangeKind kind) {
    if (!has_total(row, "instances")) return false;
    model::RangeSummary& out =
        range(row, "range", kind);  // nvtx_sum and nvtx_pushpop_sum agree: the last one stays
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
    if (!has_total(row, "instances")) return false;
    model::KernelSummary out;
    out.name = s_.strings.intern(row.text("name"));
    out.calls = row.count("instances");
    out.total_ns = *row.number("total time");
    out.duration_ns = spread(row);
    // Tables with grid and block have a row for each launch configuration.
    const auto [at, added] = kernel_of_.emplace(out.name, s_.summary.kernels.size());
    if (!added) {
      merge(s_.summary.kernels[at->second], out);
      return true;
    }
    s_.summary.kernels.push_back(out);
    return true;
  }

  bool add_range_kernel(const Row& row, model::RangeKind kind) {
    if (!has_total(row, "kern inst")) return false;
    model::KernelSummary out;
    out.in_range = true;
    const std::string_view name = row.text("nvtx range");
    out.outside = name.empty() || name == "None";
    if (!out.outside) out.range = full_name(name);
    out.kind = kind;
    out.name = s_.strings.intern(row.text("kernel name"));
    out.calls = row.count("kern inst");
    out.total_ns = *row.number("total time");
    out.duration_ns = spread(row);
    out.occurrences = row.count("nvtx inst");
    out.pid = row.id("pid").value_or(0);
    out.tid = row.id("tid").value_or(0);
    s_.summary.kernels.push_back(out);
    return true;
  }

  bool add_copy(const Row& row, bool sizes) {
    const auto value = row.number(sizes ? "total" : "total time");
    if (!value || (!sizes && !has_total(row, "count"))) return false;
    const model::CopyKind kind = copy_kind(row.text("operation"));
    const bool memset = base::lower(row.text("operation")).find("memset") != std::string::npos;
    const auto same = [&](const model::CopySummary& copy) {
      return copy.kind == kind && copy.memset == memset;
    };
    auto found = std::ranges::find_if(s_.summary.copies, same);
    if (found == s_.summary.copies.end()) found = s_.summary.copies.insert(found, {kind, memset});
    found->calls = row.count("count");
    (sizes ? found->bytes : found->total_ns) += *value;
    return true;
  }

  model::Session& s_;
  std::map<std::tuple<bool, model::StringId, model::RangeKind>, std::size_t>
      range_of_;                                      ///< bare, full name
  std::map<model::StringId, std::size_t> kernel_of_;  ///< of the whole run, in summary.kernels
  std::set<model::StringId> full_;                    ///< names that may have their domain in front
  std::set<model::StringId> bare_;  ///< names of 2020's tables, which print no domain
  bool bare_names_ = false;
};

constexpr std::size_t kHead = 4096;

/// What a line of chatter or a file's name tells about the report that follows.
std::optional<model::RangeKind> kind_in(std::string_view text) {
  for (const std::string_view word : {"startend", "nvtxsesum", "nvtxsssum"}) {
    if (text.find(word) != std::string_view::npos) return model::RangeKind::kStartEnd;
  }
  for (const std::string_view word : {"pushpop", "nvtxppsum"}) {
    if (text.find(word) != std::string_view::npos) return model::RangeKind::kPushPop;
  }
  return std::nullopt;
}

/// Kernel names have the name of their range in front.
bool range_in_names(std::string_view text) {
  return text.find("nvtx-name") != std::string_view::npos;
}

std::string reports() {
  std::string out;
  for (const base::NsysReport& report : base::nsys_reports())
    if (report.read) out += (out.empty() ? "" : ", ") + std::string(report.now);
  return out;
}

void skip_mark(std::string_view& text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
}

/// Rows of every table have one, headers none.
bool has_number(const Fields& fields) {
  return std::ranges::any_of(fields, [](std::string_view field) {
    return base::to_double(base::trim(field)).has_value();
  });
}

/// Reads texts one after the other into one session.
class TableReader {
 public:
  explicit TableReader(model::Session& session) : s_(session), sums_(session), traces_(session) {}

  base::Result<void> add(const Text& input) {
    std::string_view text = input.text;
    skip_mark(text);
    Header header;
    Header interrupted;  // of the table that a line of other output cut in two
    auto kind = kind_in(input.name).value_or(model::RangeKind::kPushPop);
    bool range_in_name = range_in_names(input.name);
    std::size_t offset = 0, tables = 0, unknown = 0, first_bad = 0;
    std::uint64_t line = 1, bad = 0, good_rows = 0;
    std::string unknown_columns, missing;
    for (read::Row record; next_row(text, offset, line, record);) {
      const std::size_t here = record.line;
      const Fields& fields = record.cells;
      if (fields.size() >= 3 && (header.table == Table::kNone || !has_number(fields))) {
        Header next = parse_header(fields);
        if (next.table != Table::kNone) {
          header = std::move(next);
          interrupted = {};
          ++tables;
          continue;
        }
        if (looks_like_header(fields)) {
          if (unknown == 0) {
            unknown = here;
            unknown_columns = base::printable(
                std::string(fields[0]).append(",").append(fields[1]).append(",").append(fields[2]));
            missing = missing_column(fields);
          }
          header = interrupted = {};
          continue;
        }
      }
      const bool goes_on = header.table == Table::kNone && interrupted.table != Table::kNone &&
                           fields.size() == interrupted.width && has_number(fields);
      if (goes_on) header = interrupted;
      const bool cut = offset == text.size() && text.back() != '\n' &&
                       header.table != Table::kNone && fields.size() > 1;
      if (cut && (fields.size() < header.width || text.back() == ',')) {
        s_.losses.push_back({"torn_tail", 1,
                             "the file ends inside a row: " + std::string(input.name) + ':' +
                                 std::to_string(here)});
        break;
      }
      if (header.table != Table::kNone && fields.size() == header.width) {
        const bool good = add(header, Row(header, fields), kind, range_in_name);
        if (!good && bad++ == 0) first_bad = here;
        good_rows += good ? 1 : 0;
        continue;
      }
      // Chatter, or the end of the table.
      const bool blank = fields.size() == 1 && base::trim(fields[0]).empty();
      const bool numbers = fields.size() > 2 ? has_number(fields)
                                             : base::to_double(base::trim(fields[0])).has_value();
      if (header.table != Table::kNone && fields.size() > 1 && (numbers || fields.size() > 2)) {
        if (bad++ == 0) first_bad = here;
        if (numbers) continue;  // a damaged row; the table goes on behind it
      }
      if (fields.size() > 2)
        interrupted = {};  // columns of a table that is not known
      else if (header.table != Table::kNone)
        interrupted = header;
      header = {};
      if (blank) continue;
      kind = kind_in(fields[0]).value_or(kind);
      if (fields[0].starts_with("Processing [")) range_in_name = range_in_names(record.text);
    }
    if (tables == 0 && unknown > 0)
      return base::fail(
          base::Code::kBadData,
          "a table of nsys stats that is not read: its columns start with \"" + unknown_columns +
              '"' + (missing.empty() ? "" : ", and a column called \"" + missing + "\" is missing"),
          std::string(input.name) + ':' + std::to_string(unknown),
          "Give one of the reports " + reports() + '.');
    if (tables == 0)
      return base::fail(
          base::Code::kBadData,
          "no header of an nsys stats table in " + base::counted(line - 1, "line"),
          std::string(input.name),
          "Make one with: nsys stats --report nvtx_sum --report nvtx_kern_sum --format csv FILE");
    if (good_rows == 0 && bad > 0)
      return base::fail(base::Code::kBadData,
                        "no row fits its header: " + base::counted(bad, "row") +
                            ", the first in line " + std::to_string(first_bad),
                        std::string(input.name),
                        "Print the table again with: nsys stats --format csv FILE");
    if (unknown > 0)
      lose("ignored_table", 0,
           "line " + std::to_string(unknown) + ": a table that is not read starts with \"" +
               unknown_columns + '"');
    if (bad > 0)
      s_.losses.push_back({"bad_rows", bad,
                           "rows that do not fit their header were left out, the first in line " +
                               std::to_string(first_bad)});
    return {};
  }

  base::Result<void> finish(std::string_view name) {
    const double resolution = traces_.resolution_ns();
    if (resolution > 1000)
      return base::fail(base::Code::kBadData,
                        "times are too coarse for a timeline: rounded to " +
                            std::to_string(std::llround(resolution / 1000)) + " us",
                        std::string(name), "Print the table again without --timeunit.");
    if (resolution > 1)
      s_.losses.push_back(
          {"rounded_times", 0,
           "times were printed to " + std::to_string(std::llround(resolution)) +
               " ns: short kernels and ranges, and which range holds what, may be wrong"});
    for (const std::string& full_name : sums_.certain_names()) traces_.add_full_name(full_name);
    const std::uint64_t guessed = sums_.finish();
    if (guessed > 0 && traces_.empty())
      lose("domain_guessed", guessed, std::string(Domains::kGuessed));
    if (traces_.empty())
      lose("no_timeline", 0,
           "tables of totals by name: nesting, self times and overlap are unknown");
    else
      traces_.finish();
    return {};
  }

 private:
  bool add(const Header& header, const Row& row, model::RangeKind kind, bool range_in_name) {
    if (is_trace(header.table)) return traces_.add(header.table, row, range_in_name);
    return sums_.add(header, row, kind);
  }
  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    s_.losses.push_back({kind, count, std::move(detail)});
  }

  model::Session& s_;
  Sums sums_;
  Traces traces_;
};

/// The trace tables whose headers are in the first bytes of a file.
std::set<Table> trace_tables(const std::filesystem::path& path) {
  std::set<Table> tables;
  const auto head = base::read_head(path, kHead);
  if (!head) return tables;
  std::string_view text = *head;
  skip_mark(text);
  std::size_t offset = 0;
  std::uint64_t line = 1;
  for (read::Row record; next_row(text, offset, line, record);) {
    if (const Table table = parse_header(record.cells).table; is_trace(table)) tables.insert(table);
  }
  return tables;
}

/// "out/llm" of "out/llm_cuda_gpu_trace.csv"; nothing when the name ends in no report.
std::optional<std::filesystem::path> recording_of(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  for (const base::NsysReport& report : base::nsys_reports()) {
    for (const std::string_view name : {report.now, report.old}) {
      const std::size_t at =
          name.empty() || !report.read ? std::string::npos : stem.rfind("_" + std::string(name));
      if (at == std::string::npos) continue;
      const std::size_t end = at + 1 + name.size();  // arguments may follow: "_base", "_nvtx-name"
      if (end == stem.size() || stem[end] == '_') return path.parent_path() / stem.substr(0, at);
    }
  }
  return std::nullopt;
}

}  // namespace

bool same_recording(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto of_a = recording_of(a), of_b = recording_of(b);
  if (of_a && of_b && *of_a != *of_b) return false;
  const std::set<Table> in_a = trace_tables(a), in_b = trace_tables(b);
  return std::ranges::none_of(in_a, [&](Table table) { return in_b.contains(table); });
}

bool table_of(const std::filesystem::path& table, const std::filesystem::path& whole) {
  if (table.extension() != ".csv" || whole.extension() == ".csv") return false;
  const auto recording = recording_of(table);
  return recording &&
         recording->lexically_normal() == (whole.parent_path() / whole.stem()).lexically_normal();
}

base::Result<model::Session> read_texts(std::span<const Text> texts) {
  model::Session session;
  TableReader reader(session);
  for (const Text& text : texts) TRY(reader.add(text));
  TRY(reader.finish(texts.empty() ? std::string_view{} : texts.front().name));
  return session;
}

base::Result<model::Session> read_files(std::span<const std::filesystem::path> paths) {
  std::vector<std::string> contents, names;
  for (const std::filesystem::path& path : paths) {
    auto text = TRY(base::read_file(path));
    contents.push_back(std::move(text));
    names.push_back(path.string());
  }
  std::vector<Text> texts;
  for (std::size_t i = 0; i < contents.size(); ++i) texts.push_back({contents[i], names[i]});
  auto session = read_texts(texts);
  if (session) {
    for (const std::string& name : names)
      session->sources.push_back({name, "nsys-csv", {}, {}, model::Maker::kNsys});
  }
  return session;
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  const auto has_table = [](std::string_view text, bool whole) {
    skip_mark(text);
    std::size_t offset = 0;
    std::uint64_t line = 1;
    for (read::Row record; next_row(text, offset, line, record);) {
      if (record.cells.size() < 3) continue;
      if (parse_header(record.cells).table != Table::kNone ||
          (whole && looks_like_header(record.cells)))
        return true;
    }
    return false;
  };
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (has_table(text, true)) return true;
  // A program's output may precede the tables.
  constexpr std::size_t kShort = 4096, kSniffed = std::size_t{1} << 20;
  if (text.size() < kShort || text.find('\0') != std::string_view::npos || text.starts_with('{'))
    return false;
  const auto more = base::read_head(path, kSniffed);
  return more && has_table(*more, false);
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  return read_files(std::span(&path, 1));
}

const Reader kReader{"nsys-csv", sniff, read};

}  // namespace rangescope::read::nsys_csv
