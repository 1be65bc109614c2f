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
  return {row.number(prefix + "avg"),
          row.number(prefix + "med"),
          row.number(prefix + "min"),
          row.number(prefix + "max"),
          row.number(prefix + "stddev")};
}

model::RangeKind kind_of(const Row& row, model::RangeKind otherwise) {
  const std::string style = base::lower(row.text("style"));
  if (style.starts_with("start"))
    return model::RangeKind::kStartEnd;
  return style.starts_with("push") ? model::RangeKind::kPushPop : otherwise;
}

/// Whether the row has a total, and no more than its count of the longest duration. Printed times
/// are rounded: twice that passes.
bool has_plausible_total(const Row& row, const char* count) {
  const auto total = row.number("total time"), longest = row.number("max");
  if (!total || !longest || *longest <= 0)
    return total.has_value();
  return *total <= 2 * *longest * static_cast<double>(row.count(count));
}

/// Two rows of one kernel: extremes and mean can be put together, the middle cannot.
void merge(model::KernelSummary& into, const model::KernelSummary& row) {
  into.calls += row.calls;
  into.total_ns += row.total_ns;
  model::SummarySpread& merged = into.duration_ns;
  if (merged.min && row.duration_ns.min)
    merged.min = std::min(*merged.min, *row.duration_ns.min);
  else
    merged.min.reset();
  if (merged.max && row.duration_ns.max)
    merged.max = std::max(*merged.max, *row.duration_ns.max);
  else
    merged.max.reset();
  merged.median.reset();
  merged.stddev.reset();
  if (into.calls > 0)
    merged.mean = into.total_ns / static_cast<double>(into.calls);
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
    for (const model::StringId name : full_)
      names.push_back(s_.strings.view(name));
    const Domains domains(names, certain_names());
    const auto split = [&](model::StringId& domain, model::StringId& range) {
      if (bare_.contains(range))
        return;
      const auto [domain_name, range_name] = domains.split(s_.strings.view(range));
      domain = s_.strings.intern(domain_name);
      range = s_.strings.intern(range_name);
    };
    for (model::RangeSummary& range : s_.summary.ranges)
      split(range.domain, range.name);
    for (model::KernelSummary& kernel : s_.summary.kernels)
      if (kernel.in_range && !kernel.outside)
        split(kernel.domain, kernel.range);
    return domains.guessed();
  }

  /// Names with their domain, where the tables of sums print it in front of each; else none.
  [[nodiscard]] FullNames certain_names() const {
    FullNames names;
    for (const model::StringId name : full_)
      names.emplace(s_.strings.view(name));
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
    const auto [entry, added] =
        range_of_.emplace(std::tuple(bare_names_, name, kind), s_.summary.ranges.size());
    if (added)
      s_.summary.ranges.push_back({0, name, kind});
    return s_.summary.ranges[entry->second];
  }

  bool add_range(const Row& row, model::RangeKind kind) {
    if (!has_plausible_total(row, "instances"))
      return false;
    // nvtx_sum and nvtx_pushpop_sum agree: the last one stays.
    model::RangeSummary& out = range(row, "range", kind);
    out.occurrences = row.count("instances");
    out.total_ns = row.number("total time");
    out.per_occurrence_ns = spread(row);
    return true;
  }

  bool add_projection(const Row& row, model::RangeKind kind) {
    if (!row.number("total proj time"))
      return false;
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
    if (!has_plausible_total(row, "instances"))
      return false;
    model::KernelSummary out;
    out.name = s_.strings.intern(row.text("name"));
    out.calls = row.count("instances");
    out.total_ns = *row.number("total time");
    out.duration_ns = spread(row);
    // Tables with grid and block have a row for each launch configuration.
    const auto [entry, added] = kernel_of_.emplace(out.name, s_.summary.kernels.size());
    if (added)
      s_.summary.kernels.push_back(out);
    else
      merge(s_.summary.kernels[entry->second], out);
    return true;
  }

  bool add_range_kernel(const Row& row, model::RangeKind kind) {
    if (!has_plausible_total(row, "kern inst"))
      return false;
    model::KernelSummary out;
    out.in_range = true;
    const std::string_view name = row.text("nvtx range");
    out.outside = name.empty() || name == "None";
    if (!out.outside)
      out.range = full_name(name);
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
    if (sizes) {
      const auto bytes = row.number("total");
      if (!bytes)
        return false;
      copy_summary(row).bytes += *bytes;
    } else {
      if (!has_plausible_total(row, "count"))
        return false;
      copy_summary(row).total_ns += *row.number("total time");
    }
    return true;
  }

  /// The summary of the row's operation, with the row's count.
  model::CopySummary& copy_summary(const Row& row) {
    const model::CopyKind kind = copy_kind(row.text("operation"));
    const bool memset = base::lower(row.text("operation")).find("memset") != std::string::npos;
    const auto is_same = [&](const model::CopySummary& copy) {
      return copy.kind == kind && copy.memset == memset;
    };
    auto summary = std::ranges::find_if(s_.summary.copies, is_same);
    if (summary == s_.summary.copies.end())
      summary = s_.summary.copies.insert(summary, {kind, memset});
    summary->calls = row.count("count");
    return *summary;
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

/// The kind of the ranges in the report that a line of chatter or a file's name announces.
std::optional<model::RangeKind> kind_in(std::string_view text) {
  for (const std::string_view word : {"startend", "nvtxsesum", "nvtxsssum"}) {
    if (text.find(word) != std::string_view::npos)
      return model::RangeKind::kStartEnd;
  }
  for (const std::string_view word : {"pushpop", "nvtxppsum"}) {
    if (text.find(word) != std::string_view::npos)
      return model::RangeKind::kPushPop;
  }
  return std::nullopt;
}

/// Kernel names have the name of their range in front.
bool range_in_names(std::string_view text) {
  return text.find("nvtx-name") != std::string_view::npos;
}

/// "nvtx_sum, nvtx_kern_sum, ..."
std::string readable_reports() {
  std::vector<std::string> names;
  for (const base::NsysReport& report : base::nsys_reports())
    if (report.read)
      names.emplace_back(report.now);
  return base::join(names, ", ");
}

void skip_mark(std::string_view& text) {
  if (text.starts_with("\xef\xbb\xbf"))
    text.remove_prefix(3);
}

bool is_number(std::string_view field) {
  return base::to_double(base::trim(field)).has_value();
}

/// Rows of every table have one, headers none.
bool has_number(const Fields& fields) {
  return std::ranges::any_of(fields, is_number);
}

/// Where the rows of all tables go.
class Tables {
 public:
  explicit Tables(model::Session& session) : sums(session), traces(session) {}

  /// False when a number that the table lives by is not one.
  bool add(const Header& header, const Row& row, model::RangeKind kind, bool range_in_name) {
    if (is_trace(header.table))
      return traces.add(header.table, row, range_in_name);
    return sums.add(header, row, kind);
  }

  Sums sums;
  Traces traces;
};

/// Reads one text line by line. Other output may precede, follow and interrupt its tables.
class TextReader {
 public:
  TextReader(const Text& input, model::Session& session, Tables& tables)
      : input_(input), s_(session), tables_(tables) {}

  base::Result<void> read() {
    std::string_view text = input_.text;
    skip_mark(text);
    std::size_t offset = 0;
    std::uint64_t line = 1;
    for (read::Row record; next_row(text, offset, line, record);) {
      if (take_header(record))
        continue;
      resume_interrupted_table(record.cells);
      const bool is_unfinished_line = offset == text.size() && text.back() != '\n';
      if (is_unfinished_line && is_torn_row(record.cells, text)) {
        add_torn_tail(record.line);
        break;
      }
      if (in_table() && record.cells.size() == header_.width)
        add_row(record);
      else
        take_other_line(record);
    }
    TRY(refuse_text_without_rows(line - 1));
    add_losses();
    return {};
  }

 private:
  /// The header of a table that is not read.
  struct UnreadTable {
    std::size_t line = 0;  ///< 0: there is none
    std::string columns;   ///< the first three
    std::string missing;   ///< the one column that it lacks to be read
  };

  [[nodiscard]] bool in_table() const { return header_.table != Table::kNone; }

  /// Starts the table whose header `record` is. False when it is no header.
  bool take_header(const read::Row& record) {
    const Fields& fields = record.cells;
    const bool may_be_header = fields.size() >= 3 && (!in_table() || !has_number(fields));
    if (!may_be_header)
      return false;
    Header next = parse_header(fields);
    const bool is_read = next.table != Table::kNone;
    if (!is_read && !looks_like_header(fields))
      return false;
    header_ = std::move(next);
    interrupted_ = {};
    if (is_read)
      ++table_count_;
    else if (unread_table_.line == 0)
      unread_table_ = {record.line, first_columns(fields), missing_column(fields)};
    return true;
  }

  static std::string first_columns(const Fields& fields) {
    std::string columns(fields[0]);
    columns.append(",").append(fields[1]).append(",").append(fields[2]);
    return base::printable(columns);
  }

  /// A row of the table that a line of other output cut in two.
  void resume_interrupted_table(const Fields& fields) {
    const bool was_interrupted = !in_table() && interrupted_.table != Table::kNone;
    if (was_interrupted && fields.size() == interrupted_.width && has_number(fields))
      header_ = interrupted_;
  }

  [[nodiscard]] bool is_torn_row(const Fields& fields, std::string_view text) const {
    if (!in_table() || fields.size() < 2)
      return false;
    return fields.size() < header_.width || text.back() == ',';
  }

  void add_torn_tail(std::size_t line) {
    std::string detail = "the file ends inside a row: ";
    detail.append(input_.name).append(":").append(std::to_string(line));
    s_.losses.push_back({"torn_tail", 1, std::move(detail)});
  }

  void add_row(const read::Row& record) {
    if (tables_.add(header_, Row(header_, record.cells), kind_, range_in_name_))
      ++good_rows_;
    else
      count_bad_row(record.line);
  }

  void count_bad_row(std::size_t line) {
    if (bad_rows_ == 0)
      first_bad_line_ = line;
    ++bad_rows_;
  }

  /// A damaged row of the open table, the header of an unread table, or chatter.
  void take_other_line(const read::Row& record) {
    const Fields& fields = record.cells;
    const bool has_columns = fields.size() > 2;
    const bool has_numbers = has_columns ? has_number(fields) : is_number(fields[0]);
    const bool is_bad_row = in_table() && fields.size() > 1 && (has_numbers || has_columns);
    if (is_bad_row)
      count_bad_row(record.line);
    if (is_bad_row && has_numbers)
      return;  // the table continues after a damaged row
    if (has_columns)
      interrupted_ = {};
    else if (in_table())
      interrupted_ = header_;
    header_ = {};
    take_chatter(record);
  }

  /// "Processing [x.sqlite] with [.../nvtx_sum.py]..." announces the table that follows.
  void take_chatter(const read::Row& record) {
    const std::string_view first = record.cells[0];
    kind_ = kind_in(first).value_or(kind_);
    if (first.starts_with("Processing ["))
      range_in_name_ = range_in_names(record.text);
  }

  [[nodiscard]] base::Result<void> refuse_text_without_rows(std::uint64_t lines) const {
    const std::string name(input_.name);
    if (table_count_ == 0 && unread_table_.line > 0)
      return base::fail(base::Code::kBadData,
                        unread_table_message(),
                        name + ':' + std::to_string(unread_table_.line),
                        "Give one of the reports " + readable_reports() + '.');
    if (table_count_ == 0)
      return base::fail(
          base::Code::kBadData,
          "no header of an nsys stats table in " + base::counted(lines, "line"),
          name,
          "Make one with: nsys stats --report nvtx_sum --report nvtx_kern_sum --format csv FILE");
    if (good_rows_ == 0 && bad_rows_ > 0)
      return base::fail(base::Code::kBadData,
                        "no row fits its header: " + base::counted(bad_rows_, "row") +
                            ", the first in line " + std::to_string(first_bad_line_),
                        name,
                        "Print the table again with: nsys stats --format csv FILE");
    return {};
  }

  [[nodiscard]] std::string unread_table_message() const {
    std::string message = "a table of nsys stats that is not read: its columns start with \"";
    message += unread_table_.columns + '"';
    if (!unread_table_.missing.empty())
      message += ", and a column called \"" + unread_table_.missing + "\" is missing";
    return message;
  }

  void add_losses() {
    if (unread_table_.line > 0) {
      std::string detail = "line " + std::to_string(unread_table_.line);
      detail += ": a table that is not read starts with \"" + unread_table_.columns + '"';
      s_.losses.push_back({"ignored_table", 0, std::move(detail)});
    }
    if (bad_rows_ > 0) {
      std::string detail = "rows that do not fit their header were left out, the first in line ";
      detail += std::to_string(first_bad_line_);
      s_.losses.push_back({"bad_rows", bad_rows_, std::move(detail)});
    }
  }

  const Text& input_;
  model::Session& s_;
  Tables& tables_;
  Header header_;       ///< of the table that is open
  Header interrupted_;  ///< of the table that a line of other output cut in two
  model::RangeKind kind_ = kind_in(input_.name).value_or(model::RangeKind::kPushPop);
  bool range_in_name_ = range_in_names(input_.name);
  std::size_t table_count_ = 0;
  UnreadTable unread_table_;  ///< the first
  std::uint64_t good_rows_ = 0;
  std::uint64_t bad_rows_ = 0;
  std::size_t first_bad_line_ = 0;
};

/// Reads texts one after the other into one session.
class TableReader {
 public:
  explicit TableReader(model::Session& session) : s_(session), tables_(session) {}

  base::Result<void> add(const Text& input) { return TextReader(input, s_, tables_).read(); }

  base::Result<void> finish(std::string_view name) {
    Traces& traces = tables_.traces;
    const double resolution = traces.resolution_ns();
    if (resolution > 1000)
      return base::fail(base::Code::kBadData,
                        "times are too coarse for a timeline: rounded to " +
                            std::to_string(std::llround(resolution / 1000)) + " us",
                        std::string(name),
                        "Print the table again without --timeunit.");
    if (resolution > 1)
      lose("rounded_times",
           0,
           "times were printed to " + std::to_string(std::llround(resolution)) +
               " ns: short kernels and ranges, and which range holds what, may be wrong");
    for (const std::string& full_name : tables_.sums.certain_names())
      traces.add_full_name(full_name);
    const std::uint64_t guessed = tables_.sums.finish();
    if (!traces.empty()) {
      traces.finish();
      return {};
    }
    if (guessed > 0)
      lose("domain_guessed", guessed, std::string(Domains::kGuessed));
    lose("no_timeline", 0, "tables of totals by name: nesting, self times and overlap are unknown");
    return {};
  }

 private:
  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    s_.losses.push_back({kind, count, std::move(detail)});
  }

  model::Session& s_;
  Tables tables_;
};

/// The trace tables whose headers are in the first bytes of a file.
std::set<Table> trace_tables(const std::filesystem::path& path) {
  std::set<Table> tables;
  const auto head = base::read_head(path, kHead);
  if (!head)
    return tables;
  std::string_view text = *head;
  skip_mark(text);
  std::size_t offset = 0;
  std::uint64_t line = 1;
  for (read::Row record; next_row(text, offset, line, record);) {
    if (const Table table = parse_header(record.cells).table; is_trace(table))
      tables.insert(table);
  }
  return tables;
}

/// "out/llm" of "out/llm_cuda_gpu_trace.csv"; nothing when the name ends in no report.
std::optional<std::filesystem::path> recording_of(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  for (const base::NsysReport& report : base::nsys_reports()) {
    for (const std::string_view name : {report.now, report.old}) {
      if (name.empty() || !report.read)
        continue;
      const std::size_t underscore = stem.rfind("_" + std::string(name));
      if (underscore == std::string::npos)
        continue;
      const std::size_t end = underscore + 1 + name.size();
      const bool ends_name = end == stem.size() || stem[end] == '_';  // "_base", "_nvtx-name"
      if (ends_name)
        return path.parent_path() / stem.substr(0, underscore);
    }
  }
  return std::nullopt;
}

}  // namespace

bool same_recording(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto of_a = recording_of(a), of_b = recording_of(b);
  if (of_a && of_b && *of_a != *of_b)
    return false;
  const std::set<Table> in_a = trace_tables(a), in_b = trace_tables(b);
  return std::ranges::none_of(in_a, [&](Table table) { return in_b.contains(table); });
}

bool table_of(const std::filesystem::path& table, const std::filesystem::path& whole) {
  if (table.extension() != ".csv" || whole.extension() == ".csv")
    return false;
  const auto recording = recording_of(table);
  return recording &&
         recording->lexically_normal() == (whole.parent_path() / whole.stem()).lexically_normal();
}

base::Result<model::Session> read_texts(std::span<const Text> texts) {
  model::Session session;
  TableReader reader(session);
  for (const Text& text : texts)
    TRY(reader.add(text));
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
  for (std::size_t i = 0; i < contents.size(); ++i)
    texts.push_back({contents[i], names[i]});
  auto session = read_texts(texts);
  if (session) {
    for (const std::string& name : names)
      session->sources.push_back({name, "nsys-csv", {}, {}, model::Maker::kNsys});
  }
  return session;
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  const auto has_table = [](std::string_view text, bool accept_unread) {
    skip_mark(text);
    std::size_t offset = 0;
    std::uint64_t line = 1;
    for (read::Row record; next_row(text, offset, line, record);) {
      if (record.cells.size() < 3)
        continue;
      if (parse_header(record.cells).table != Table::kNone ||
          (accept_unread && looks_like_header(record.cells)))
        return true;
    }
    return false;
  };
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (has_table(text, true))
    return true;
  // A program's output may precede the tables.
  constexpr std::size_t kShort = 4096, kSniffed = std::size_t{1} << 20;
  if (text.size() < kShort || text.find('\0') != std::string_view::npos || text.starts_with('{'))
    return false;
  const auto log = base::read_head(path, kSniffed);
  return log && has_table(*log, false);
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  return read_files(std::span(&path, 1));
}

const Reader kReader{"nsys-csv", sniff, read};

}  // namespace rangescope::read::nsys_csv
