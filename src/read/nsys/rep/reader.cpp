#include "read/nsys/rep/reader.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/nsight.hpp"
#include "base/process.hpp"
#include "base/sqlite.hpp"
#include "base/text.hpp"
#include "read/registry.hpp"

namespace rangescope::read::nsys_rep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReport = "NVIDIA Tegra Profiler Report ";
constexpr std::string_view kStream = "NVIDIA Nsight Systems Stream ";
constexpr std::string_view kWhere = " (https://developer.nvidia.com/nsight-systems)";

using Version = base::ToolVersion;

struct Nsys {
  fs::path path;
  Version version;
};

std::optional<Version> version_in(std::string_view text) {
  const Version version = base::parse_version(text);
  if (version.year <= 0)
    return std::nullopt;
  return version;
}

bool is_stream(std::string_view head) {
  return head.substr(0, 64).find(kStream) != std::string_view::npos;
}

/// The version that wrote the file, if its first bytes name one.
std::optional<Version> written_by(std::string_view head) {
  head = head.substr(0, 160);
  const auto begin = head.find(is_stream(head) ? kStream : kReport);
  if (begin == std::string_view::npos)
    return std::nullopt;
  return version_in(head.substr(begin));
}

/// "2023.3.1.92" where that starts at `begin` and "-" follows; else "".
std::string_view version_text(std::string_view text, std::size_t begin) {
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  const bool follows_digit = begin > 0 && is_digit(begin - 1);
  if (follows_digit || begin + 8 > text.size() || text[begin + 4] != '.')
    return {};
  std::size_t end = begin;
  int points = 0;
  while (end < text.size()) {
    const bool is_point = text[end] == '.' && is_digit(end + 1);
    if (!is_point && !is_digit(end))
      break;
    if (is_point)
      ++points;
    ++end;
  }
  const bool is_version = points == 3 && end < text.size() && text[end] == '-';
  if (!is_version)
    return {};
  return text.substr(begin, end - begin);
}

/// The version that a report without one in its first bytes names further on
/// ("2023.3.1.92-233133147223v0"): the newest of them, since reports hold versions of older parts
/// too. Reads the whole file.
std::optional<Version> version_inside(const fs::path& file) {
  const auto mapping = base::Mapping::open(file);
  if (!mapping)
    return std::nullopt;
  std::optional<Version> newest;
  const std::string_view text = mapping->text();
  for (std::size_t begin = text.find("20"); begin != std::string_view::npos;
       begin = text.find("20", begin + 1)) {
    const auto version = version_in(version_text(text, begin));
    if (version && (!newest || *newest < *version))
      newest = version;
  }
  return newest;
}

fs::path user_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/')
    return fs::path(cache) / "rangescope";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/')
    return fs::path(home) / ".cache/rangescope";
  std::error_code error;
  return fs::temp_directory_path(error) / ("rangescope-" + std::to_string(::getuid()));
}

/// Removes the files whose name starts with `prefix` and continues with another key.
void remove_outdated(const fs::path& folder, const std::string& prefix, const std::string& key) {
  std::error_code error;
  std::vector<fs::path> outdated;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(prefix) && !name.starts_with(prefix + key))
      outdated.push_back(entry->path());
  }
  for (const fs::path& path : outdated)
    fs::remove(path, error);
}

/// Where results of converting `file` are kept, without extension; older ones of the same file are
/// removed.
base::Result<fs::path> cache_stem(const fs::path& file) {
  struct ::stat info {};
  if (::stat(file.c_str(), &info) != 0)
    return base::fail(base::Code::kNoInput, "cannot be read", file.string());
  const std::string key = std::to_string(info.st_size) + '-' + std::to_string(info.st_mtim.tv_sec) +
                          std::to_string(info.st_mtim.tv_nsec);
  std::error_code error;
  const fs::path absolute = fs::absolute(file, error);
  fs::path folder = absolute.parent_path();
  std::string prefix = absolute.filename().string() + ".rangescope-";
  if (::access(folder.c_str(), W_OK) != 0) {
    folder = user_cache();
    fs::create_directories(folder, error);
    if (error)
      return base::fail(
          base::Code::kIo, "cannot make the cache folder: " + error.message(), folder.string());
    fs::permissions(folder, fs::perms::owner_all, error);
    prefix = base::sha256(absolute.string()).substr(0, 16) + '-' + prefix;
  }
  remove_outdated(folder, prefix, key);
  return folder / (prefix + key);
}

/// Runs a tool of Nsight Systems; its output comes back for the error message.
base::Result<base::Ended> run_tool(std::vector<std::string> argv,
                                   std::optional<std::chrono::seconds> limit = {},
                                   const std::string& libraries = {}) {
  base::Command command = base::question(std::move(argv), limit);
  command.own_group = false;  // what ends us ends it
  if (!libraries.empty())
    command.set_env["LD_LIBRARY_PATH"] = libraries;
  return base::run(command);
}

/// Nothing when the program does not answer as nsys does.
std::optional<Version> version_of(const fs::path& nsys) {
  const auto ended = run_tool({nsys.string(), "--version"}, std::chrono::seconds(60));
  if (!ended)
    return std::nullopt;
  return version_in(ended->out + ended->err);
}

/// The nsys that the user named; `hint` is what to do when it does not run.
base::Result<std::vector<Nsys>> named_nsys(std::string_view name, const char* hint) {
  const auto path = base::find_on_path(name);
  if (!path)
    return base::fail(base::Code::kToolMissing, "no such program", std::string(name), hint);
  const auto version = version_of(*path);
  if (!version)
    return base::fail(base::Code::kToolMissing,
                      "its --version output is not that of nsys",
                      std::string(name),
                      hint);
  return std::vector<Nsys>{{*path, *version}};
}

/// Every nsys that answers `--version`, in this order: `asked` alone when it is not empty,
/// $RANGESCOPE_NSYS alone when it is set, else all that are installed. kToolMissing when the one
/// that was asked for does not run.
base::Result<std::vector<Nsys>> find_nsys(std::string_view asked) {
  const base::ToolSearch search = base::tool_search();
  if (!asked.empty())
    return named_nsys(asked, "Give the path of the nsys executable.");
  const std::string from_environment = search.variable("RANGESCOPE_NSYS");
  if (!from_environment.empty())
    return named_nsys(from_environment, "Set RANGESCOPE_NSYS to the nsys executable, or unset it.");
  std::vector<Nsys> installed;
  std::vector<fs::path> canonical_paths;
  for (const fs::path& path : base::find_tools("nsys", search)) {
    std::error_code error;
    const fs::path canonical = fs::canonical(path, error);
    if (error || std::ranges::find(canonical_paths, canonical) != canonical_paths.end())
      continue;
    canonical_paths.push_back(canonical);
    if (const auto version = version_of(path))
      installed.push_back({path, *version});
  }
  return installed;
}

/// Shared libraries that `program` needs and that the dynamic loader does not find.
std::vector<std::string> missing_libraries(const fs::path& program) {
  std::vector<std::string> out;
  const auto ended = run_tool({"ldd", program.string()});
  if (!ended)
    return out;
  for (const std::string_view line : base::split(ended->out, '\n')) {
    const auto arrow = line.find(" => not found");
    if (arrow == std::string_view::npos)
      continue;
    // ldd names a library once for each library that wants it
    if (std::string name(base::trim(line.substr(0, arrow)));
        std::ranges::find(out, name) == out.end())
      out.push_back(std::move(name));
  }
  return out;
}

/// The last lines that a tool printed.
std::string ending(const base::Ended& ended) {
  constexpr std::size_t kLongest = 400;
  std::string output(base::trim(ended.err + '\n' + ended.out));
  if (output.size() > kLongest)
    output.erase(0, output.size() - kLongest);
  return base::describe(ended) + ", it said: " + base::printable(output);
}

/// Debian's package of a library that the importer is known to miss on bare machines.
std::string package_of(const std::string& library) {
  if (library == "libdw.so.1")
    return "libdw1";
  if (library == "libelf.so.1")
    return "libelf1";
  if (library == "libglib-2.0.so.0")
    return "libglib2.0-0";
  if (library == "libcrypto.so.1.1" || library == "libssl.so.1.1")
    return "libssl1.1";  // importer of 2020.4.3
  if (library == "libssh.so.4")
    return "libssh-4";
  if (library == "libssh.so")
    return "libssh-dev";  // importer of 2023.4.4
  return library;
}

base::Error no_nsys(const fs::path& file,
                    const std::optional<Version>& need,
                    const std::vector<Nsys>& found,
                    bool stream) {
  std::string message = stream ? "only the importer of Nsight Systems can read this stream"
                               : "only Nsight Systems can read this report";
  if (need)
    message += ", and it was written by " + to_string(*need);
  if (found.empty())
    message += "; no nsys was found";
  for (const Nsys& nsys : found)
    message += "; " + nsys.path.string() + " is " + to_string(nsys.version);
  std::string hint = "Install Nsight Systems";
  if (need)
    hint += " " + to_string(*need);
  if (need && !stream)
    hint += " or newer";
  hint += std::string(kWhere) + " and give it with RANGESCOPE_NSYS=/path/to/nsys";
  hint += ", or give the SQLite export of this file";
  if (stream)
    hint += ".";
  else
    hint += ", made where there is one: nsys export --type sqlite " + file.filename().string();
  return {base::Code::kToolMissing, message, file.string(), hint};
}

/// Makes a file under a temporary name and moves it to `target` when the tool made it.
template <class Make>
base::Result<void> make_file(const fs::path& target, Make&& make) {
  fs::path temporary = target;
  temporary.replace_extension();
  temporary += ".tmp" + std::to_string(::getpid()) + target.extension().string();
  const ::mode_t before = ::umask(077);
  auto done = make(temporary);
  ::umask(before);
  std::error_code error;
  if (done) {
    fs::permissions(temporary, fs::perms::owner_read | fs::perms::owner_write, error);
    fs::rename(temporary, target, error);
    if (error)
      done =
          base::fail(base::Code::kIo, "cannot be renamed: " + error.message(), temporary.string());
  }
  fs::remove(temporary, error);
  return done;
}

base::Result<void> import_by(const fs::path& stream,
                             const fs::path& report,
                             const std::vector<Nsys>& found,
                             const std::optional<Version>& need) {
  std::string nsys_without_importer;
  for (const Nsys& nsys : found) {
    if (need && nsys.version != *need)
      continue;
    if (base::find_importer(nsys.path))
      return make_file(report,
                       [&](const fs::path& out) { return import_stream(nsys.path, stream, out); });
    nsys_without_importer = nsys.path.string();
  }
  if (nsys_without_importer.empty())
    return tl::make_unexpected(no_nsys(stream, need, found, true));
  return base::fail(base::Code::kToolMissing,
                    "the installation of " + nsys_without_importer + " has no QdstrmImporter",
                    stream.string(),
                    "Install the host part of Nsight Systems " + to_string(*need) +
                        " too (Debian: nsight-systems).");
}

/// Why nsys of version `used` could not export `report`: usually it is older than the report. Old
/// ones say so, or end with an exception of a library that parses what it does not know.
base::Error export_failed(const base::Ended& ended,
                          const Version& used,
                          const fs::path& report,
                          const fs::path& asked_for) {
  const std::string output = ended.out + ended.err;
  auto writer = version_in(output);
  if (!writer || *writer <= used)
    writer = version_inside(report);
  if (writer && *writer <= used)
    writer.reset();
  const bool says_too_old = output.find("Version number is invalid") != std::string::npos ||
                            output.find("newer than your current") != std::string::npos;
  if (!writer && !says_too_old)
    return {base::Code::kBadData, "nsys export failed: " + ending(ended), asked_for.string(), {}};
  std::string message = "nsys " + to_string(used) + " is too old for this report";
  std::string hint = "Install Nsight Systems ";
  if (writer) {
    message += ", which " + to_string(*writer) + " wrote";
    hint += to_string(*writer) + " or newer";
  } else {
    hint += "of a newer version";
  }
  hint += std::string(kWhere) + " and give it with RANGESCOPE_NSYS=/path/to/nsys.";
  return {base::Code::kToolMissing, message, asked_for.string(), hint};
}

base::Result<void> export_report(const fs::path& report,
                                 const fs::path& sqlite,
                                 const std::vector<Nsys>& found,
                                 const std::optional<Version>& need,
                                 const fs::path& asked_for) {
  const Nsys* chosen = nullptr;
  for (const Nsys& nsys : found) {
    if (need && nsys.version < *need)
      continue;
    chosen = &nsys;
    break;
  }
  if (chosen == nullptr)
    return tl::make_unexpected(no_nsys(asked_for, need, found, false));
  base::detail("exporting " + asked_for.string() + " with nsys " + to_string(chosen->version));
  return make_file(sqlite, [&](const fs::path& out) -> base::Result<void> {
    const auto ended = TRY(run_tool({chosen->path.string(),
                                     "export",
                                     "--type=sqlite",
                                     "--force-overwrite=true",
                                     "--output=" + out.string(),
                                     report.string()}));
    std::error_code error;
    if (ended.ok() && fs::exists(out, error))
      return {};
    return tl::make_unexpected(export_failed(ended, chosen->version, report, asked_for));
  });
}

constexpr std::string_view kLacksLibrary = "error while loading shared libraries: ";

/// "libdw.so.1" of the loader's "...: libdw.so.1: cannot open shared object file"; "" without that.
std::string library_that_loader_lacks(const std::string& output) {
  const std::size_t found = output.find(kLacksLibrary);
  if (found == std::string::npos)
    return {};
  const std::size_t begin = found + kLacksLibrary.size();
  return output.substr(begin, output.find(':', begin) - begin);
}

/// LD_LIBRARY_PATH of an unpacked package, whose libraries are in folders that the loader does not
/// know.
std::string unpacked_libraries(const fs::path& importer, const fs::path& nsys) {
  std::error_code error;
  const fs::path host = fs::weakly_canonical(importer, error).parent_path();
  const fs::path target = fs::weakly_canonical(nsys, error).parent_path();
  const fs::path multiarch = host.parent_path().parent_path() / "x86_64-linux-gnu";
  return host.string() + ":" + multiarch.string() + ":" + target.string();
}

}  // namespace

base::Result<void> import_stream(const fs::path& nsys,
                                 const fs::path& stream,
                                 const fs::path& report) {
  const auto importer = base::find_importer(nsys);
  if (!importer)
    return base::fail(base::Code::kToolMissing,
                      "nsys left a .qdstrm and has no QdstrmImporter to turn it into a report",
                      stream.string(),
                      "Install nsys's host part (package nsight-systems).");
  const std::vector<std::string> argv{
      importer->string(), "-i", stream.string(), "-o", report.string()};
  constexpr auto kLimit = std::chrono::minutes(30);
  auto ended = run_tool(argv, kLimit);
  std::error_code error;
  if (ended && ended->err.find(kLacksLibrary) != std::string::npos)
    ended = run_tool(argv, kLimit, unpacked_libraries(*importer, nsys));
  if (!ended)
    return base::fail(std::move(ended));
  // The importer of 2020.4.3 writes X.qdrep whatever extension it was given.
  if (const fs::path old = fs::path(report).replace_extension(".qdrep");
      !fs::exists(report, error) && fs::exists(old, error))
    fs::rename(old, report, error);
  if (fs::exists(report, error) && fs::file_size(report, error) > 0)
    return {};
  std::vector<std::string> missing = missing_libraries(*importer);
  const std::string first_missing = library_that_loader_lacks(ended->err);
  if (missing.empty() && !first_missing.empty())
    missing = {first_missing};
  if (missing.empty())
    return base::fail(
        base::Code::kBadData, "QdstrmImporter failed: " + ending(*ended), stream.string(), {});
  std::vector<std::string> packages;
  for (const std::string& library : missing) {
    const std::string package = package_of(library);
    if (std::ranges::find(packages, package) == packages.end())
      packages.push_back(package);
  }
  return base::fail(base::Code::kToolMissing,
                    "QdstrmImporter needs " + base::printable(base::join(missing, ", ")) +
                        ", which this system lacks",
                    importer->string(),
                    "Install " + base::join(packages, " ") + " and try again.");
}

static bool sniff(std::span<const std::byte> head, const fs::path&) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with(kReport) || is_stream(text);
}

namespace {

/// "report1.sqlite" of "report1.nsys-rep", which `nsys stats` and `nsys profile --stats=true` leave
/// next to it.
std::optional<fs::path> export_beside(const fs::path& path) {
  const fs::path beside = fs::path(path).replace_extension(".sqlite");
  const auto head = base::read_head(beside, base::kSqliteMagic.size());
  if (!head || !base::is_sqlite(*head))
    return std::nullopt;
  return beside;
}

base::Result<fs::path> export_of(const fs::path& path, const Options& options) {
  const auto head = TRY(base::read_head(path, 256));
  const auto need = written_by(head);
  const auto stem = TRY(cache_stem(path));
  const fs::path sqlite = stem.string() + ".sqlite";
  std::error_code error;
  if (fs::exists(sqlite, error))
    return sqlite;
  const auto found = TRY(find_nsys(options.nsys_path));
  if (!is_stream(head)) {
    TRY(export_report(path, sqlite, found, need, path));
    return sqlite;
  }
  const fs::path report = stem.string() + ".nsys-rep";
  TRY(import_by(path, report, found, need));
  auto done = export_report(report, sqlite, found, need, path);
  fs::remove(report, error);
  if (!done)
    return base::fail(std::move(done));
  return sqlite;
}

}  // namespace

static base::Result<fs::path> database(const fs::path& path, const Options& options) {
  auto exported = export_of(path, options);
  if (exported)
    return exported;
  const auto beside = export_beside(path);
  if (!beside)
    return exported;
  base::detail(base::to_string(exported.error()));
  return *beside;
}

static base::Result<model::Session> read(const fs::path& path, const Options& options) {
  const auto sqlite = TRY(database(path, options));
  auto session = read_any(sqlite, options);
  if (!session)
    return session;
  if (sqlite == fs::path(path).replace_extension(".sqlite"))
    session->losses.push_back({"export_beside",
                               0,
                               "no nsys here can export " + path.string() + ": " +
                                   sqlite.filename().string() + " next to it was read instead"});
  for (model::Source& source : session->sources) {
    source.path = path.string();
    source.format = kReader.name;
  }
  return session;
}

const Reader kReader{"nsys-rep", sniff, read, database};

}  // namespace rangescope::read::nsys_rep
