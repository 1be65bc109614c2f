#include "read/nsys/csv/reader.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "read/csv.hpp"
#include "read/nsys/csv/header.hpp"
#include "read/nsys/csv/printed.hpp"
#include "read/nsys/csv/sums.hpp"
#include "read/nsys/csv/traces.hpp"

namespace rangescope::read::nsys_csv {
namespace {

constexpr std::size_t kHead = 4096;

/// What a line of chatter or a file's name says about the report that follows.
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
  for (const ReportName& report : report_names()) out += (out.empty() ? "" : ", ") + std::string(report.now);
  return out;
}

void skip_mark(std::string_view& text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
}

/// Rows of every table have one, headers none.
bool has_number(const std::vector<std::string>& fields) {
  return std::any_of(fields.begin(), fields.end(),
                     [](const std::string& field) { return base::to_double(base::trim(field)).has_value(); });
}

/// Reads texts one after the other into one session.
class TableReader {
 public:
  explicit TableReader(model::Session& session) : s_(session), sums_(session), traces_(session) {}

  base::Result<void> add(const Text& input) {
    std::string_view text = input.text;
    skip_mark(text);
    Header header;
    auto kind = kind_in(input.name).value_or(model::RangeKind::kPushPop);
    bool range_in_name = range_in_names(input.name);
    std::size_t offset = 0, tables = 0, unknown = 0, first_bad = 0;
    std::uint64_t line = 1, bad = 0;
    std::string unknown_columns, missing;
    for (read::Row record; next_row(text, offset, line, record);) {
      const std::size_t here = record.line;
      const std::vector<std::string> fields(record.cells.begin(), record.cells.end());
      if (fields.size() >= 3 && (header.table == Table::kNone || !has_number(fields))) {
        Header next = parse_header(fields);
        if (next.table != Table::kNone) {
          header = std::move(next);
          ++tables;
          continue;
        }
        if (looks_like_header(fields)) {
          if (unknown == 0) {
            unknown = here;
            unknown_columns = base::printable(base::join(std::span(fields).first(3), ","));
            missing = missing_column(fields);
          }
          header = {};
          continue;
        }
      }
      const bool cut =
          offset == text.size() && text.back() != '\n' && header.table != Table::kNone && fields.size() > 1;
      if (cut && (fields.size() < header.width || text.back() == ',')) {
        s_.losses.push_back(
            {"torn_tail", 1, "the file ends inside a row: " + std::string(input.name) + ':' + std::to_string(here)});
        break;
      }
      if (header.table != Table::kNone && fields.size() == header.width) {
        if (!add(header, Row(header, fields), kind, range_in_name) && bad++ == 0) first_bad = here;
        continue;
      }
      // Chatter, or the end of the table.
      const bool blank = fields.size() == 1 && base::trim(fields[0]).empty();
      const bool numbers = fields.size() > 2 ? has_number(fields) : base::to_double(base::trim(fields[0])).has_value();
      if (header.table != Table::kNone && fields.size() > 1 && (numbers || fields.size() > 2)) {
        if (bad++ == 0) first_bad = here;
        if (numbers) continue;  // a damaged row; the table goes on behind it
      }
      header = {};
      if (blank) continue;
      kind = kind_in(fields[0]).value_or(kind);
      if (fields[0].starts_with("Processing [")) range_in_name = range_in_names(record.text);
    }
    if (tables == 0 && unknown > 0)
      return base::fail(base::Code::kBadData,
                        "a table of nsys stats that is not read: its columns begin with \"" + unknown_columns + '"' +
                            (missing.empty() ? "" : ", and a column called \"" + missing + "\" is missing"),
                        std::string(input.name) + ':' + std::to_string(unknown),
                        "Give one of the reports " + reports() + '.');
    if (tables == 0)
      return base::fail(base::Code::kBadData, "no header of an nsys stats table in " + base::counted(line - 1, "line"),
                        std::string(input.name),
                        "Make one with: nsys stats --report nvtx_sum --report nvtx_kern_sum --format csv FILE");
    if (unknown > 0)
      lose("ignored_table", 0,
           "line " + std::to_string(unknown) + ": a table that is not read begins with \"" + unknown_columns + '"');
    if (bad > 0)
      s_.losses.push_back(
          {"bad_rows", bad,
           "rows that do not fit their header were left out, the first in line " + std::to_string(first_bad)});
    return {};
  }

  base::Result<void> finish(std::string_view name) {
    const double resolution = traces_.resolution_ns();
    if (resolution > 1000)
      return base::fail(base::Code::kBadData,
                        "times were printed too coarsely for a timeline: to " +
                            std::to_string(std::llround(resolution / 1000)) + " us",
                        std::string(name), "Print the table again without --timeunit.");
    if (resolution > 1)
      s_.losses.push_back({"rounded_times", 0,
                           "times were printed to " + std::to_string(std::llround(resolution)) +
                               " ns: short kernels and ranges, and what begins in which range, may be wrong"});
    if (traces_.empty())
      lose("no_timeline", 0,
           "tables of sums hold totals by name: nesting, exclusive times and overlap cannot be known");
    else
      traces_.finish();
    return {};
  }

 private:
  bool add(const Header& header, const Row& row, model::RangeKind kind, bool range_in_name) {
    if (is_trace(header.table)) return traces_.add(header.table, row, range_in_name);
    if (!header.bare_names) {
      if (row.has("range")) traces_.add_full_name(row.text("range"));
      if (row.has("nvtx range")) traces_.add_full_name(row.text("nvtx range"));
    }
    return sums_.add(header, row, kind);
  }
  void lose(model::LossKind kind, std::uint64_t count, std::string detail) {
    s_.losses.push_back({kind, count, std::move(detail)});
  }

  model::Session& s_;
  Sums sums_;
  Traces traces_;
};

/// The trace tables whose headers stand in the first bytes of a file.
std::set<Table> trace_tables(const std::filesystem::path& path) {
  std::set<Table> tables;
  const auto head = base::read_head(path, kHead);
  if (!head) return tables;
  std::string_view text = *head;
  skip_mark(text);
  std::size_t offset = 0;
  std::uint64_t line = 1;
  for (read::Row record; next_row(text, offset, line, record);) {
    const std::vector<std::string> fields(record.cells.begin(), record.cells.end());
    if (const Table table = parse_header(fields).table; is_trace(table)) tables.insert(table);
  }
  return tables;
}

/// "out/llm" of "out/llm_cuda_gpu_trace.csv"; nothing when the name ends in no report.
std::optional<std::filesystem::path> recording_of(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  for (const ReportName& report : report_names()) {
    for (const std::string_view name : {report.now, report.old}) {
      const std::size_t at = name.empty() ? std::string::npos : stem.rfind("_" + std::string(name));
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
  return std::none_of(in_a.begin(), in_a.end(), [&](Table table) { return in_b.contains(table); });
}

bool table_of(const std::filesystem::path& table, const std::filesystem::path& whole) {
  if (table.extension() != ".csv" || whole.extension() == ".csv") return false;
  const auto recording = recording_of(table);
  return recording && recording->lexically_normal() == (whole.parent_path() / whole.stem()).lexically_normal();
}

base::Result<model::Session> read_texts(std::span<const Text> texts) {
  model::Session session;
  TableReader reader(session);
  for (const Text& text : texts) {
    const std::string printed = printed_as_csv(text.text);
    if (auto added = reader.add(printed.empty() ? text : Text{printed, text.name}); !added)
      return base::fail(std::move(added));
  }
  if (auto finished = reader.finish(texts.empty() ? std::string_view{} : texts.front().name); !finished)
    return base::fail(std::move(finished));
  return session;
}

base::Result<model::Session> read_files(std::span<const std::filesystem::path> paths) {
  std::vector<std::string> contents, names;
  for (const std::filesystem::path& path : paths) {
    auto text = base::read_file(path);
    if (!text) return base::fail(std::move(text));
    contents.push_back(std::move(*text));
    names.push_back(path.string());
  }
  std::vector<Text> texts;
  for (std::size_t i = 0; i < contents.size(); ++i) texts.push_back({contents[i], names[i]});
  auto session = read_texts(texts);
  if (session) {
    for (const std::string& name : names) session->sources.push_back({name, "nsys-csv", {}, {}, model::Maker::kNsys});
  }
  return session;
}

bool NsysCsvReader::sniff(std::span<const std::byte> head, const std::filesystem::path& path) const {
  const auto has_table = [](std::string_view text, bool whole) {
    skip_mark(text);
    const std::string printed = printed_as_csv(text);
    if (!printed.empty()) text = printed;
    std::size_t offset = 0;
    std::uint64_t line = 1;
    for (read::Row record; next_row(text, offset, line, record);) {
      const std::vector<std::string> fields(record.cells.begin(), record.cells.end());
      if (fields.size() < 3) continue;
      if (parse_header(fields).table != Table::kNone || (whole && looks_like_header(fields))) return true;
    }
    return false;
  };
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (has_table(text, true)) return true;
  // What a program printed may stand in front of the tables.
  constexpr std::size_t kShort = 4096, kSniffed = std::size_t{1} << 20;
  if (text.size() < kShort || text.find('\0') != std::string_view::npos || text.starts_with('{')) return false;
  const auto more = base::read_head(path, kSniffed);
  return more && has_table(*more, false);
}

base::Result<model::Session> NsysCsvReader::read(const std::filesystem::path& path, const Options&) const {
  return read_files(std::span(&path, 1));
}

}  // namespace rangescope::read::nsys_csv
