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
  return version.year > 0 ? std::optional(version) : std::nullopt;
}

bool is_stream(std::string_view head) {
  return head.substr(0, 64).find(kStream) != std::string_view::npos;
}

/// The version that wrote the file, if its first bytes name one.
std::optional<Version> written_by(std::string_view head) {
  head = head.substr(0, 160);
  const auto at = head.find(is_stream(head) ? kStream : kReport);
  return at == std::string_view::npos ? std::nullopt : version_in(head.substr(at));
}

/// The version that a report without one in its first bytes names further on
/// ("2023.3.1.92-233133147223v0"): the newest of them, since reports hold versions of older parts
/// too. Reads the whole file.
std::optional<Version> version_inside(const fs::path& file) {
  const auto mapping = base::Mapping::open(file);
  if (!mapping) return std::nullopt;
  std::optional<Version> newest;
  const std::string_view text = mapping->text();
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  for (std::size_t at = text.find("20"); at != std::string_view::npos;
       at = text.find("20", at + 1)) {
    if (at + 8 > text.size() || text[at + 4] != '.' || (at > 0 && is_digit(at - 1))) continue;
    std::size_t end = at, points = 0;
    for (; is_digit(end) || (end < text.size() && text[end] == '.' && is_digit(end + 1)); ++end)
      points += text[end] == '.' ? 1 : 0;
    if (points != 3 || end >= text.size() || text[end] != '-') continue;
    if (const auto version = version_in(text.substr(at, end - at));
        version && (!newest || *newest < *version))
      newest = version;
  }
  return newest;
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
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (cache != nullptr && *cache == '/')
      folder = fs::path(cache) / "rangescope";
    else if (home != nullptr && *home == '/')
      folder = fs::path(home) / ".cache/rangescope";
    else
      folder = fs::temp_directory_path(error) / ("rangescope-" + std::to_string(::getuid()));
    fs::create_directories(folder, error);
    if (error)
      return base::fail(base::Code::kIo, "cannot make the cache folder: " + error.message(),
                        folder.string());
    fs::permissions(folder, fs::perms::owner_all, error);
    prefix = base::sha256(absolute.string()).substr(0, 16) + '-' + prefix;
  }
  std::vector<fs::path> old;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix) && !name.starts_with(prefix + key)) old.push_back(at->path());
  }
  for (const fs::path& path : old) fs::remove(path, error);
  return folder / (prefix + key);
}

/// Runs a tool of Nsight Systems; its output comes back for the error message.
base::Result<base::Ended> run_tool(std::vector<std::string> argv,
                                   std::optional<std::chrono::seconds> limit = {},
                                   const std::string& libraries = {}) {
  base::Command command = base::question(std::move(argv), limit);
  command.own_group = false;  // what ends us ends it
  if (!libraries.empty()) command.set_env["LD_LIBRARY_PATH"] = libraries;
  return base::run(command);
}

/// Every nsys that answers `--version`, in this order: `asked` alone when it is not empty,
/// $RANGESCOPE_NSYS alone when it is set, else all that are installed. kToolMissing when the one
/// that was asked for does not run.
base::Result<std::vector<Nsys>> find_nsys(std::string_view asked) {
  const base::ToolSearch search = base::tool_search();
  const std::string from_environment = search.variable("RANGESCOPE_NSYS");
  const bool by_name = !asked.empty();
  if (!by_name) asked = from_environment;
  const auto version_of = [](const fs::path& nsys) {
    const auto ended = run_tool({nsys.string(), "--version"}, std::chrono::seconds(60));
    return ended ? base::parse_version(ended->out + ended->err) : Version{};
  };
  std::vector<Nsys> out;
  if (!asked.empty()) {
    const auto path = base::find_on_path(asked);
    const Version version = path ? version_of(*path) : Version{};
    if (version.year == 0)
      return base::fail(base::Code::kToolMissing,
                        path ? "its --version output is not that of nsys" : "no such program",
                        std::string(asked),
                        by_name ? "Give the path of the nsys executable."
                                : "Set RANGESCOPE_NSYS to the nsys executable, or unset it.");
    return std::vector<Nsys>{{*path, version}};
  }
  std::vector<fs::path> seen;
  for (const fs::path& place : base::find_tools("nsys", search)) {
    std::error_code error;
    const fs::path real = fs::canonical(place, error);
    if (error || std::ranges::find(seen, real) != seen.end()) continue;
    seen.push_back(real);
    if (const Version version = version_of(place); version.year > 0)
      out.push_back({place, version});
  }
  return out;
}

/// Shared libraries that `program` needs and the system does not have, as the dynamic loader tells;
/// empty when none.
std::vector<std::string> missing_libraries(const fs::path& program) {
  std::vector<std::string> out;
  const auto ended = run_tool({"ldd", program.string()});
  if (!ended) return out;
  for (const std::string_view line : base::split(ended->out, '\n')) {
    const auto arrow = line.find(" => not found");
    if (arrow == std::string_view::npos) continue;
    // ldd names a library once for each library that wants it
    if (std::string name(base::trim(line.substr(0, arrow)));
        std::ranges::find(out, name) == out.end())
      out.push_back(std::move(name));
  }
  return out;
}

/// The last lines that a tool printed.
std::string ending(const base::Ended& ended) {
  const std::string all(base::trim(ended.err + '\n' + ended.out));
  const std::size_t from = all.size() > 400 ? all.size() - 400 : 0;
  return base::describe(ended) +
         ", it said: " + base::printable(std::string_view(all).substr(from));
}

/// Debian's package of a library that the importer is known to miss on bare machines.
std::string package_of(const std::string& library) {
  if (library == "libdw.so.1") return "libdw1";
  if (library == "libelf.so.1") return "libelf1";
  if (library == "libglib-2.0.so.0") return "libglib2.0-0";
  if (library == "libcrypto.so.1.1" || library == "libssl.so.1.1")
    return "libssl1.1";  // importer of 2020.4.3
  if (library == "libssh.so.4") return "libssh-4";
  if (library == "libssh.so") return "libssh-dev";  // importer of 2023.4.4
  return library;
}

base::Error no_nsys(const fs::path& file, const std::optional<Version>& need,
                    const std::vector<Nsys>& found, bool stream) {
  const std::string wanted =
      !need ? "Nsight Systems" : "Nsight Systems " + to_string(*need) + (stream ? "" : " or newer");
  std::string what = (stream ? "only the importer of Nsight Systems can read this stream"
                             : "only Nsight Systems can read this report");
  if (need) what += ", and it was written by " + to_string(*need);
  if (found.empty()) what += "; no nsys was found";
  for (const Nsys& nsys : found)
    what += "; " + nsys.path.string() + " is " + to_string(nsys.version);
  return {base::Code::kToolMissing, what, file.string(),
          "Install " + wanted + std::string(kWhere) +
              " and give it with RANGESCOPE_NSYS=/path/to/nsys, or give the SQLite export of this "
              "file" +
              (stream ? "."
                      : ", made where there is one: nsys export --type sqlite " +
                            file.filename().string())};
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

base::Result<void> import_by(const fs::path& stream, const fs::path& report,
                             const std::vector<Nsys>& found, const std::optional<Version>& need) {
  std::string without;
  for (const Nsys& nsys : found) {
    if (need && nsys.version != *need) continue;
    if (base::find_importer(nsys.path))
      return make_file(report,
                       [&](const fs::path& out) { return import_stream(nsys.path, stream, out); });
    without = nsys.path.string();
  }
  if (without.empty()) return tl::make_unexpected(no_nsys(stream, need, found, true));
  return base::fail(base::Code::kToolMissing,
                    "the installation of " + without + " has no QdstrmImporter", stream.string(),
                    "Install the host part of Nsight Systems " + to_string(*need) +
                        " too (Debian: nsight-systems).");
}

base::Result<void> export_report(const fs::path& report, const fs::path& sqlite,
                                 const std::vector<Nsys>& found, const std::optional<Version>& need,
                                 const fs::path& asked_for) {
  const Nsys* chosen = nullptr;
  for (const Nsys& nsys : found) {
    if (need && nsys.version < *need) continue;
    chosen = &nsys;
    break;
  }
  if (chosen == nullptr) return tl::make_unexpected(no_nsys(asked_for, need, found, false));
  base::detail("exporting " + asked_for.string() + " with nsys " + to_string(chosen->version));
  return make_file(sqlite, [&](const fs::path& out) -> base::Result<void> {
    const auto ended =
        TRY(run_tool({chosen->path.string(), "export", "--type=sqlite", "--force-overwrite=true",
                      "--output=" + out.string(), report.string()}));
    std::error_code error;
    if (ended.ok() && fs::exists(out, error)) return {};
    const std::string output = ended.out + ended.err;
    // Old ones report it, or end with an exception of a library that parses what it does not know.
    auto newer = version_in(output);
    if (!newer || *newer <= chosen->version) newer = version_inside(report);
    const bool known = newer && *newer > chosen->version;
    const bool too_old = known || output.find("Version number is invalid") != std::string::npos ||
                         output.find("newer than your current") != std::string::npos;
    if (too_old) {
      return base::fail(
          base::Code::kToolMissing,
          "nsys " + to_string(chosen->version) + " is too old for this report" +
              (known ? ", which " + to_string(*newer) + " wrote" : std::string()),
          asked_for.string(),
          "Install Nsight Systems " +
              (known ? to_string(*newer) + " or newer" : std::string("of a newer version")) +
              std::string(kWhere) + " and give it with RANGESCOPE_NSYS=/path/to/nsys.");
    }
    return base::fail(base::Code::kBadData, "nsys export failed: " + ending(ended),
                      asked_for.string(), {});
  });
}

}  // namespace

base::Result<void> import_stream(const fs::path& nsys, const fs::path& stream,
                                 const fs::path& report) {
  const auto importer = base::find_importer(nsys);
  if (!importer)
    return base::fail(base::Code::kToolMissing,
                      "nsys left a .qdstrm and has no QdstrmImporter to turn it into a report",
                      stream.string(), "Install nsys's host part (package nsight-systems).");
  const std::vector<std::string> argv{importer->string(), "-i", stream.string(), "-o",
                                      report.string()};
  constexpr auto kLimit = std::chrono::minutes(30);
  constexpr std::string_view kLacks = "error while loading shared libraries: ";
  auto ended = run_tool(argv, kLimit);
  std::error_code error;
  if (ended && ended->err.find(kLacks) != std::string::npos) {
    // Unpacked packages have their libraries in folders that the loader does not know.
    const fs::path host = fs::weakly_canonical(*importer, error).parent_path();
    ended = run_tool(argv, kLimit,
                     host.string() + ":" +
                         (host.parent_path().parent_path() / "x86_64-linux-gnu").string() + ":" +
                         fs::weakly_canonical(nsys, error).parent_path().string());
  }
  if (!ended) return base::fail(std::move(ended));
  // The importer of 2020.4.3 writes X.qdrep whatever extension it was told.
  if (const fs::path old = fs::path(report).replace_extension(".qdrep");
      !fs::exists(report, error) && fs::exists(old, error))
    fs::rename(old, report, error);
  if (fs::exists(report, error) && fs::file_size(report, error) > 0) return {};
  std::vector<std::string> missing = missing_libraries(*importer), packages;
  if (const auto at = ended->err.find(kLacks); missing.empty() && at != std::string::npos)
    missing = {ended->err.substr(at + kLacks.size(),
                                 ended->err.find(':', at + kLacks.size()) - at - kLacks.size())};
  if (missing.empty())
    return base::fail(base::Code::kBadData, "QdstrmImporter failed: " + ending(*ended),
                      stream.string(), {});
  for (const std::string& library : missing)
    if (std::string package = package_of(library);
        std::ranges::find(packages, package) == packages.end())
      packages.push_back(std::move(package));
  return base::fail(base::Code::kToolMissing,
                    "QdstrmImporter needs " + base::printable(base::join(missing, ", ")) +
                        ", which this system lacks",
                    importer->string(), "Install " + base::join(packages, " ") + " and try again.");
}

static bool sniff(std::span<const std::byte> head, const fs::path&) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with(kReport) || is_stream(text);
}

namespace {

/// "report1.sqlite" of "report1.nsys-rep", which `nsys stats` and `nsys profile --stats=true` leave
/// beside it.
std::optional<fs::path> export_beside(const fs::path& path) {
  const fs::path beside = fs::path(path).replace_extension(".sqlite");
  const auto head = base::read_head(beside, base::kSqliteMagic.size());
  return head && base::is_sqlite(*head) ? std::optional(beside) : std::nullopt;
}

base::Result<fs::path> export_of(const fs::path& path, const Options& options) {
  const auto head = TRY(base::read_head(path, 256));
  const bool stream = is_stream(head);
  const auto need = written_by(head);
  const auto stem = TRY(cache_stem(path));
  const fs::path sqlite = stem.string() + ".sqlite";
  std::error_code error;
  if (!fs::exists(sqlite, error)) {
    const auto found = TRY(find_nsys(options.nsys_path));
    fs::path report = path;
    if (stream) {
      report = stem.string() + ".nsys-rep";
      TRY(import_by(path, report, found, need));
    }
    auto done = export_report(report, sqlite, found, need, path);
    if (stream) fs::remove(report, error);
    if (!done) return base::fail(std::move(done));
  }
  return sqlite;
}

}  // namespace

static base::Result<fs::path> database(const fs::path& path, const Options& options) {
  auto made = export_of(path, options);
  if (made) return made;
  const auto beside = export_beside(path);
  if (!beside) return made;
  base::detail(base::to_string(made.error()));
  return *beside;
}

static base::Result<model::Session> read(const fs::path& path, const Options& options) {
  const auto sqlite = TRY(database(path, options));
  auto session = read_any(sqlite, options);
  if (!session) return session;
  if (sqlite == fs::path(path).replace_extension(".sqlite"))
    session->losses.push_back({"export_beside", 0,
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
