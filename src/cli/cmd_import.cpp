// `rangescope import`: a run directory out of files that other tools left, with what is needed to trace each number.
// Everything is read before anything is made, so that a file that cannot be read leaves no run.
#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/subcommands.hpp"
#include "profile/analyzed.hpp"
#include "profile/import.hpp"
#include "profile/record.hpp"
#include "runs/imports.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;

class ImportCommand final : public Subcommand {
 public:
  ImportCommand()
      : Subcommand(
            "import", "Make a run of files that nsys, ncu or rangescope left",
            "The files are copied into a new run directory, with their hashes and origin in import.json, and reported\n"
            "on together: timelines side by side, results of ncu joined to them.\n\n"
            "  rangescope import rank0.nsys-rep rank1.nsys-rep counters.ncu-rep\n"
            "  rangescope report latest") {}
  void options(const Arguments& app) override {
    app.add_option("input", inputs_, "Files, or folders of native captures")
        .type_name("FILE")
        .required()
        .expected(1, 1000);
    app.add_option("--runs", root_, "Folder of the runs (rangescope-runs)").type_name("DIR");
    bind_read(app, read_);
  }

  [[nodiscard]] int run() override {
    std::vector<profile::Given> given;
    for (const std::string& input : inputs_) {
      auto one = profile::examine(input, read_);
      if (!one) return say(one.error());
      const auto same = [&](const profile::Given& other) {
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
  [[nodiscard]] base::Result<void> fill(const fs::path& run, const std::vector<profile::Given>& given,
                                        model::Report& report) const {
    std::vector<runs::Import> imports;
    for (const profile::Given& one : given) {
      auto import = profile::take_in(one, run);
      if (!import) return base::fail(std::move(import));
      imports.push_back(std::move(*import));
    }
    if (auto written = runs::write_imports(run, imports); !written) return written;
    auto analyzed = profile::analyze_inputs(profile::captures_to_read(run), run, {}, read_);
    if (!analyzed) return base::fail(std::move(analyzed));
    report = analyzed->report;
    return profile::write_report(*analyzed, "json", run / "report.json");
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
