#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/print/history.hpp"
#include "cli/print/runs.hpp"
#include "cli/subcommand.hpp"
#include "model/measure.hpp"
#include "profile/import.hpp"
#include "profile/sides.hpp"
#include "report/document/document.hpp"
#include "report/document/view.hpp"
#include "report/sink.hpp"
#include "runs/job/folder.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/retention.hpp"
#include "runs/stages.hpp"
#include "runs/store.hpp"

namespace rangescope::cli {
namespace {

class Runs final : public Subcommand {
 public:
  Runs() : Subcommand("runs") {}
  void options(const Arguments& app) override {
    const auto word = [&](const std::string& name, Does does) {
      return words_.emplace_back(app.add_subcommand(name), does).first;
    };
    const Arguments list = word("list", &Runs::list);
    const Arguments show = word("show", &Runs::show);
    const Arguments prune = word("prune", &Runs::prune);
    const Arguments verify = word("verify", &Runs::verify);
    const Arguments stats = word("stats", &Runs::stats);
    const Arguments imported = word("import", &Runs::import_files);
    const Arguments push = word("push", &Runs::push);
    const Arguments history = word("history", &Runs::history);
    app.optional_subcommand();
    for (const Arguments& arguments : {list, show, prune, verify, stats, imported, push})
      arguments.add_option("--runs", root_);
    for (const Arguments& arguments : {list, show, stats})
      arguments.add_flag("--json", json_);
    app.add_flag("--json", json_).hidden();
    app.add_option("--runs", root_).hidden();
    show.add_option("run", said_);
    imported.add_option("input", inputs_).required().expected(1, 1000);
    bind_read(imported, read_);
    verify.add_option("run", said_);
    list.add_option("--from", store_);
    push.add_option("to", store_).required();
    push.add_option("run", pushed_).expected(0, 1000);
    push.add_option("--name", name_);
    push.add_option("--nsys", nsys_);
    history.add_option("region", said_).required();
    history.add_option("--from", store_).required();
    history.add_option("--metric", metric_);
    history.add_option("-f,--format", choice_.format).one_of({"table", "json", "html"});
    bind_destination(history, choice_);
    prune.add_count("--keep", keep_);
    prune.add_option("--older-than", older_than_);
    prune.add_flag("-y,--yes", yes_);
    prune.add_flag("-n,--dry-run", dry_run_);
  }

  [[nodiscard]] base::Result<int> run() override {
    for (const auto& [word, does] : words_)
      if (word.parsed())
        return (this->*does)();
    return list();
  }

 private:
  using Does = base::Result<int> (Runs::*)() const;

  [[nodiscard]] base::Result<int> list() const {
    if (!store_.empty())
      return list_stored();
    auto runs = runs::list_runs(root_);
    for (const auto& job :
         runs::job::list_jobs(root_))  // a job's ranks are adjacent, after the single runs
      for (const auto& run : runs::list_runs(job))
        runs.push_back(run);
    if (json_)
      return put_json(runs_json(runs));
    if (!runs.empty())
      return put(runs_grid(runs));
    base::info("no runs in " + root_);
    return 0;
  }

  [[nodiscard]] base::Result<int> import_files() const {
    const auto run = TRY(profile::import_files(inputs_, root_, arguments(), read_));
    std::string name = run.string();
    if (root_ == runs::kDefaultRoot)
      name = "latest";
    base::info(base::counted(inputs_.size(), "file") + " in " + run.string() +
               "; see it: rangescope report " + base::shell_quote(name));
    return 0;
  }

  [[nodiscard]] base::Result<int> list_stored() const {
    constexpr std::size_t kMostListed = 1000;
    const auto store = TRY(runs::Store::open(store_));
    const auto pushes = TRY(store.list(kMostListed));
    if (pushes.size() == kMostListed)
      base::info("the newest " + std::to_string(kMostListed));
    if (json_)
      return put_json(stored_json(pushes));
    return put(stored_grid(pushes));
  }

  [[nodiscard]] base::Result<int> push() const {
    const auto store = TRY(runs::Store::open(store_));
    std::vector<std::string> inputs = pushed_;
    if (inputs.empty())
      inputs = {"latest"};
    if (inputs.size() > 1 && !name_.empty())
      return base::fail(
          base::Code::kUsage, "several runs and one name", "--name", "Push them one by one");
    for (const std::string& input : inputs) {
      const auto side = TRY(profile::load_pushed(input, {root_, nsys_, 0}));
      const std::string name = name_.empty() ? side.label : name_;
      TRY(store.push(name, side.runs));
      base::info(base::printable(name) + ": " + base::counted(side.runs.size(), "run") + ", " +
                 base::counted(side.runs.front().regions.size(), "region") + " in " + store.name());
    }
    return 0;
  }

  [[nodiscard]] base::Result<int> history() const {
    if (model::find_measure(metric_) == nullptr && !metric_.starts_with("metrics."))
      return base::fail(base::Code::kUsage,
                        "there is no measure '" + base::printable(metric_) + "'",
                        "--metric",
                        base::did_you_mean(metric_, model::measure_tags()));
    TRY(check_destination(choice_, STDOUT_FILENO));
    const auto store = TRY(runs::Store::open(store_));
    const auto history = TRY(store.history(said_, metric_));
    const auto written =
        write_to(choice_,
                 STDOUT_FILENO,
                 [&](report::Sink& sink, const report::Style& style) -> base::Result<void> {
                   if (choice_.format == "html")
                     sink.write(history_html(history, metric_));
                   else if (choice_.format == "json")
                     sink.write(history_json(history, metric_));
                   else
                     sink.write(report::terminal_text(history_document(history, metric_), style));
                   return {};
                 });
    TRY(written);
    return 0;
  }

  [[nodiscard]] base::Result<int> show() const {
    const auto run = TRY(runs::find_run(root_, said_));
    if (!json_)
      return run_page(run).and_then([](const std::string& page) { return put(page); });
    return run_json(run).and_then([](const nlohmann::json& json) { return put_json(json); });
  }

  [[nodiscard]] base::Result<int> prune() const {
    runs::Retention retention;
    retention.keep = keep_;
    if (!older_than_.empty())
      retention.older_than = TRY(runs::parse_age(older_than_));
    if (!retention.keep && !retention.older_than)
      return base::fail(base::Code::kUsage,
                        "prune needs to know which runs may go",
                        {},
                        "Add --keep N, --older-than AGE, or both");
    const auto candidates = runs::job::prunable(root_, retention, runs::unix_now_ns());
    if (candidates.empty()) {
      base::info("no run matches; nothing to delete");
      return 0;
    }
    std::uint64_t bytes = 0;
    std::size_t jobs = 0;
    for (const auto& candidate : candidates) {
      bytes += candidate.bytes;
      if (runs::job::is_job(candidate.path))
        ++jobs;
      print(candidate.path.string() + "\n");
    }
    std::fflush(stdout);
    std::string amount;
    if (jobs < candidates.size())
      amount += base::counted(candidates.size() - jobs, "run") + ", ";
    if (jobs > 0)
      amount += base::counted(jobs, "job") + ", ";
    amount += base::format_bytes(static_cast<double>(bytes));
    if (dry_run_) {
      base::info("would delete " + amount);
      return 0;
    }
    if (!yes_ && !confirmed("delete " + amount + "? [y/N] ")) {
      std::string hint = "Pass --yes where nobody can answer";
      if (::isatty(STDIN_FILENO) != 0)
        hint = "Answer y, or pass --yes";
      return base::fail(base::Code::kUsage, "nothing was deleted", {}, std::move(hint));
    }
    std::vector<base::Error> failures;
    for (const auto& candidate : candidates) {
      auto removed = remove_run_or_job(candidate.path);
      if (!removed)
        failures.push_back(std::move(removed.error()));
    }
    if (failures.empty()) {
      base::info("deleted " + amount);
      return 0;
    }
    const std::size_t deleted = candidates.size() - failures.size();
    base::info(fmt::format("deleted {} of {}", deleted, base::counted(candidates.size(), "run")));
    for (const base::Error& failure : std::span(failures).subspan(1))
      say(failure);
    return tl::unexpected(failures.front());
  }

  // Asks on the terminal. Never waits where there is none.
  [[nodiscard]] static bool confirmed(const std::string& question) {
    if (::isatty(STDIN_FILENO) == 0)
      return false;
    if (::write(STDERR_FILENO, question.data(), question.size()) < 0)
      return false;
    char answer[64] = {};
    if (std::fgets(answer, sizeof answer, stdin) == nullptr)
      return false;
    const std::string folded = base::lower(base::trim(answer));
    return folded == "y" || folded == "yes";
  }

  static base::Result<void> remove_run_or_job(const std::filesystem::path& folder) {
    if (runs::job::is_job(folder))
      return runs::job::remove_job(folder);
    return runs::remove_run(folder);
  }

  [[nodiscard]] base::Result<int> verify() const {
    const auto run = TRY(runs::find_run(root_, said_));
    const auto differences = TRY(runs::verify(run));
    for (const auto& difference : differences)
      print(difference.path + ": " + difference.kind + "\n");
    if (!differences.empty()) {
      return base::fail(base::Code::kBadData,
                        base::counted(differences.size(), "file has changed", "files have changed"),
                        run.string(),
                        "Do not rely on this run, or restore it from a copy");
    }
    base::info("all files are unchanged: " + run.string());
    return 0;
  }

  // Local files only; nothing leaves the machine.
  [[nodiscard]] base::Result<int> stats() const {
    const auto counts = runs::count_stages(runs::list_runs(root_));
    if (json_)
      return put_json(stages_json(counts));
    if (!counts.empty())
      return put(stages_grid(counts));
    base::info("no runs in " + root_);
    return 0;
  }

  std::vector<std::string> inputs_;
  read::Options read_;
  std::string store_, name_, nsys_, metric_ = "wall_ns.median";
  std::vector<std::string> pushed_;
  ReportChoice choice_;
  std::vector<std::pair<Arguments, Does>> words_;
  std::string root_{runs::kDefaultRoot};
  std::string said_ = "latest";
  std::optional<std::size_t> keep_;
  std::string older_than_;
  bool yes_ = false, dry_run_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_runs() {
  return std::make_unique<Runs>();
}

}  // namespace rangescope::cli
