// `rangescope import`: a run directory out of files that other tools left, with what is needed to trace each number.
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/subcommands.hpp"
#include "profile/import.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

class ImportCommand final : public Subcommand {
 public:
  ImportCommand()
      : Subcommand("import", "Make a run of files that nsys, ncu or rangescope left",
                   R"(The files are copied into a new run directory, with their hashes and origin in import.json, and
reported on together: timelines side by side, results of ncu joined to them.

  rangescope import rank0.nsys-rep rank1.nsys-rep counters.ncu-rep
  rangescope report latest)") {}
  void options(const Arguments& app) override {
    app.add_option("input", inputs_, "Files, or folders of native captures")
        .type_name("FILE")
        .required()
        .expected(1, 1000);
    app.add_option("--runs", root_, "Folder of the runs (rangescope-runs)").type_name("DIR");
    bind_read(app, read_);
  }

  [[nodiscard]] int run() override {
    const auto run = profile::import_files(inputs_, root_, arguments(), read_);
    if (!run) return say(run.error());
    base::info(base::counted(inputs_.size(), "file") + " in " + run->string() + "; see it: rangescope report " +
               base::shell_quote(root_ == runs::kDefaultRoot ? "latest" : run->string()));
    return 0;
  }

 private:
  std::vector<std::string> inputs_;
  std::string root_{runs::kDefaultRoot};
  read::Options read_;
};

}  // namespace

std::unique_ptr<Subcommand> make_import() {
  return std::make_unique<ImportCommand>();
}

}  // namespace rangescope::cli
