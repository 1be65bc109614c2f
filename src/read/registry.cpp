#include "read/registry.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>

#include "base/embedded.hpp"
#include "base/fs.hpp"
#include "base/sqlite.hpp"
#include "base/text.hpp"
#include "read/kineto/reader.hpp"
#include "read/missing_work.hpp"
#include "read/native/reader.hpp"
#include "read/ncu/csv/reader.hpp"
#include "read/ncu/report/reader.hpp"
#include "read/nsys/csv/reader.hpp"
#include "read/nsys/rep/reader.hpp"
#include "read/nsys/sqlite/reader.hpp"
#include "read/proton/reader.hpp"
#include "read/rocm/reader.hpp"
#include "read/snapshot/reader.hpp"
#include "read/xla/reader.hpp"

RANGESCOPE_EMBED(registry, RANGESCOPE_TSV);

namespace rangescope::read {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHead = 4096;
constexpr std::size_t kSchema = 65536;              ///< its schema is in a database's first pages
constexpr std::size_t kLog = std::size_t{1} << 20;  ///< in which a table is looked for

/// What people give instead of a file that can be read, and what to do then.
struct Lookalike {
  std::string_view place;  ///< of the words: a column of registry.tsv
  std::string words;
  std::string_view what, hint;
};

const std::vector<Lookalike>& lookalikes() {
  static const auto table = [] {
    std::vector<Lookalike> out;
    for (const auto& [place, escaped, what, hint] : base::rows<4>(rangescope_registry)) {
      std::string words;
      for (std::size_t i = 0; i < escaped.size(); ++i) {
        int byte = static_cast<unsigned char>(escaped[i]);
        if (escaped.substr(i).starts_with("\\x")) {
          std::from_chars(escaped.data() + i + 2, escaped.data() + i + 4, byte, 16);
          i += 3;
        }
        words += static_cast<char>(byte);
      }
      out.push_back({place, std::move(words), what, hint.empty() ? out.back().hint : hint});
    }
    return out;
  }();
  return table;
}

/// The first row of `place` whose words fit; null where none does.
const Lookalike* first_row(std::string_view place, const auto& fits) {
  for (const Lookalike& row : lookalikes())
    if (row.place == place && fits(row.words))
      return &row;
  return nullptr;
}

struct Holds {
  std::string_view bytes;
  bool operator()(std::string_view words) const {
    return bytes.find(words) != std::string_view::npos;
  }
};

/// The bytes in which printed tables are looked for: in a log, a program's output precedes them.
std::string log_text(std::string_view head, const fs::path& path) {
  const bool is_binary = head.find('\0') != std::string_view::npos;
  if (head.size() == kHead && !is_binary)
    if (auto log = base::read_head(path, kLog))
      return std::move(*log);
  return std::string(head);
}

const Lookalike* lookalike_of(std::string_view head, std::string_view text, const fs::path& path) {
  const RE2::Options any_bytes(RE2::Latin1);
  const auto matches = [&](const std::string& expression) {
    return RE2::PartialMatch(text, RE2(expression, any_bytes));
  };
  if (const Lookalike* row = first_row("match", matches))
    return row;
  const std::string unpacked = kineto::unpacked_head(head);
  const std::string_view json = base::trim(base::non_empty_or(unpacked, head));
  if (json.starts_with('{') || json.starts_with('['))
    return first_row("json", Holds{json});
  if (base::is_sqlite(head))
    if (const auto schema = base::read_head(path, kSchema))
      if (const Lookalike* row = first_row("database", Holds{*schema}))
        return row;
  const std::string name = path.filename().string();
  const auto ends_name = [&](const std::string& ending) { return name.ends_with(ending); };
  if (const Lookalike* row = first_row("ending", ends_name))
    return row;
  return first_row("begin", [&](const std::string& words) { return head.starts_with(words); });
}

/// ": ==ERROR== ..." with the first error that ncu printed; "" where it printed none.
std::string ncu_error(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  const std::size_t begin = text.find("==ERROR== ");
  if (begin == std::string_view::npos)
    return {};
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  return ": " + base::printable(line.substr(0, kLongest));
}

std::string reader_names() {
  std::string names;
  for (const Reader* reader : readers()) {
    if (!names.empty())
      names += ", ";
    names += reader->name;
  }
  return names;
}

base::Error not_understood(std::string_view head, const fs::path& path, bool folder) {
  base::Error error{base::Code::kBadData, "no reader understands this: ", path.string(), {}};
  error.hint = "Give a file of one of these formats: " + reader_names();
  if (folder) {
    error.what += "it is a folder without captures of rangescope";
    return error;
  }
  if (head.empty()) {
    error.what += "it is empty";
    error.hint = "Whatever should have written it failed, or it was not copied whole.";
    return error;
  }
  const std::string text = log_text(head, path);
  if (const Lookalike* row = lookalike_of(head, text, path)) {
    error.what = std::string(row->what) + ncu_error(text);
    error.hint = row->hint;
  } else {
    error.what += "it starts with \"" + base::printable(head.substr(0, 24)) + '"';
  }
  return error;
}

using Read = base::Result<model::Session>;

/// A recording of the CPU alone says so.
Read believed(Read session, const Options& options) {
  if (!session)
    return session;
  if (options.kernels)
    note_missing_work(*session);
  return session;
}

}  // namespace

std::span<const Reader* const> readers() {
  static constexpr const Reader* kAll[] = {
      &native::kReader,
      &nsys_sqlite::kReader,
      &nsys_rep::kReader,
      &nsys_csv::kReader,
      &ncu_report::kReader,
      &ncu_csv::kReader,
      &rocm::kReader,
      &kineto::kReader,
      &proton::kReader,
      &xla::kReader,
      &snapshot::kReader,
  };
  return kAll;
}

base::Result<const Reader*> find_reader(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return base::fail(base::Code::kNoInput, "no such file or directory", path.string());
  std::string head;
  const bool folder = std::filesystem::is_directory(path, error);
  if (!folder) {
    // A pipe would have to be read twice.
    if (!std::filesystem::is_regular_file(path, error))
      return base::fail(base::Code::kNoInput,
                        "this is not a regular file",
                        path.string(),
                        "Write what it gives to a file, and name that.");
    head = TRY(base::read_head(path, kHead));
  }
  const auto bytes = std::as_bytes(std::span(head));
  for (const Reader* reader : readers()) {
    if (reader->sniff(bytes, path))
      return reader;
  }
  return tl::make_unexpected(not_understood(head, path, folder));
}

std::vector<std::vector<std::filesystem::path>> recordings(
    std::span<const std::filesystem::path> paths) {
  std::vector<std::vector<std::filesystem::path>> all;
  std::vector<std::size_t> tables;  // of nsys stats: their places in `all`
  for (const std::filesystem::path& path : paths) {
    const auto reader = find_reader(path);
    const bool table = reader && *reader == &nsys_csv::kReader;
    const auto joins = [&](std::size_t i) {
      return std::ranges::all_of(
          all[i], [&](const auto& other) { return nsys_csv::same_recording(other, path); });
    };
    const auto found = table ? std::ranges::find_if(tables, joins) : tables.end();
    if (found != tables.end()) {
      all[*found].push_back(path);
      continue;
    }
    if (table)
      tables.push_back(all.size());
    all.push_back({path});
  }
  return all;
}

const std::filesystem::path* whole_of(std::span<const std::filesystem::path> parts,
                                      std::span<const std::filesystem::path> paths) {
  const auto source = std::ranges::find_if(paths, [&](const std::filesystem::path& path) {
    return std::ranges::all_of(parts,
                               [&](const auto& part) { return nsys_csv::table_of(part, path); });
  });
  if (source == paths.end())
    return nullptr;
  return &*source;
}

base::Result<model::Session> read_recording(std::span<const std::filesystem::path> parts,
                                            const Options& options) {
  if (parts.size() == 1)
    return read_any(parts.front(), options);
  return believed(nsys_csv::read_files(parts), options);
}

base::Result<model::Session> read_any(const std::filesystem::path& path, const Options& options) {
  const Reader* reader = TRY(find_reader(path));
  return believed(reader->read(path, options), options);
}

}  // namespace rangescope::read
