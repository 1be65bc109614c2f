#include "analyze/compare/gate.hpp"

#include <unistd.h>

#include <algorithm>

#include "analyze/compare/compare.hpp"
#include "base/log.hpp"
#include "base/postgres.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/print/runs.hpp"
#include "cli/subcommand.hpp"
#include "config/schema.hpp"
#include "profile/sides.hpp"
#include "report/compare/formats.hpp"
#include "report/sink.hpp"
#include "runs/baselines.hpp"

namespace rangescope::cli {
namespace {

class Gate final : public Subcommand {
 public:
  Gate() : Subcommand("gate") {}
  void options(const Arguments& app) override {
    app.add_option("run", run_);
    app.add_option("-b,--baseline", baseline_);
    app.add_flag("--save", save_);
    app.add_flag("--list", list_);
    app.add_option("--name", name_);
    app.add_option("--dir", dir_);
    app.add_option("--max-regression", limit_);
    app.add_flag("--strict", gate_.strict);
    app.add_flag("--any-machine", gate_.any_machine);
    bind_comparison(app, from_, options_, renames_);
    bind_destination(app, choice_);
    app.under("Report").add_option("--json", json_).expected(0, 1);
    app.when_parsed([app, this] {
      const auto values = app.results("--json");
      if (values.empty() || json_.ends_with(".json"))
        return;
      if (!json_.empty() && json_ != "true" && json_ != "-")
        run_ = json_;  // the word behind it was the run
      json_ = "-";
    });
    app.under("Report").add_option("--junit", junit_);
    app.under("Report").add_option("--markdown", markdown_);
  }

  [[nodiscard]] base::Result<int> run() override {
    if (list_)
      return list();
    if (save_)
      return save();
    if (baseline_.empty())
      return base::fail(base::Code::kUsage,
                        "no baseline was named",
                        "--baseline",
                        "Write: rangescope gate --baseline main " + base::shell_quote(run_));
    const auto limit = config::parse_share(limit_);
    if (!limit)
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(limit_) + "' is not a share",
                        "--max-regression",
                        "Write 5% or 0.05");
    gate_.max_regression = *limit;
    TRY(finish_comparison(options_, renames_));
    auto judged = TRY(judge());
    TRY(write(judged));
    if (judged.verdict == model::GateVerdict::kRegressed)
      return base::exit_code(base::Code::kRegression);
    const auto open = [&](bool with_noise) {
      return std::count_if(
          judged.checks.begin(), judged.checks.end(), [&](const model::GateCheck& check) {
            return check.verdict == model::GateVerdict::kUndecided && (with_noise || !check.hidden);
          });
    };
    const bool is_all_open = open(false) == std::ssize(judged.checks);
    if (!is_all_open && (!gate_.strict || open(true) == 0))
      return 0;
    std::string problem = "not every value could be judged";
    if (is_all_open)
      problem = "no value could be judged";
    return base::fail(base::Code::kNotComparable,
                      std::move(problem),
                      judged.comparison.sides[1].label,
                      hint_for_undecided(judged));
  }

 private:
  /// What decides the undecided values and was not done yet.
  [[nodiscard]] static std::string hint_for_undecided(const model::Gate& judged) {
    constexpr std::string_view kLeastNoise = "wall_ns.min";
    std::size_t runs = 0;
    bool is_by_median = false;
    for (const model::GateCheck& check : judged.checks) {
      if (check.verdict != model::GateVerdict::kUndecided)
        continue;
      runs = std::max(runs, check.runs_to_decide.value_or(0));
      const model::ComparedRegion& region = region_of(judged, check);
      const auto has_least_noise = [&](const model::ComparedValue& value) {
        return value.tag == kLeastNoise;
      };
      is_by_median |= value_of(judged, check).tag == "wall_ns.median" && region.values.size() > 1 &&
                      std::ranges::any_of(region.values, has_least_noise);
    }
    std::vector<std::string> hints;
    if (runs > 0) {
      std::string repeat = "repeat both sides: rangescope profile --repeat " + std::to_string(runs);
      const auto& command = judged.comparison.sides[1].command;
      if (!command.empty())
        repeat += " -- " + base::printable(base::shell_quote(command));
      hints.push_back(std::move(repeat));
    }
    if (is_by_median)
      hints.push_back("judge the value with the least noise: --metric " + std::string(kLeastNoise));
    if (hints.empty())
      return "The table says for each value why";
    std::string hint = base::join(hints, "; or ");
    hint.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(hint.front())));
    return hint;
  }

  [[nodiscard]] base::Result<int> save() const {
    auto side = TRY(load_side(run_, from_));
    const std::size_t count = side.runs.size();
    const auto path = TRY(profile::save_baseline(dir_, name_, std::move(side)));
    print(path.string() + "\n");
    if (count < 3)
      base::info(
          "it holds " + base::counted(count, "run") +
          "; five or more show how much runs vary: rangescope profile --repeat 5 -- program");
    return 0;
  }

  [[nodiscard]] base::Result<int> list() const {
    const auto baselines = runs::list_baselines(dir_);
    if (!baselines.empty())
      return put(baselines_grid(baselines));
    base::info("no baselines in " + dir_);
    return 0;
  }

  [[nodiscard]] base::Result<model::Gate> judge() const {
    auto now = TRY(load_side(run_, from_));
    auto before = TRY(load_baseline(now));
    const std::vector<model::Side> sides = {std::move(before), std::move(now)};
    auto comparison = TRY(analyze::compare(sides, options_));
    return analyze::gate(std::move(comparison), gate_, !options_.regions.empty());
  }

  /// A name of a baseline; else whatever compare takes.
  [[nodiscard]] base::Result<model::Side> load_baseline(const model::Side& now) const {
    if (base::Postgres::is_address(baseline_))
      return profile::load_stored(baseline_, &now.runs);
    const std::string machine = runs::machine_kind(now.runs.front());
    const auto path = runs::find_baseline(dir_, baseline_, machine);
    if (path)
      return load_side(path->string(), from_);
    if (path.error().code != base::Code::kNoInput)
      return tl::make_unexpected(path.error());
    auto run = load_side(baseline_, from_);
    const bool is_missing = !run && run.error().code == base::Code::kNoInput;
    if (is_missing)
      return tl::make_unexpected(path.error());
    return run;
  }

  [[nodiscard]] base::Result<void> write(const model::Gate& gate) const {
    TRY(write_to(choice_,
                 STDOUT_FILENO,
                 [&](report::Sink& sink, const report::Style& style) -> base::Result<void> {
                   if (json_ == "-")
                     report::write_gate_json(gate, style, sink);
                   else
                     report::write_gate_table(gate, style, sink);
                   return {};
                 }));
    using File = std::pair<const std::string*, report::WriteGate*>;
    for (const auto& [path, form] : {File{&json_, report::write_gate_json},
                                     File{&junit_, report::write_gate_junit},
                                     File{&markdown_, report::write_gate_markdown}}) {
      if (path->empty() || *path == "-")
        continue;
      TRY(check_output(*path));
      report::FileSink sink(*path);
      form(gate, {}, sink);
      TRY(sink.finish());
    }
    return {};
  }

  std::string run_ = "latest", baseline_, dir_{std::string(runs::kBaselineFolder)}, limit_ = "5%";
  std::string json_, junit_, markdown_, name_ = "main";
  std::vector<std::string> renames_;
  profile::SideOptions from_;
  analyze::CompareOptions options_;
  analyze::GateOptions gate_;
  bool save_ = false, list_ = false;
  ReportChoice choice_;
};

}  // namespace

std::unique_ptr<Subcommand> make_gate() {
  return std::make_unique<Gate>();
}

}  // namespace rangescope::cli
