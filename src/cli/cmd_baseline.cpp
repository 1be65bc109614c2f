#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "analyze/surroundings.hpp"
#include "base/log.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/destination.hpp"
#include "cli/subcommands.hpp"
#include "profile/sides.hpp"
#include "runs/baselines.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"

namespace rangescope::cli {
namespace {

class Baseline final : public Subcommand {
 public:
  Baseline()
      : Subcommand(
            "baseline", "Keep the numbers of runs for compare and gate",
            "A baseline is one small JSON file, DIR/NAME.MACHINE.json, without traces: it can go into the repository.\n"
            "One name has a file for each kind of machine; gate takes the one that fits.\n\n"
            "  rangescope profile --repeat 10 -- ./app\n"
            "  rangescope baseline save --name main latest\n"
            "  rangescope baseline list") {}
  void options(const Arguments& app) override {
    save_ = app.add_subcommand("save", "Keep the numbers of a run, of repeated runs, or of a file");
    list_ = app.add_subcommand("list", "One line a baseline");
    for (const Arguments& each : {save_, list_})
      each.add_option("--dir", dir_, "Folder of the baselines (rangescope-baselines)").type_name("DIR");
    save_.add_option("run", said_, "Run, folder of runs, or file (latest)").type_name("RUN|DIR|FILE");
    save_.add_option("--name", name_, "Its name (main)").type_name("NAME");
    save_.add_option("--runs", from_.root, "Folder of the runs (rangescope-runs)").type_name("DIR");
    save_.add_option("--nsys", from_.nsys, "nsys to export .nsys-rep, .qdrep and .qdstrm with").type_name("PATH");
  }

  [[nodiscard]] int run() override { return save_.parsed() ? save() : list(); }

 private:
  [[nodiscard]] int save() const {
    auto side = load_side(said_, from_);
    if (!side) return say(side.error());
    if (auto same = analyze::check_repetitions(*side); !same) return say(same.error());
    for (const model::Digest& run : side->runs) {
      if (run.run.exit_code.value_or(0) == 0 && !run.run.signal) continue;
      return say({base::Code::kNotComparable, "the program failed, so its numbers are no baseline", run.run.id,
                  "Make it end with 0 first"});
    }
    const auto now =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
    const runs::Baseline baseline{name_, runs::machine_kind(side->runs.front()), now.count(), std::move(side->runs)};
    const auto path = runs::save_baseline(dir_, baseline);
    if (!path) return say(path.error());
    std::puts(path->c_str());
    if (baseline.runs.size() < 3)
      base::info("it holds " + base::counted(baseline.runs.size(), "run") +
                 "; five or more show how much runs differ: rangescope profile --repeat 5 -- program");
    return 0;
  }

  [[nodiscard]] int list() const {
    const auto baselines = runs::list_baselines(dir_);
    if (baselines.empty()) {
      base::info("no baselines in " + dir_);
      return 0;
    }
    base::Table table({{"name", false},
                       {"machine", false, false, 3},
                       {"runs"},
                       {"ranges", true, false, 2},
                       {"saved", false, false, 1},
                       {"command", false, true}});
    for (const auto& [path, baseline] : baselines) {
      const model::Digest& run = baseline.runs.front();
      table.add({{base::printable(baseline.name)},
                 {base::printable(baseline.machine)},
                 {std::to_string(baseline.runs.size())},
                 {std::to_string(run.regions.size())},
                 {runs::utc_text(baseline.saved_unix_ns)},
                 {base::printable(base::shell_quote(run.run.command))}});
    }
    const report::Style style = style_on(STDOUT_FILENO, {});
    const std::string text = table.render(::isatty(STDOUT_FILENO) != 0 ? style.width : 0, style.color);
    std::fputs(text.c_str(), stdout);
    return 0;
  }

  Arguments save_, list_;
  std::string said_ = "latest", name_ = "main", dir_{std::string(runs::kBaselineFolder)};
  profile::SideOptions from_{std::string(runs::kDefaultRoot), {}, 0};
};

}  // namespace

std::unique_ptr<Subcommand> make_baseline() {
  return std::make_unique<Baseline>();
}

}  // namespace rangescope::cli
