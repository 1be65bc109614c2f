#include "read/registry.hpp"

#include <algorithm>

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

namespace rangescope::read {
namespace {

constexpr std::size_t kHead = 4096;
constexpr std::size_t kSchema = 65536;  ///< the schema of a database stands in its first pages

/// What people give instead of a file that can be read, and what to do then.
struct Lookalike {
  std::string_view begin;
  std::string_view what, hint;
};
using namespace std::string_view_literals;
constexpr std::string_view kExport = "Export it as SQLite: nsys export --type sqlite FILE";
constexpr std::string_view kNvprof = "Record the program with rangescope profile -- COMMAND, or with nsys profile";
constexpr std::string_view kAmd =
    "Record with rocprofv3 --runtime-trace --output-format rocpd, and give its database (*_results.db).";
constexpr std::string_view kPerfetto =
    "Give the run directory or the recording that it was made from; of rocprofv3, record with --output-format rocpd.";
constexpr Lookalike kLookalikes[] = {
    {"\xff\xfe"sv, "this is text in UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW"},
    {"\xfe\xff"sv, "this is text in UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW"},
    {"\x1f\x8b"sv, "this is a gzip file", "Unpack it first: gunzip FILE"},
    {"\xfd\x37zXZ"sv, "this is an xz file", "Unpack it first: unxz FILE"},
    {"BZh"sv, "this is a bzip2 file", "Unpack it first: bunzip2 FILE"},
    {"PK\x03\x04"sv, "this is a zip archive", "Unpack it first: unzip FILE"},
    {"\x28\xb5\x2f\xfd"sv, "this is a zstd file, and what it holds is no report of Nsight Compute",
     "Unpack it first (zstd -d FILE); a packed run becomes one with `rangescope runs unpack FILE`"},
    {"SQLite format 3\0"sv, "this is a SQLite database without the tables of nsys",
     "Give a file that `nsys export --type sqlite` wrote."},
    {"NVR\0"sv, "this begins like a report of Nsight Compute, but no file header of one follows",
     "Check that the file was copied whole."},
    {"\"Kind\",\"Agent_Id\""sv, "this is a table of AMD's rocprofv3, which is not read", kAmd},
    {"Index,KernelName,gpu-id"sv, "this is a table of AMD's rocprof, which is not read", kAmd},
    {"\"Kernel Name\","sv, "this is the source page of ncu as CSV, which has no results by range",
     "Give the report itself (.ncu-rep), or the page raw or details."},
    {"\x89HDF"sv, "this is HDF5, which nsys export writes", kExport},
    {"PAR1"sv, "this is a Parquet file, which nsys export writes", kExport},
    {"ARROW1"sv, "this is an Arrow file, which nsys export writes", kExport},
    {"\xff\xff\xff\xff"sv, "this may be an Arrow stream, which nsys export writes", kExport},
    {"version https://git-lfs"sv, "this is a pointer of Git LFS: the file itself was not downloaded",
     "Fetch it in its repository: git lfs pull --include FILE"},
    {"data: \""sv, "this may be what nsys export writes as text", kExport},
    {"Processing ["sv, "nsys stats printed no table with a header that is known",
     "Print it with: nsys stats --report nvtx_sum,nvtx_kern_sum --format csv FILE"},
    {"<?xml version=\"1.0\"?>\n<session "sv, "this is a session of NVIDIA's Visual Profiler, which is not read",
     kNvprof},
    {"<"sv, "this is HTML or XML", "Give the run directory or the file that it was made from."},
};

/// The same for JSON, told by a word in its first bytes; in this order.
constexpr Lookalike kJson[] = {
    {"\"ncu-proj\"", "this is a project of Nsight Compute, which only names its reports",
     "Give one of the reports that it names (.ncu-rep)."},
    {"\"VmSystemInformation\"", "this is what nsys export writes as info", kExport},
    {"\"SessionStartTime\"", "this is what nsys export writes as info", kExport},
    {"\"op_schema\"", "this is an execution trace of PyTorch, which has no times",
     "Give the profiler's trace: torch.profiler.profile(...).export_chrome_trace(FILE)"},
    {"\"rocprofiler-sdk-tool\"", "this is JSON of AMD's rocprofv3, which is not read", kAmd},
    {"\"rangescope.", "this is JSON that rangescope wrote",
     "Give the run directory or the file that it was made from."},
    {"{\"data\":[", "this is JSON of nsys export", kExport},
    {"[", "this is JSON", "Of nsys stats, print it with --format csv."},
    {"{", "this is JSON", "Give the run directory or the file that it was made from."},
};

/// SQLite databases of other tools, by a word of the schema in the first pages.
constexpr Lookalike kDatabases[] = {
    {"StringTable", "this is a database of nvprof, which is not read", kNvprof},
};

/// Binary formats without a head of their own, by what their tools call the files.
constexpr Lookalike kEndings[] = {
    {".xplane.pb", "this is called like a profile of XLA (TensorFlow, JAX), but does not begin like one",
     "Check that the file was copied whole."},
    {".pftrace", "this is a trace of Perfetto, which rangescope writes and does not read", kPerfetto},
    {".perfetto-trace", "this is a trace of Perfetto, which rangescope writes and does not read", kPerfetto},
};

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
    error.what += "it begins with \"" + base::printable(head.substr(0, 24)) + '"';
  }
  for (const Lookalike& known : kLookalikes) {
    if (!head.starts_with(known.begin)) continue;
    error.what = known.what;
    error.hint = known.hint;
    break;
  }
  for (const Lookalike& known : kEndings) {
    if (!path.filename().string().ends_with(known.begin)) continue;
    error.what = known.what;
    error.hint = known.hint;
  }
  const std::string unpacked = kineto::unpacked_head(head);
  const std::string_view json = base::trim(unpacked.empty() ? head : unpacked);
  if ((json.starts_with('{') || json.starts_with('[')) && !is_ncu_text(json)) {
    const auto told = std::find_if(std::begin(kJson), std::end(kJson), [&](const Lookalike& known) {
      return json.find(known.begin) != std::string_view::npos;
    });
    error.what = told->what;
    error.hint = told->hint;
    return error;
  }
  if (head.starts_with("SQLite format 3")) {
    const auto schema = base::read_head(path, kSchema);
    for (const Lookalike& known : kDatabases) {
      if (!schema || schema->find(known.begin) == std::string::npos) continue;
      error.what = known.what;
      error.hint = known.hint;
    }
  }
  if (head.starts_with('\x80') && head.find("segments") != std::string_view::npos) {
    error.what = "this is a snapshot of GPU memory of PyTorch (pickle), which has no times of kernels";
    error.hint = "Look at it at https://pytorch.org/memory_viz; for times, record with rangescope profile -- COMMAND.";
  }
  if (is_nsys_text(head)) {
    error.what = "this may be a table of nsys stats, but its columns are not separated by commas";
    error.hint = "Print it with: nsys stats --format csv";
  }
  for (const std::string_view print : {"== NVPROF is profiling ", "== Profiling result:", "== CPU profiling result"})
    if (head.find(print) != std::string_view::npos) {
      error.what = "this is what nvprof prints, which is not read";
      error.hint = kNvprof;
    }
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
      return base::fail(base::Code::kNoInput, "this is no regular file", path.string(),
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
