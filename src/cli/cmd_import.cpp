// `rangescope import`: a run directory out of files that other tools left, with what is needed to trace each number.
//
// The files are copied, never moved or changed; copies of nsys' exports lose the environments that nsys writes into
// them (profile/redact.hpp). Everything is read before anything is made, so that a file that cannot be read leaves no
// run.
#include <sys/stat.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/subcommands.hpp"
#include "profile/analyzed.hpp"
#include "profile/record.hpp"
#include "profile/redact.hpp"
#include "read/registry.hpp"
#include "runs/imports.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

struct Given {
  fs::path path;
  fs::path database;  ///< nsys' SQLite: the file itself or its export, "" for other files
  const read::Reader* reader = nullptr;
  model::Source source;
};

base::Result<void> copy_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::copy_file(from, to, error);
  if (error)
    return base::fail(base::Code::kIo, "cannot copy to " + to.string() + ": " + error.message(), from.string());
  return {};
}

class ImportCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view name() const override { return "import"; }
  [[nodiscard]] std::string_view summary() const override {
    return "Make a run of files that nsys, ncu or rangescope left";
  }
  [[nodiscard]] std::string_view details() const override {
    return "The files are copied into a new run directory, with their hashes and origin in import.json, and reported\n"
           "on together: timelines side by side, results of ncu joined to them.\n\n"
           "  rangescope import rank0.nsys-rep rank1.nsys-rep counters.ncu-rep\n"
           "  rangescope report latest";
  }

  void options(const Arguments& app) override {
    app.add_option("input", inputs_, "Files, or folders of native captures")
        .type_name("FILE")
        .required()
        .expected(1, 1000);
    app.add_option("--runs", root_, "Folder of the runs (rangescope-runs)").type_name("DIR");
    bind_read(app, read_);
  }

  [[nodiscard]] int run() override {
    std::vector<Given> given;
    for (const std::string& input : inputs_) {
      auto one = look(input);
      if (!one) return say(one.error());
      const auto same = [&](const Given& other) {
        std::error_code error;
        return fs::equivalent(other.path, one->path, error);
      };
      if (std::any_of(given.begin(), given.end(), same))
        return say({base::Code::kUsage, "the same file twice", input, "Give each file once"});
      given.push_back(std::move(*one));
    }
    auto record = profile::RunRecord::begin(root_, {}, arguments());
    if (!record) return say(record.error());
    model::Report report;
    const auto done = fill(record->path(), given, report);
    const int code = done ? 0 : say(done.error());
    if (auto finished =
            record->finish(code, done ? "ok" : "error", done ? "" : base::to_string(done.error()), report.losses);
        !finished)
      return say(finished.error());
    if (code != 0) return code;
    base::info(base::counted(given.size(), "file") + " in " + record->path().string() + "; see it: rangescope report " +
               base::shell_quote(root_ == runs::kDefaultRoot ? "latest" : record->path().string()));
    return 0;
  }

 private:
  /// Reads it once, to know that it can be read and what it is.
  [[nodiscard]] base::Result<Given> look(const fs::path& path) const {
    if (runs::is_run_dir(path))
      return base::fail(base::Code::kUsage, "this is a run already", path.string(),
                        "Copy the folder, or name what is in it.");
    auto reader = read::find_reader(path);
    if (!reader) return base::fail(std::move(reader));
    Given given{path, {}, *reader, {}};
    auto database = (*reader)->database(path, read_);
    if (!database) return base::fail(std::move(database));
    given.database = std::move(*database);
    auto session = (*reader)->read(path, read_);
    if (!session) return base::fail(std::move(session));
    if (!session->sources.empty()) given.source = session->sources.front();
    return given;
  }

  [[nodiscard]] base::Result<void> fill(const fs::path& run, const std::vector<Given>& given,
                                        model::Report& report) const {
    std::vector<runs::Import> imports;
    for (const Given& one : given) {
      auto import = take(run, one);
      if (!import) return base::fail(std::move(import));
      imports.push_back(std::move(*import));
    }
    if (auto written = runs::write_imports(run, imports); !written) return written;
    auto analyzed = profile::analyze_inputs(profile::captures_to_read(run), run, {}, read_);
    if (!analyzed) return base::fail(std::move(analyzed));
    report = analyzed->report;
    return profile::write_report(*analyzed, "json", run / "report.json");
  }

  [[nodiscard]] static base::Result<runs::Import> take(const fs::path& run, const Given& one) {
    std::error_code error;
    runs::Import import;
    import.from = fs::absolute(one.path, error).lexically_normal().string();
    import.format = one.reader->name();
    import.tool = one.source.tool;
    import.version = one.source.schema;
    struct ::stat info {};
    if (::stat(one.path.c_str(), &info) != 0) return base::fail(base::Code::kIo, "cannot be read", one.path.string());
    import.modified_unix_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    const fs::path kind = one.source.maker == model::Maker::kRangescope ? "native"
                          : one.source.maker == model::Maker::kNcu      ? "ncu"
                                                                        : "nsys";

    if (fs::is_directory(one.path, error)) {
      const fs::path to = unused(run / kind);
      for (fs::directory_iterator entry(one.path, error), end; !error && entry != end; entry.increment(error)) {
        if (!entry->is_regular_file(error)) continue;
        import.bytes += entry->file_size(error);
        if (auto copied = copy_to(entry->path(), to / entry->path().filename()); !copied)
          return base::fail(std::move(copied));
      }
      import.file = to.lexically_relative(run).string();
      return import;
    }

    auto hash = base::sha256_file(one.path);
    if (!hash) return base::fail(std::move(hash));
    import.sha256 = std::move(*hash);
    import.bytes = static_cast<std::uint64_t>(info.st_size);
    const fs::path to = unused(run / kind / one.path.filename());
    if (auto copied = copy_to(one.path, to); !copied) return base::fail(std::move(copied));
    import.file = to.lexically_relative(run).string();
    fs::path sqlite = one.database == one.path ? to : fs::path{};
    if (!one.database.empty() && one.database != one.path) {
      fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);  // it holds environments
      sqlite = unused(fs::path(to).replace_extension(".sqlite"));
      if (auto copied = copy_to(one.database, sqlite); !copied) return base::fail(std::move(copied));
      import.original = import.file;
      import.file = sqlite.lexically_relative(run).string();
    }
    if (!sqlite.empty()) {
      fs::permissions(sqlite, fs::perms::owner_write, fs::perm_options::add, error);
      if (auto done = profile::redact_nsys_export(sqlite); !done) {
        fs::remove(sqlite, error);
        return base::fail(base::Code::kIo, "the copy's environments could not be redacted: " + done.error().what,
                          one.path.string());
      }
      import.redacted = true;
    }
    return import;
  }

  /// `wanted`, or with -2, -3 ... before its extension where that is taken.
  [[nodiscard]] static fs::path unused(const fs::path& wanted) {
    std::error_code error;
    fs::path path = wanted;
    for (int n = 2; fs::exists(path, error); ++n)
      path = wanted.parent_path() / (wanted.stem().string() + "-" + std::to_string(n) + wanted.extension().string());
    return path;
  }

  std::vector<std::string> inputs_;
  std::string root_{runs::kDefaultRoot};
  read::Options read_;
};

}  // namespace

std::unique_ptr<Subcommand> make_import() {
  return std::make_unique<ImportCommand>();
}

}  // namespace rangescope::cli
