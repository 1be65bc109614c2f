#include <cstdio>

#include "base/log.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/destination.hpp"
#include "cli/subcommands.hpp"
#include "pages/runs.hpp"
#include "profile/sides.hpp"
#include "runs/baselines.hpp"

namespace rangescope::cli {
namespace {

class Baseline final : public Subcommand {
 public:
  Baseline()
      : Subcommand("baseline", "Keep the numbers of runs for compare and gate",
                   R"(A baseline is one small JSON file, DIR/NAME.MACHINE.json, without traces: it can go into the
repository. One name has a file for each kind of machine; gate takes the one that fits.

  rangescope profile --repeat 10 -- ./app
  rangescope baseline save --name main latest
  rangescope baseline list)") {}
  void options(const Arguments& app) override {
    save_ = app.add_subcommand("save", "Keep the numbers of a run, of repeated runs, or of a file");
    list_ = app.add_subcommand("list", "One line a baseline");
    for (const Arguments& each : {save_, list_})
      each.add_option("--dir", dir_, "Folder of the baselines (rangescope-baselines)").type_name("DIR");
    save_.add_option("run", said_, "Run, folder of runs, or file (latest)").type_name("RUN|DIR|FILE");
    save_.add_option("--name", name_, "Its name (main)").type_name("NAME");
    bind_sides(save_, from_);
  }

  [[nodiscard]] int run() override { return save_.parsed() ? save() : list(); }

 private:
  [[nodiscard]] int save() const {
    auto side = load_side(said_, from_);
    if (!side) return say(side.error());
    const std::size_t count = side->runs.size();
    const auto path = profile::save_baseline(dir_, name_, std::move(*side));
    if (!path) return say(path.error());
    std::puts(path->c_str());
    if (count < 3)
      base::info("it holds " + base::counted(count, "run") +
                 "; five or more show how much runs differ: rangescope profile --repeat 5 -- program");
    return 0;
  }

  [[nodiscard]] int list() const {
    const auto baselines = runs::list_baselines(dir_);
    if (baselines.empty()) {
      base::info("no baselines in " + dir_);
      return 0;
    }
    const report::Style style = table_style();
    print(pages::baselines_table(baselines, style.width, style.color));
    return 0;
  }

  Arguments save_, list_;
  std::string said_ = "latest", name_ = "main", dir_{std::string(runs::kBaselineFolder)};
  profile::SideOptions from_;
};

}  // namespace

std::unique_ptr<Subcommand> make_baseline() {
  return std::make_unique<Baseline>();
}

}  // namespace rangescope::cli
