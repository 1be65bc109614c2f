#include "profile/import.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "profile/analyzed.hpp"
#include "profile/record.hpp"
#include "profile/redact.hpp"
#include "read/registry.hpp"
#include "read/snapshot/reader.hpp"
#include "report/document/report_document.hpp"
#include "runs/imports.hpp"
#include "runs/layout.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

struct Given {
  std::filesystem::path path;
  std::filesystem::path
      database;  ///< nsys' SQLite: the file itself or its export, "" for other files
  const read::Reader* reader = nullptr;
  model::Source source;
};

base::Result<void> copy_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  // What has no size may have no end either (a link to /proc/kmsg).
  if (!error && fs::file_size(from, error) == 0 && !error)
    return base::write_file(to, {});
  if (!error)
    fs::copy_file(from, to, error);
  if (error)
    return base::fail(
        base::Code::kIo, "cannot copy to " + to.string() + ": " + error.message(), from.string());
  return {};
}

/// `wanted`, or with -2, -3 ... before its extension where that is taken.
fs::path unused(const fs::path& wanted) {
  std::error_code error;
  fs::path path = wanted;
  for (int n = 2; fs::exists(path, error); ++n)
    path = wanted.parent_path() /
           (wanted.stem().string() + "-" + std::to_string(n) + wanted.extension().string());
  return path;
}

/// Reads it once, to know that it can be read and what it is. kUsage for a run; the readers'
/// errors.
base::Result<Given> examine(const fs::path& path, const read::Options& options) {
  if (runs::is_run_dir(path))
    return base::fail(base::Code::kUsage,
                      "this is already a run",
                      path.string(),
                      "Copy the folder, or name what is in it.");
  auto reader = TRY(read::find_reader(path));
  Given given{path, {}, reader, {}};
  if (reader->database != nullptr)
    given.database = TRY(reader->database(path, options));
  auto session = TRY(reader->read(path, options));
  if (!session.sources.empty())
    given.source = session.sources.front();
  return given;
}

/// A memory snapshot in the run; removed where it cannot be redacted.
base::Result<bool> redact_copy(const fs::path& snapshot) {
  std::error_code error;
  fs::permissions(snapshot, fs::perms::owner_write, fs::perm_options::add, error);
  auto redacted = redact_snapshot(snapshot, base::Redactor());
  if (!redacted)
    fs::remove(snapshot, error);
  return redacted;
}

/// The folder of a run in which captures of this tool are.
const char* folder_of(model::Maker maker) {
  switch (maker) {
    case model::Maker::kRangescope: return "native";
    case model::Maker::kNcu: return "ncu";
    case model::Maker::kNsys: return "nsys";
    default: return "other";
  }
}

base::Result<void> copy_folder(const Given& given, const fs::path& run, runs::Import& import) {
  std::error_code error;
  const fs::path to = unused(run / folder_of(given.source.maker));
  for (fs::directory_iterator entry(given.path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file(error))
      continue;
    import.bytes += entry->file_size(error);
    TRY(copy_to(entry->path(), to / entry->path().filename()));
  }
  redact_snapshots(to, base::Redactor());
  import.file = to.lexically_relative(run).string();
  return {};
}

/// A report of nsys is copied with its SQLite export, which is what is read then.
base::Result<void> copy_file(const Given& given, const fs::path& run, runs::Import& import) {
  std::error_code error;
  const fs::path to = unused(run / folder_of(given.source.maker) / given.path.filename());
  TRY(copy_to(given.path, to));
  import.file = to.lexically_relative(run).string();
  if (given.reader == &read::snapshot::kReader)
    import.redacted = TRY(redact_copy(to));
  if (given.database.empty())
    return {};
  fs::path sqlite = to;
  if (given.database != given.path) {
    // It holds environments.
    fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);
    sqlite = unused(fs::path(to).replace_extension(".sqlite"));
    TRY(copy_to(given.database, sqlite));
    import.original = import.file;
    import.file = sqlite.lexically_relative(run).string();
  }
  fs::permissions(sqlite, fs::perms::owner_write, fs::perm_options::add, error);
  if (auto done = profile::redact_nsys_export(sqlite); !done) {
    fs::remove(sqlite, error);
    return base::fail(base::Code::kIo,
                      "the copy's environments could not be redacted: " + done.error().what,
                      given.path.string());
  }
  import.redacted = true;
  return {};
}

/// Copies it into the run.
base::Result<runs::Import> take_in(const Given& given, const fs::path& run) {
  std::error_code error;
  runs::Import import{.given_path = fs::absolute(given.path, error).lexically_normal().string(),
                      .format = std::string(given.reader->name),
                      .tool = given.source.tool,
                      .version = given.source.schema};
  struct ::stat info {};
  if (::stat(given.path.c_str(), &info) != 0)
    return base::fail(base::Code::kIo, "cannot be read", given.path.string());
  import.modified_unix_ns =
      std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (fs::is_directory(given.path, error)) {
    TRY(copy_folder(given, run, import));
    return import;
  }
  import.sha256 = TRY(base::sha256_file(given.path));
  import.bytes = static_cast<std::uint64_t>(info.st_size);
  TRY(copy_file(given, run, import));
  return import;
}

base::Result<void> fill_run(const fs::path& run,
                            const std::vector<Given>& given,
                            const read::Options& reading,
                            model::Report& report) {
  std::vector<runs::Import> imports;
  for (const Given& input : given) {
    auto import = TRY(take_in(input, run));
    imports.push_back(std::move(import));
  }
  TRY(runs::write_imports(run, imports));
  auto analyzed = TRY(analyze_inputs(captures_to_read(run), run, {}, reading));
  report = analyzed.report;
  if (!report.operators.empty())
    TRY(base::write_file(run / "operators.md",
                         report::markdown_text(report::operators_document(report))));
  return write_report(analyzed, "json", run / "report.json");
}

}  // namespace

base::Result<fs::path> import_files(const std::vector<std::string>& inputs,
                                    const fs::path& root,
                                    const std::vector<std::string>& arguments,
                                    const read::Options& reading) {
  std::vector<Given> given;
  for (const std::string& input : inputs) {
    auto examined = TRY(examine(input, reading));
    const auto is_same = [&](const Given& other) {
      std::error_code error;
      return fs::equivalent(other.path, examined.path, error);
    };
    if (std::any_of(given.begin(), given.end(), is_same))
      return base::fail(base::Code::kUsage, "the same file twice", input, "Give each file once");
    given.push_back(std::move(examined));
  }
  auto record = TRY(RunRecord::begin(root, {}, arguments));
  model::Report report;
  auto done = fill_run(record.path(), given, reading, report);
  if (!done) {
    const base::Error& error = done.error();
    (void)record.finish(
        base::exit_code(error.code), "error", base::to_string(error), report.losses);
    return base::fail(std::move(done));
  }
  auto finished = record.finish(0, "ok", "", report.losses);
  TRY(finished);
  return record.path();
}

}  // namespace rangescope::profile
