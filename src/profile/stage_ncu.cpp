// The ncu stage: which kernels, which replay mode, tried in the ladder's order, each success proved
// by reading the report.

#include <algorithm>
#include <span>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "config/metric_groups.hpp"
#include "doctor/program/facts.hpp"
#include "model/kernel_name.hpp"
#include "model/range_expression.hpp"
#include "profile/kernel_list.hpp"
#include "profile/stage.hpp"
#include "read/join.hpp"
#include "read/registry.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {

namespace fs = std::filesystem;
using collect::Outcome;
using collect::Step;

namespace {

fs::path report_file(const fs::path& base) {
  std::error_code ignored;
  for (const char* extension : {".ncu-rep", ".ncu-repz"})
    if (fs::path file = base.string() + extension; fs::exists(file, ignored))
      return file;
  return {};
}

class Ncu : public Stage {
 public:
  explicit Ncu(Run& run) : Stage(run), mode_(replay_mode(run.config)) {}
  base::Result<void> prepare() override {
    auto can = TRY(able(run_, "ncu"));
    if (const auto file = kernel_list_file())
      listed_ = TRY(read_kernel_list(*file));
    metrics_ = metrics_of(run_.config);
    if (!metrics_.empty()) {
      collect::probe_metrics(can, search_for(run_.config, "ncu"));
      auto groups = TRY(config::shipped_groups());
      std::vector<std::string> notes;
      metrics_ = ncu_metrics(metrics_, groups, can, notes);
      if (run_.config.flag("pipeline.skip_unknown"))
        leave_out_unknown_metrics(can, notes);
      for (const std::string& text : notes)
        run_.note("ncu: " + text);
    }
    can_ = std::move(can);
    // Every rung that may be taken must have a plan; kernel mode always may.
    for (const collect::Rung& rung : collect::ladder(wish_of(run_), {}, *can_)) {
      if (!rung.take || rung.step == collect::Step::kNative)
        continue;
      const auto options = options_for(rung.step, "ncu", {}, false);
      auto plan = collect::ncu::plan(*can_, options, request());
      const bool is_last = !collect::is_ladder(mode_) || rung.step == collect::Step::kKernel;
      if (!plan && is_last)
        return base::fail(std::move(plan));
    }
    return {};
  }
  int print() override {
    int code = 0;
    const std::string report = collect::ncu::report_base(request(), {}).string();
    bool tried = false;
    for (const collect::Rung& rung : collect::ladder(wish_of(run_), {}, *can_)) {
      const std::string name =
          "ncu, " + std::string(collect::step_name(rung.step)) + ": " + rung.reason;
      if (!rung.take || rung.step == collect::Step::kNative) {
        std::printf(
            "# %s: %s\n", rung.take ? "done by the native stage" : "not tried", name.c_str());
        continue;
      }
      const auto options = options_for(rung.step, "ncu", listed_names(), false);
      const auto plan = collect::ncu::plan(*can_, options, request());
      if (!plan && collect::is_ladder(mode_) && rung.step != collect::Step::kKernel) {
        std::printf("# not tried: %s: %s\n", name.c_str(), plan.error().what.c_str());
        continue;
      }
      // A run goes on to the next mode where one left no report.
      if (tried)
        std::printf("if [ ! -e %s ] && [ ! -e %s ]; then\n",
                    base::shell_quote(report + ".ncu-rep").c_str(),
                    base::shell_quote(report + ".ncu-repz").c_str());
      code |= print_plan(name, plan);
      if (tried)
        std::puts("fi");
      tried = true;
    }
    return code | print_pages(report + std::string(collect::ncu::report_extension(*can_)));
  }
  base::Result<void> run() override {
    run_.wanted.emplace_back("ncu");
    if (!run_.asked.native && !run_.asked.nsys)
      TRY(run_.worker->go_on_in_child());
    resolve();
    TRY(choose_kernels());
    const collect::Evidence evidence = evidence_so_far();
    if (!run_.ranges.include.empty() && evidence.occurrences == 0)
      run_.note("ncu: the previous stage saw none of the chosen ranges; trying anyway");
    choose_scope(evidence);
    const auto rungs = collect::ladder(wish_of(run_), evidence, *can_);
    Outcome last;
    for (const collect::Rung& rung : rungs) {
      const std::string name(collect::step_name(rung.step));
      if (!rung.take) {
        record_not_tried(name, rung.reason);
        continue;
      }
      if (rung.step == Step::kNative) {
        const auto enough = TRY(native_rung(rung.reason));
        if (enough)
          return {};
        continue;
      }
      if (collect::is_ladder(mode_))
        run_.note("replay mode " + name + ": " + rung.reason);
      if (has_trial(rung.step)) {
        run_.note("replay mode " + name + " is tried on one instance first");
        last = attempts(rung.step, "trial-range", {}, true);
        if (last.result != collect::Result::kOk) {
          if (is_over(last))
            break;
          continue;
        }
      }
      if (measure_groups(rung.step, last)) {
        run_.captured.emplace_back("ncu");
        base::info("ncu: " + base::counted(run_.by_ncu.session->measurements.size(), "result") +
                   " in replay mode " + name);
        return {};
      }
      if (is_over(last))
        break;
    }
    run_.worst = last.code == base::Code::kInternal ? base::Code::kNothingCaptured : last.code;
    run_.explanations.push_back({last.message, true});
    run_.outcomes.emplace_back("ncu", last);
    return {};
  }

 private:
  /// What earlier stages saw of the chosen ranges.
  [[nodiscard]] collect::Evidence evidence_so_far() const {
    collect::Evidence evidence;
    if (const model::Session* timeline = run_.timeline(); timeline && !run_.ranges.include.empty())
      evidence = doctor::evidence_of(doctor::gather(*timeline, run_.ranges));
    // A counted run's timeline sees the first occurrences only, and a light one no kernel: what is
    // not seen may be there.
    const bool is_light = run_.args.native.extra_env.contains(wire::kLight) && !run_.asked.nsys;
    if (run_.counters || is_light) {
      evidence.alike.reset();
      if (evidence.kernels == 0)
        evidence.kernels.reset();
    }
    return evidence;
  }
  void record_not_tried(const std::string& mode, const std::string& reason) {
    if (collect::is_ladder(mode_))
      run_.note("replay mode " + mode + " not tried: " + reason);
    run_.runner->record(
        {.stage = "ncu", .tool = tool(), .step = mode, .outcome = "refused", .message = reason});
  }
  /// Whether a replay mode is tried on one instance before it measures all of them.
  [[nodiscard]] bool has_trial(Step step) const {
    return collect::is_ladder(mode_) && step == Step::kRange &&
           run_.config.integer("pipeline.ncu.ncu_cli.launch_count").value_or(2) != 1;
  }
  /// No further replay mode is tried.
  [[nodiscard]] bool is_over(const Outcome& outcome) const {
    return outcome.fatal || run_.runner->interrupted();
  }
  /// Runs ncu for each group of kernels, or once for ranges. True where one of the runs has
  /// results; `last` is how the last one ended.
  bool measure_groups(Step step, Outcome& last) {
    const bool measures_ranges = step == Step::kRange || step == Step::kAppRange;
    const std::vector<std::vector<std::string>> whole{{}};
    const auto& groups = measures_ranges ? whole : kernel_groups_;
    bool has_results = false;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string report = i == 0 ? "ncu" : "ncu-" + std::to_string(i + 1);
      last = attempts(step, report, groups[i], false);
      if (last.result == collect::Result::kOk)
        has_results = true;
      else if (has_results)
        run_.explanations.push_back({"run " + std::to_string(i + 1) + " of " +
                                     std::to_string(groups.size()) + ": " + last.message});
      if (is_over(last))
        break;
    }
    return has_results;
  }
  /// Push/pop or start/end, from what was seen.
  void resolve() {
    std::vector<std::string> notes;
    if (const model::Session* timeline = run_.timeline())
      analyze::settle_kinds(run_.ranges, *timeline, notes);
    for (const std::string& text : notes)
      run_.note("ranges: " + text);
  }
  [[nodiscard]] collect::Request request() const {
    collect::Request request =
        base_request(run_.config, run_.folder.empty() ? "/run" : run_.folder);
    request.ranges = run_.ranges;
    request.kernels = run_.args.analysis.kernels;
    return request;
  }
  [[nodiscard]] collect::ncu::Options options_for(Step step,
                                                  const std::string& report,
                                                  const std::vector<std::string>& kernels,
                                                  bool trial) const {
    collect::ncu::Options options = ncu_options(run_.config);
    options.replay_mode = collect::step_name(step);
    options.report = report;
    options.kernels = kernels;
    if (const std::string regex = listed_regex(); !regex.empty()) {
      options.values["kernel_name"] = {regex};
      options.values["kernel_name_base"] = {"demangled"};
    }
    if (!metrics_.empty())
      options.values["metrics"] = metrics_;
    if (process_scope_)
      options.values["push_pop_scope"] = {"process"};
    if (collect::is_ladder(mode_)) {  // what only some rungs know must not stop the others
      for (const auto& row : collect::option_table("ncu"))
        if (row.modes != collect::kEveryMode)
          options.asked.erase(std::string(row.key));
    }
    if (trial) {
      options.values["launch_count"] = {"1"};
      options.values["kill"] = {"true"};
    }
    return options;
  }
  /// `--ncu-top-kernels FILE`; nothing where it is a number.
  [[nodiscard]] std::optional<fs::path> kernel_list_file() const {
    const auto top = run_.config.text("pipeline.ncu.top_n");
    if (!top || top->empty() || base::to_uint(*top))
      return std::nullopt;
    return fs::path(*top);
  }
  [[nodiscard]] std::vector<std::string> listed_names() const {
    std::vector<std::string> names;
    for (const ListedKernel& kernel : listed_) {
      std::string name(model::short_kernel_name(kernel.name));
      if (std::ranges::find(names, name) == names.end())
        names.push_back(std::move(name));
    }
    return names;
  }
  /// One regex of all kernels of the list, where one of them is meant by a regex; else "".
  [[nodiscard]] std::string listed_regex() const {
    std::vector<std::string> parts;
    bool has_regex = false;
    for (const ListedKernel& kernel : listed_) {
      has_regex = has_regex || !kernel.regex.empty();
      if (kernel.regex.empty())
        parts.push_back("^" + model::escape_regex(kernel.name) + "$");
      else
        parts.push_back(kernel.regex);
    }
    if (!has_regex)
      return {};
    return "regex:" + base::join(parts, "|");
  }
  base::Result<void> choose_listed() {
    std::string described;
    constexpr std::size_t kMostDescribed = 5;
    const std::size_t count = std::min(kMostDescribed, listed_.size());
    for (const ListedKernel& kernel : std::span(listed_).first(count)) {
      if (!described.empty())
        described += "; ";
      described += listed_title(kernel);
      if (!kernel.description.empty())
        described += " (" + kernel.description + ")";
    }
    if (listed_.size() > kMostDescribed)
      described += "; ...";
    run_.note("ncu: " + base::counted(listed_.size(), "kernel") + " of " +
              base::printable(kernel_list_file()->string()) + ": " + base::printable(described));
    TRY(keep_list(listed_));
    if (listed_regex().empty())
      kernel_groups_ = collect::ncu::split_kernels(listed_names());
    return {};
  }
  /// In the run, as a file for the next one.
  base::Result<void> keep_list(std::span<const ListedKernel> kernels) const {
    std::error_code error;
    fs::create_directories(run_.folder / "ncu", error);
    return base::write_file(run_.folder / "ncu" / "kernels.yaml", kernel_list_text(kernels));
  }
  /// Names of the kernels that matter, from the timeline; none where the user named kernels or
  /// ranges are measured whole.
  base::Result<void> choose_kernels() {
    kernel_groups_ = {{}};
    if (!listed_.empty())
      return choose_listed();
    const auto options = ncu_options(run_.config);
    const auto top = base::to_uint(run_.config.text("pipeline.ncu.top_n").value_or("0"));
    if (top.value_or(0) == 0 || !run_.args.analysis.kernels.include.empty() ||
        options.values.count("kernel_id"))
      return {};
    const model::Session* timeline = run_.timeline();
    if (!timeline || timeline->kernels.empty()) {
      if (run_.asked.nsys || run_.asked.native)
        run_.note("ncu: no earlier stage saw kernels, so none are chosen by time");
      return {};
    }
    analyze::Options within = run_.args.analysis;
    within.ranges =
        run_.config.flag("pipeline.ncu.gating_nvtx", true) ? run_.ranges : model::RangeSelection{};
    auto chosen = analyze::top_kernels(*timeline, within, static_cast<std::size_t>(*top));
    if (!chosen) {
      run_.note("ncu: no kernels were chosen by time: " + chosen.error().what);
      return {};
    }
    std::vector<std::string> names;
    std::vector<std::string> listed;
    for (const analyze::ChosenKernel& kernel : *chosen) {
      names.push_back(kernel.name);
      if (listed.size() < 5)
        listed.push_back(kernel.name + " (" + base::format_ns(kernel.total_ns) + ")");
    }
    if (names.empty())
      return {};
    if (listed.size() < names.size())
      listed.emplace_back("...");
    TRY(keep_list(listed_of(*chosen)));
    kernel_groups_ = collect::ncu::split_kernels(names);
    std::string in_ranges;
    if (!run_.ranges.include.empty())
      in_ranges = " in the ranges";
    std::string note = "ncu: the " + base::counted(names.size(), "kernel");
    note += " with the most GPU time" + in_ranges;
    note += ": " + base::join(listed, ", ");
    run_.note(note);
    if (kernel_groups_.size() > 1)
      base::warn("ncu: their names are too long for one command line; ncu runs " +
                 std::to_string(kernel_groups_.size()) + " times");
    return {};
  }
  void leave_out_unknown_metrics(const collect::Abilities& can, std::vector<std::string>& notes) {
    const std::string unknown =
        "' is unknown to ncu " + collect::to_string(can.version) + " on this GPU and left out";
    std::erase_if(metrics_, [&](const std::string& metric) {
      const bool is_regex = !collect::ncu::metric_regex(metric).empty();
      if (is_regex || collect::ncu::knows_metric(can, metric))
        return false;
      notes.push_back("metric '" + metric + unknown);
      return true;
    });
  }
  [[nodiscard]] std::string tool() const { return "ncu " + collect::to_string(can_->version); }

  /// ncu cannot run as asked.
  Outcome refused(Step step, const base::Error& error) {
    Outcome outcome;
    outcome.message = "ncu: " + error.what;
    outcome.code = error.code;
    outcome.complaints.push_back({"ncu.plan", error.where, error.what, error.hint, false, false});
    runs::Stage stage =
        StageRunner::stage_of("ncu", tool(), std::string(collect::step_name(step)), outcome, {});
    stage.outcome = "refused";
    run_.runner->record(std::move(stage));
    return outcome;
  }

  /// ncu left a report that cannot be read, and reported nothing itself.
  static void set_unreadable(const base::Error& error, Outcome& outcome) {
    outcome.result = collect::Result::kFailed;
    outcome.message = "ncu: its report cannot be read: " + error.what;
    outcome.code = base::Code::kNothingCaptured;
    outcome.complaints.push_back(
        {"ncu.report", error.where, outcome.message.substr(5), error.hint, false, true});
  }

  /// One run of ncu, judged by its report.
  Outcome one_run(Step step,
                  const std::string& report,
                  const std::vector<std::string>& kernels,
                  bool trial) {
    const auto options = options_for(step, report, kernels, trial);
    const collect::Request request = this->request();
    auto plan = collect::ncu::plan(*can_, options, request);
    if (!plan)
      return refused(step, plan.error());
    for (const std::string& text : plan->notes)
      run_.note("ncu: " + text);
    const fs::path base = collect::ncu::report_base(request, options);
    auto ran = launch(*plan, report, base);
    if (!ran) {
      Outcome failed;
      failed.message = "ncu: " + ran.error().what;
      failed.code = ran.error().code;
      failed.fatal = true;
      return failed;
    }
    collect::Observed seen = observed(*ran, run_.runner->interrupted());
    const fs::path file = report_file(base);
    std::optional<base::Result<model::Session>> read;
    if (!file.empty())
      read = read::read_any(file);
    seen.report = read && read->has_value();
    if (seen.report)
      seen.results = (*read)->measurements.size();
    Outcome outcome = collect::judge_ncu(seen);
    if (read && !read->has_value() && outcome.complaints.empty())
      set_unreadable(read->error(), outcome);
    std::string step_name(collect::step_name(step));
    if (trial)
      step_name += " (one instance)";
    runs::Stage stage = StageRunner::stage_of("ncu", tool(), step_name, outcome, *ran);
    stage.results = seen.results;
    if (!file.empty())
      stage.report = file.lexically_relative(run_.folder).string();
    run_.runner->record(std::move(stage));
    if (outcome.result == collect::Result::kOk && !trial) {
      run_.cut_short("ncu", ran->ended);
      run_.by_ncu.path = run_.by_ncu.session ? fs::path() : file;
      read::join_to(run_.by_ncu.session, std::move(**read));
      export_pages(file);
    }
    return outcome;
  }
  /// Runs ncu, which writes a report of that base name. Where no other stage has run the program,
  /// this run is the one that the record of the run is of.
  base::Result<ToolRun> launch(const collect::Plan& plan,
                               const std::string& label,
                               const fs::path& base) {
    const bool is_only_stage = !run_.asked.native && !run_.asked.nsys;
    if (is_only_stage && !run_.last) {
      const auto written = run_.record->about_to_run(plan);
      if (!written)
        base::warn(written.error().what);
    }
    std::error_code ignored;
    for (const char* extension : {".ncu-rep", ".ncu-repz"})
      fs::remove(base.string() + extension, ignored);  // an old report proves nothing
    auto ran = run_.runner->run(plan, label, base.string() + ".log");
    if (!ran)
      return ran;
    run_.last = ran->ended;
    if (is_only_stage) {
      const auto written = run_.record->ended(ran->ended);
      if (!written)
        base::warn(written.error().what);
    }
    return ran;
  }
  Outcome attempts(Step step,
                   const std::string& report,
                   const std::vector<std::string>& kernels,
                   bool trial) {
    const int retries = static_cast<int>(run_.config.integer("run.retries").value_or(1));
    for (int attempt = 1;; ++attempt) {
      Outcome outcome = one_run(step, report, kernels, trial);
      if (run_.runner->interrupted() || !collect::try_again(outcome, attempt, retries))
        return outcome;
      base::warn(outcome.why() + ": trying again (" + std::to_string(attempt) + " of " +
                 std::to_string(retries) + ")");
    }
  }
  /// ncu counts a push/pop range for the thread that opened it. Kernels of another thread
  /// (PyTorch's backward pass) are in no range to it: where most of them are so, the scope is the
  /// process; where some are, there is a note.
  void choose_scope(const collect::Evidence& evidence) {
    const std::uint64_t of_other_threads = evidence.other_thread_kernels;
    const std::uint64_t kernels = evidence.kernels.value_or(0);
    if (of_other_threads == 0 || run_.config.get("pipeline.ncu.ncu_cli.push_pop_scope"))
      return;
    const std::string finding = std::to_string(of_other_threads) + " of " +
                                base::counted(kernels, "kernel") +
                                " in the ranges launched by threads that did not open them";
    if (!can_->has("--nvtx-push-pop-scope"))
      run_.note("ncu: " + finding + "; ncu " + collect::to_string(can_->version) +
                " cannot see those (2025.1 and newer can, with push_pop_scope=process)");
    else if (2 * of_other_threads <= kernels)
      run_.note("ncu: " + finding + "; ncu sees those only with push_pop_scope=process");
    else {
      run_.note("ncu: " + finding + ", so push_pop_scope=process is passed");
      process_scope_ = true;
    }
  }
  /// The native stage ran with its counters; what it has is in its own session. True when every
  /// range has some: then nothing is left to ncu. Ranges that have them are not measured again.
  base::Result<bool> native_rung(const std::string& reason) {
    std::vector<model::RangeTerm> missing = run_.ranges.include;
    std::size_t results = 0;
    if (run_.by_native.session) {
      missing = analyze::unmeasured(*run_.by_native.session, run_.ranges);
      results = run_.by_native.session->measurements.size();
    }
    const bool some = missing.size() < run_.ranges.include.size();
    runs::Stage stage{.stage = "ncu",
                      .tool = base::tool_version(),
                      .step = std::string(collect::step_name(Step::kNative)),
                      .outcome = some ? "ok" : "empty",
                      .message = base::counted(results, "result") + " by native counters",
                      .results = results,
                      .report = "native"};
    if (!missing.empty()) {
      stage.message += "; none of " + base::join(model::written_of(missing), ", ");
      stage.why = "native.incomplete";
      stage.evidence = reason_of_missing_counters();
    }
    std::string note = stage.message;
    if (missing.empty())
      note = reason;
    run_.note("replay mode native: " + note);
    if (some) {
      run_.captured.emplace_back("ncu");
      run_.ranges.include = missing;
    }
    run_.runner->record(std::move(stage));
    return missing.empty();
  }
  /// Of the native stage; "" for none.
  [[nodiscard]] std::string reason_of_missing_counters() const {
    if (!run_.by_native.session)
      return {};
    for (const model::Loss& loss : run_.by_native.session->losses)
      if (loss.kind.area() == model::LossArea::kCounters && loss.severity != model::Severity::kInfo)
        return loss.detail;
    return {};
  }
  /// ncu's own files of a report that are wanted.
  [[nodiscard]] std::vector<collect::ncu::PageFile> wanted_pages() const {
    std::vector<collect::ncu::PageFile> pages;
    if (run_.config.flag("pipeline.ncu.ncu_cli.export.csv", true))
      pages = {collect::ncu::kRawCsv, collect::ncu::kDetailsCsv};
    if (run_.config.flag("pipeline.ncu.ncu_cli.export.sections", true))
      pages.push_back(collect::ncu::kSectionsText);
    return pages;
  }
  int print_pages(const fs::path& report) const {
    const auto pages = wanted_pages();
    if (pages.empty())
      return 0;
    int code = 0;
    std::printf("if [ -e %s ]; then\n", base::shell_quote(report.string()).c_str());
    for (const collect::ncu::PageFile& page : pages)
      code |= print_plan("ncu, its " + std::string(page.name),
                         collect::ncu::page_plan(*can_, report, page));
    std::puts("fi");
    return code;
  }
  /// Has ncu write its pages next to the report. One that fails is a warning: the report itself was
  /// read.
  void export_pages(const fs::path& report) {
    for (const collect::ncu::PageFile& page : wanted_pages()) {
      if (run_.runner->interrupted())
        return;
      if (auto written = export_page(report, page); !written)
        base::warn(std::string(page.name) + " of ncu's report is missing: " + written.error().what);
    }
  }
  base::Result<void> export_page(const fs::path& report, const collect::ncu::PageFile& page) {
    const fs::path file = collect::ncu::page_path(report, page);
    const auto plan = collect::ncu::page_plan(*can_, report, page);
    const auto ran = TRY(run_.runner->run(plan, "pages", {}, true));
    std::error_code error;
    const auto bytes = fs::file_size(file, error);
    const bool printed = !error && bytes > 0;
    if (ran.ended.exit_code == 0 && printed)
      return {};
    std::string output = ran.text;
    if (const auto complaint = base::read_head(file, 1024))
      output += *complaint;
    fs::remove(file, error);  // what ncu complains of is no page
    output = base::printable(base::trim(output).substr(0, 300));
    std::string problem = "ncu --import left none (" + base::describe(ran.ended) + ")";
    if (!output.empty())
      problem += ": " + output;
    return base::fail(base::Code::kBadData, std::move(problem));
  }

  std::string mode_;
  std::optional<collect::Abilities> can_;
  std::vector<std::string> metrics_;  ///< groups replaced by what they are made of
  std::vector<std::vector<std::string>> kernel_groups_;
  std::vector<ListedKernel> listed_;  ///< of --ncu-top-kernels FILE
  bool process_scope_ = false;  ///< push/pop ranges are to count for every thread of the process
};

}  // namespace

std::unique_ptr<Stage> ncu_stage(Run& run) {
  return std::make_unique<Ncu>(run);
}

std::vector<std::string> metrics_of(const config::Config& config) {
  std::vector<std::string> metrics = config.list("pipeline.native.metrics");
  for (std::string& metric : config.list("pipeline.ncu.ncu_cli.metrics"))
    metrics.push_back(std::move(metric));
  return metrics;
}

std::string replay_mode(const config::Config& config) {
  return config.text("pipeline.ncu.ncu_cli.replay_mode").value_or("auto");
}

collect::Wish wish_of(const Run& run) {
  collect::Wish wish;
  wish.mode = replay_mode(run.config);
  wish.every = base_request(run.config, run.folder).every;
  wish.ranges = !run.args.analysis.ranges.include.empty();
  const auto options = ncu_options(run.config);
  const auto has_option = [&](const char* key) { return options.values.count(key) > 0; };
  // A preset's own kernel_name narrows kernel replay, and does not keep ranges from being measured.
  const bool named = run.config.set_by_user("kernels.include") ||
                     run.config.set_by_user("pipeline.ncu.ncu_cli.kernel_name");
  wish.kernel_filter =
      (named && !run.args.analysis.kernels.include.empty()) || has_option("kernel_id");
  wish.metrics = !metrics_of(run.config).empty();
  wish.sections = has_option("sections") || has_option("set") || !wish.metrics;
  wish.native_counters = run.counters.has_value();
  wish.no_native_counters = run.no_counters;
  return wish;
}

}  // namespace rangescope::profile
