#include "read/registry.hpp"

#include <algorithm>
#include <charconv>

#include "base/embedded.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"
#include "read/averages/reader.hpp"
#include "read/kineto/reader.hpp"
#include "read/native/reader.hpp"
#include "read/ncu/csv/reader.hpp"
#include "read/ncu/report/reader.hpp"
#include "read/nsys/csv/reader.hpp"
#include "read/nsys/rep/reader.hpp"
#include "read/nsys/sqlite/reader.hpp"
#include "read/printed.hpp"
#include "read/proton/reader.hpp"
#include "read/rocm/reader.hpp"
#include "read/xla/reader.hpp"

RANGESCOPE_EMBED(registry, RANGESCOPE_TSV);

namespace rangescope::read {
namespace {

constexpr std::size_t kHead = 4096;
constexpr std::size_t kSchema = 65536;  ///< the schema of a database is in its first pages

/// What people give instead of a file that can be read, and what to do then.
struct Lookalike {
  std::string_view where;
  std::string words;
  std::string_view what, hint;
};

const std::vector<Lookalike>& lookalikes() {
  static const auto table = [] {
    std::vector<Lookalike> out;
    for (const auto& [where, escaped, what, hint] : base::rows<4>(rangescope_registry)) {
      std::string words;
      for (std::size_t at = 0; at < escaped.size(); ++at) {
        int byte = static_cast<unsigned char>(escaped[at]);
        if (escaped.substr(at).starts_with("\\x")) {
          std::from_chars(escaped.data() + at + 2, escaped.data() + at + 4, byte, 16);
          at += 3;
        }
        words += static_cast<char>(byte);
      }
      out.push_back({where, std::move(words), what, hint.empty() ? out.back().hint : hint});
    }
    return out;
  }();
  return table;
}

/// True when ncu printed text for people: "[4700] zoo@127.0.0.1" and indented kernels below, or how it got on.
bool is_ncu_text(std::string_view head) {
  std::size_t at = 0;
  for (std::string_view line; next_line(head, at, line);) {
    const std::size_t close = line.find("] ");
    for (const std::string_view talk : {"==PROF== ", "==WARNING== ", "==ERROR== "})
      if (line.starts_with(talk)) return true;
    if (line.starts_with('[') && close != std::string_view::npos && base::to_uint(line.substr(1, close - 1)) &&
        line.find('@', close) != std::string_view::npos)
      return true;
  }
  return false;
}

/// True when nsys stats printed a table for people, or with tabs: no comma in a line with a unit of time.
bool is_nsys_text(std::string_view head) {
  if (head.find('\0') != std::string_view::npos) return false;
  for (const std::string_view unit : {"(ns)", "(us)", "(ms)"}) {
    const std::size_t at = head.find(unit);
    if (at == std::string_view::npos) continue;
    const std::size_t begin = head.rfind('\n', at) + 1, end = head.find('\n', at);
    return head.substr(begin, end - begin).find(',') == std::string_view::npos;
  }
  return false;
}

base::Error not_understood(std::string_view head, const std::filesystem::path& path, bool folder) {
  base::Error error{base::Code::kBadData, "no reader understands this: ", path.string(), {}};
  for (const Reader* reader : readers())
    error.hint += (error.hint.empty() ? "Give a file of one of these formats: " : ", ") + std::string(reader->name);
  if (folder) {
    error.what += "it is a folder without captures of rangescope";
  } else if (head.empty()) {
    error.what += "it is empty";
    error.hint = "Whatever should have written it failed, or it was not copied whole.";
  } else {
    error.what += "it starts with \"" + base::printable(head.substr(0, 24)) + '"';
  }
  const auto told = [&](std::string_view where, auto&& fits) {
    for (const Lookalike& known : lookalikes()) {
      if (known.where != where || !fits(known.words)) continue;
      error.what = known.what;
      error.hint = known.hint;
      return;
    }
  };
  const auto holds = [](std::string_view text) {
    return [text](const std::string& words) { return text.find(words) != std::string_view::npos; };
  };
  told("begin", [&](const std::string& words) { return head.starts_with(words); });
  told("ending", [&](const std::string& words) { return path.filename().string().ends_with(words); });
  const std::string unpacked = kineto::unpacked_head(head);
  const std::string_view json = base::trim(unpacked.empty() ? head : unpacked);
  if ((json.starts_with('{') || json.starts_with('[')) && !is_ncu_text(json)) {
    told("json", holds(json));
    return error;
  }
  if (head.starts_with("SQLite format 3"))
    if (const auto schema = base::read_head(path, kSchema)) told("database", holds(*schema));
  if (head.starts_with('\x80') && head.find("segments") != std::string_view::npos) {
    error.what = "this is a snapshot of GPU memory of PyTorch (pickle), which has no times of kernels";
    error.hint = "Look at it at https://pytorch.org/memory_viz; for times, record with rangescope profile -- COMMAND.";
  }
  if (is_nsys_text(head)) {
    error.what = "this may be a table of nsys stats, but its columns are not separated by commas";
    error.hint = "Print it with: nsys stats --format csv";
  }
  told("print", holds(head));
  if (is_ncu_text(head)) {
    error.what = "this is what ncu prints for people, without a table";
    error.hint = "Give the report itself (.ncu-rep), or print it with `ncu --import FILE --csv`.";
    if (const std::size_t at = head.find("==ERROR== "); at != std::string_view::npos)
      error.what += ": " + base::printable(head.substr(at, std::min(head.find('\n', at) - at, std::size_t{200})));
  }
  return error;
}

}  // namespace

std::span<const Reader* const> readers() {
  static constexpr const Reader* kAll[] = {&native::kReader,   &nsys_sqlite::kReader, &nsys_rep::kReader,
                                           &nsys_csv::kReader, &ncu_report::kReader,  &ncu_csv::kReader,
                                           &rocm::kReader,     &kineto::kReader,      &averages::kReader,
                                           &proton::kReader,   &xla::kReader};
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
      return base::fail(base::Code::kNoInput, "this is not a regular file", path.string(),
                        "Write what it gives to a file, and name that.");
    head = TRY(base::read_head(path, kHead));
  }
  const auto bytes = std::as_bytes(std::span(head));
  for (const Reader* reader : readers()) {
    if (reader->sniff(bytes, path)) return reader;
  }
  return tl::make_unexpected(not_understood(head, path, folder));
}

std::vector<std::vector<std::filesystem::path>> recordings(std::span<const std::filesystem::path> paths) {
  std::vector<std::vector<std::filesystem::path>> all;
  std::vector<std::size_t> tables;  // of nsys stats: their places in `all`
  for (const std::filesystem::path& path : paths) {
    const auto reader = find_reader(path);
    const bool table = reader && *reader == &nsys_csv::kReader;
    const auto joins = [&](std::size_t i) {
      return std::ranges::all_of(all[i], [&](const auto& other) { return nsys_csv::same_recording(other, path); });
    };
    const auto found = table ? std::ranges::find_if(tables, joins) : tables.end();
    if (found != tables.end()) {
      all[*found].push_back(path);
      continue;
    }
    if (table) tables.push_back(all.size());
    all.push_back({path});
  }
  return all;
}

const std::filesystem::path* whole_of(std::span<const std::filesystem::path> parts,
                                      std::span<const std::filesystem::path> paths) {
  const auto whole = std::ranges::find_if(paths, [&](const std::filesystem::path& path) {
    return std::ranges::all_of(parts, [&](const auto& part) { return nsys_csv::table_of(part, path); });
  });
  return whole == paths.end() ? nullptr : &*whole;
}

base::Result<model::Session> read_recording(std::span<const std::filesystem::path> parts, const Options& options) {
  return parts.size() == 1 ? read_any(parts.front(), options) : nsys_csv::read_files(parts);
}

base::Result<model::Session> read_any(const std::filesystem::path& path, const Options& options) {
  const Reader* reader = TRY(find_reader(path));
  return reader->read(path, options);
}

}  // namespace rangescope::read
