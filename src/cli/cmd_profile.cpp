#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <cstdio>
#include <optional>

#include "analyze/meant.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/bind_config.hpp"
#include "cli/present.hpp"
#include "cli/progress.hpp"
#include "cli/subcommands.hpp"
#include "collect/launch.hpp"
#include "config/schema.hpp"
#include "profile/counters.hpp"
#include "profile/diagnosis.hpp"
#include "profile/engine.hpp"
#include "profile/record.hpp"
#include "profile/settings.hpp"
#include "read/registry.hpp"
#include "report/findings.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"

namespace rangescope::cli {
namespace {

using namespace profile;

// The program's end is ours: its code, or its signal.
int end_like(const base::Ended& ended) {
  if (ended.exit_code) return *ended.exit_code;
  base::die_by(*ended.signal);
}

class Profile final : public Subcommand {
 public:
  [[nodiscard]] std::string_view name() const override { return "profile"; }
  [[nodiscard]] std::string_view summary() const override {
    return "Run a program and say what each of its NVTX ranges costs";
  }
  [[nodiscard]] bool takes_program() const override { return true; }
  void set_program(std::vector<std::string> argv) override { program_ = std::move(argv); }
  [[nodiscard]] std::string_view details() const override {
    return "The program runs as it is: same output, same exit code, same fatal signal. What it did is kept in a\n"
           "new folder below ./rangescope-runs (--runs), with report.json in it.\n\n"
           "The table is printed when the program has ended: to standard output where that is a terminal, else to\n"
           "standard error, so that what the program prints can be piped. -o - prints it to standard output in\n"
           "any case, -o FILE writes it there, -q leaves it out.\n\n"
           "  rangescope profile ./app --size 10\n"
           "  rangescope profile --include 'decode*' -f md -o decode.md -- python serve.py\n\n"
           "Nsight Systems and Nsight Compute run around the program too when they are asked for; every option is a\n"
           "key of the configuration (rangescope config show) and may be given as key=value:\n\n"
           "  rangescope profile --nsys ncu=quick --nvtx-include decode -- python serve.py";
  }

  [[nodiscard]] std::vector<std::string_view> main_options() const override {
    return {"--include", "--exclude", "--metrics", "--per",     "--rounds", "--format", "--to",     "--sort",
            "--depth",   "--runs",    "--repeat",  "--timeout", "--nsys",   "--ncu",    "--dry-run"};
  }

  void options(const Arguments& app) override {
    app.add_flag("--dry-run", dry_run_, "Print what would run, and run nothing").group("Run");
    app.add_option("--repeat", repeat_, "Run the program so many times, for compare and gate (1)")
        .type_name("N")
        .between(1, 1000)
        .group("Run");
    app.add_flag("--strict", strict_, "Exit with 83 where data was lost").group("Run");
    bind_native(app, native_);
    bind_report(app, choice_);
    bind_analyze(app, analysis_);
    bind_counters(app, counters_);
    configuration_.options(app);
  }

  [[nodiscard]] int run() override {
    auto config = configuration_.compose(program_);
    if (!config) return say(config.error());
    config_ = std::move(*config);
    program_ = config_.list("workload.command");
    if (program_.empty())
      return say({base::Code::kUsage,
                  "there is no program to run",
                  {},
                  "Put it behind --: rangescope profile -- python train.py"});
    if (auto exporter = report::find_exporter(choice_.format); !exporter) return say(exporter.error());
    if (auto writable = check_destination(choice_, beside_a_program()); !writable) return say(writable.error());
    analysis_.fold_names.reset();      // the run's configuration has it
    auto ranges = ranges_of(config_);  // the command line's are in the configuration too
    if (!ranges) return say(ranges.error());
    auto kernels = kernels_of(config_);
    if (!kernels) return say(kernels.error());
    analysis_.ranges = std::move(*ranges);
    analysis_.kernels = std::move(*kernels);
    if (auto checked = check_analysis(analysis_); !checked) return say(checked.error());
    root_ = config_.text("run.root").value_or(std::string(runs::kDefaultRoot));
    if (repeat_ > 1 && pipeline_wanted(config_))
      return say({base::Code::kUsage, "only the native profile can be repeated", "--repeat",
                  "Leave nsys, ncu, run.dir, run.keep and workload.warmup out, or run the command several times"});
    warn_of_idle_keys(config_);
    if (pipeline_wanted(config_))
      return run_pipeline(config_, {.analysis = analysis_,
                                    .native = native_,
                                    .counters = counters_,
                                    .arguments = arguments(),
                                    .talk = talk(),
                                    .dry_run = dry_run_,
                                    .strict = strict_});
    auto library = collect::native::find_library();
    if (!library) return say(library.error());
    native_.library = *library;
    // Without ncu --metrics means counters of our own, per range and without replay.
    auto metrics = metric_names(config_.list("pipeline.ncu.ncu_cli.metrics"));
    if (!metrics) return say(metrics.error());
    metrics_ = std::move(*metrics);
    counters_.ranges = analysis_.ranges;
    counters_.by_payload = analysis_.by_payload;
    if (!metrics_.empty()) {
      auto prepared = prepare_counters(metrics_, counters_);
      if (!prepared) return say(prepared.error());
      prepared_ = std::move(*prepared);
    }

    if (dry_run_) return print_plan();
    const auto ready = base::find_on_path(program_.front());  // a wrong name makes no run directory
    if (!ready && program_.front().find('/') == std::string::npos) {
      return say({base::Code::kNoInput,
                  "there is no program '" + base::printable(program_.front()) + "' on PATH",
                  {},
                  "Write ./" + program_.front() + " for a file of this folder"});
    }
    auto record = RunRecord::begin(root_, program_, arguments());
    if (!record) return say(record.error());
    const Concluded done = repeat_ > 1 ? run_repeats(*record) : run_in(*record);
    if (done.ended)
      base::info("run kept in " + shown_path(record->path()) + "; see it again: rangescope report " +
                 base::shell_quote(report_argument(record->path())));
    return done.ended && !done.ended->ok() ? end_like(*done.ended) : done.code;
  }

 private:
  [[nodiscard]] Talk talk() const {
    Talk talk;
    talk.quiet = is_quiet();
    if (!is_quiet() || !choice_.to.empty())
      talk.report = [this](const Analyzed& analyzed) { return write_report(analyzed, choice_, beside_a_program()); };
    talk.report_tells = choice_.to.empty();
    talk.finding = [this](const model::Finding& finding) {
      if (!is_quiet())
        std::fputs(report::finding_text(finding, style_on(STDERR_FILENO, choice_).color).c_str(), stderr);
    };
    return talk;
  }

  /// How a run ended: rangescope's exit code, and the program's end where it ran.
  struct Concluded {
    int code = 0;
    std::string outcome = "ok", message;
    std::vector<model::Loss> losses;
    std::optional<base::Ended> ended;
  };

  [[nodiscard]] base::Result<collect::Plan> plan_for(const std::filesystem::path& run) const {
    collect::Request request = base_request(config_, run);
    request.ranges = analysis_.ranges;
    request.kernels = analysis_.kernels;
    return collect::native::make_collector(native_)->plan(request);
  }

  [[nodiscard]] int print_plan() const {
    const auto plan = plan_for(runs::next_run_dir(root_));
    if (!plan) return say(plan.error());
    for (const std::string& note : plan->notes) base::info(note);
    std::puts(collect::shell_command(*plan).c_str());
    return 0;
  }

  // N runs below one record, each a whole run directory of its own (runs/layout.hpp). Stops at the first that fails.
  [[nodiscard]] Concluded run_repeats(RunRecord& series) {
    Concluded all;
    std::vector<std::filesystem::path> done;
    std::int64_t start_unix_ns = 0;
    for (int i = 1; i <= repeat_; ++i) {
      auto record = RunRecord::begin_in(series.path() / "repeats" / fmt::format("{:03}", i), program_, arguments());
      if (!record) return finish(series, record.error());
      if (i == 1) {
        const auto plan = plan_for(record->path());
        if (!plan) return finish(series, plan.error());
        if (auto written = write_config(series.path(), config_); !written) return finish(series, written.error());
        if (auto written = series.about_to_run(*plan); !written) return finish(series, written.error());
      }
      base::detail(fmt::format("repetition {} of {}", i, repeat_));
      Concluded one = run_in(*record);
      if (i == 1 && one.ended) start_unix_ns = one.ended->start_unix_ns;
      all.code = one.code;
      all.outcome = one.outcome;
      all.message = one.message;
      if (!one.message.empty()) all.message = fmt::format("repetition {} of {}: {}", i, repeat_, one.message);
      all.ended = one.ended;
      all.losses.insert(all.losses.end(), one.losses.begin(), one.losses.end());
      done.push_back(record->path());
      if (one.code != 0 || !one.ended || one.ended->forwarded) break;
    }
    if (all.ended) {
      base::Ended whole = *all.ended;
      whole.wall_ns += whole.start_unix_ns - start_unix_ns;
      whole.start_unix_ns = start_unix_ns;
      if (auto written = series.ended(whole); !written) return finish(series, written.error());
    }
    if (all.code == 0 && !(choice_.to.empty() && is_quiet())) {
      const std::filesystem::path shown = runs::median_repeat(done);
      const auto analyzed = analyze_input(shown / "native", shown, analysis_);
      const base::Result<void> written =
          analyzed ? write_shown(*analyzed) : base::Result<void>(tl::make_unexpected(analyzed.error()));
      if (!written) return finish(series, written.error());
      base::info(fmt::format("this is repetition {}, of median duration, of {}", shown.filename().string(), repeat_));
    }
    if (auto finished = series.finish(all.code, all.outcome, all.message, all.losses); !finished)
      all.code = say(finished.error());
    return all;
  }

  /// Says the error and ends the record with it.
  [[nodiscard]] static Concluded finish(RunRecord& record, const base::Error& error) {
    Concluded done{say(error), "error", base::to_string(error), {}, {}};
    if (auto finished = record.finish(done.code, done.outcome, done.message, {}); !finished)
      (void)say(finished.error());
    return done;
  }

  // Everything after the directory is made: whatever happens, the record is finished.
  [[nodiscard]] Concluded run_in(RunRecord& record) {
    const auto give_up = [&](const base::Error& error) { return finish(record, error); };
    if (auto written = write_config(record.path(), config_); !written) return give_up(written.error());
    if (prepared_) {
      if (auto written = write_counters(*prepared_, std::filesystem::absolute(record.path()), false, native_); !written)
        return give_up(written.error());
      base::info(cost_sentence(prepared_->plan));
    }
    auto plan = plan_for(record.path());
    if (!plan) return give_up(plan.error());
    for (const std::string& note : plan->notes) base::info(note);
    if (auto written = record.about_to_run(*plan); !written) return give_up(written.error());
    base::detail("running " + collect::shell_command(*plan));

    collect::LaunchOptions launch_options;
    Progress progress(plan->makes.empty() ? record.path() : plan->makes.front());
    if (Progress::wanted() && !is_quiet())
      launch_options.tick = [&](std::chrono::nanoseconds elapsed) { progress.show(elapsed); };
    const auto ended = collect::launch(*plan, launch_options);
    progress.clear();
    if (!ended) return give_up(ended.error());
    if (auto written = record.ended(*ended); !written) return give_up(written.error());
    if (prepared_ && counters_.passes == "relaunch" && ended->ok()) {
      if (auto again = relaunch(record.path(), *plan); !again) return give_up(again.error());
    }
    return conclude(record, *ended);
  }

  // The program again, until every range has its rounds or a run brings nothing new. What it prints goes into a file.
  [[nodiscard]] base::Result<void> relaunch(const std::filesystem::path& run_dir, collect::Plan plan) {
    const auto run = std::filesystem::absolute(run_dir);
    constexpr int kMost = 1000;
    unsigned long long done = 0;
    for (int number = 2; number < kMost; ++number) {
      const auto progress = relaunch_progress(run);
      if (!progress) {
        base::warn("the program was not run again: the run before left no passes to go on with");
        return {};
      }
      if (progress->lacking == 0) break;
      if (number > 2 && progress->done == done) {
        base::warn("relaunching stopped after " + std::to_string(number - 1) +
                   " runs: the last one added no pass; its ranges launched other kernels, or did not come");
        break;
      }
      done = progress->done;
      base::info("run " + std::to_string(number) + ": " +
                 base::counted(progress->lacking, "range lacks", "ranges lack") + " passes");
      if (auto written = write_counters(*prepared_, run, true, native_); !written) return written;
      const auto folder = run / "native" / ("relaunch-" + std::to_string(number));
      for (const auto& [name, value] : native_.extra_env) plan.set_env[name] = value;
      plan.set_env["RANGESCOPE_DIR"] = folder.string();
      plan.folders = plan.makes = {folder};
      collect::LaunchOptions quiet;
      quiet.out = quiet.err = {.pass = false, .keep = false, .file = run / "relaunch.log"};
      const auto ended = collect::launch(plan, quiet);
      if (!ended) return tl::make_unexpected(ended.error());
      if (!ended->ok()) {
        base::warn("relaunching stopped: run " + std::to_string(number) + " ended by " + base::describe(*ended));
        break;
      }
    }
    forget_progress(run);
    return {};
  }

  static void say_what_is_missing(const std::vector<model::Loss>& losses) {
    for (const model::Loss& loss : losses) {
      if (loss.kind == "counters_incomplete") base::info(base::printable(loss.detail));
    }
  }

  // Reads, reports, and decides the exit code: the program's own wherever it is not 0.
  [[nodiscard]] Concluded conclude(RunRecord& record, const base::Ended& ended) {
    Concluded done;
    done.ended = ended;
    auto& [code, outcome, message, losses, ignored] = done;
    std::vector<model::Finding> findings;
    const auto failed = [&](const base::Error& error, const char* what) {
      code = say(error);
      outcome = what;
      message = base::to_string(error);
    };
    if (ended.timed_out) base::warn("the program was ended after --timeout");
    if (ended.signal) base::warn("the program was ended by " + base::describe(ended));

    const std::filesystem::path captures = record.path() / "native";
    auto analyzed = analyze_input(captures, record.path(), analysis_);
    if (!analyzed) {
      base::Error error = analyzed.error();
      const bool nothing = error.code == base::Code::kNothingCaptured;
      if (nothing) findings = explain_nothing(record, ended);
      const std::string whole = base::to_string(error);
      if (const std::string_view head = "nothing was captured";
          !findings.empty() && !is_quiet() && error.what.starts_with(head)) {
        error.what = head;  // the findings above say why
        error.hint.clear();
      }
      failed(error, nothing ? "nothing_captured" : "error");
      message = whole;
    } else {
      losses = analyzed->report.losses;
      if (prepared_ && counters_.passes == "auto") say_what_is_missing(losses);
      const bool uncounted = !metrics_.empty() && analyzed->session.measurements.empty();
      if (uncounted || !analyze::unmatched(analyzed->report, analysis_.ranges).empty()) {
        const auto recorded = read::read_any(captures);  // with the names that the collector saw
        findings = diagnose_capture(recorded ? &*recorded : nullptr, program_, analysis_.ranges, ended, {});
        analyzed->report.findings = findings;
      }
      if (auto written = write_outputs(*analyzed, record.path()); !written) failed(written.error(), "error");
      if (code == 0 && strict_ && has_loss(analyzed->report))
        failed({base::Code::kDataLoss, "data was lost", record.path().string(),
                "Without --strict losses are reported only"},
               "data_loss");
    }
    const bool program_failed = !ended.ok();
    if (program_failed && outcome == "ok") {
      outcome = ended.timed_out ? "timed_out" : "program_failed";
      message = "the program ended by " + base::describe(ended);
    }
    if (program_failed) code = ended.exit_code.value_or(128 + ended.signal.value_or(0));
    if (auto finished = record.finish(code, outcome, message, losses, findings); !finished) {
      const int why = say(finished.error());
      if (!program_failed) code = why;
    }
    return done;
  }

  // Why there is nothing: said to the person, and kept as a report without regions.
  [[nodiscard]] std::vector<model::Finding> explain_nothing(const RunRecord& record, const base::Ended& ended) const {
    const auto session = read::read_any(record.path() / "native");
    Analyzed empty;
    empty.report.findings = diagnose_capture(session ? &*session : nullptr, program_, analysis_.ranges, ended, {});
    if (!is_quiet())
      for (const model::Finding& finding : empty.report.findings)
        std::fputs(report::finding_text(finding, style_on(STDERR_FILENO, choice_).color).c_str(), stderr);
    if (session) empty.report.losses = session->losses;
    empty.report.run = runs::run_info(record.path());
    ReportChoice kept;
    kept.format = "json";
    kept.to = (record.path() / "report.json").string();
    if (auto written = write_report(empty, kept, -1); !written) base::warn(written.error().what);
    return empty.report.findings;
  }

  [[nodiscard]] base::Result<void> write_outputs(const Analyzed& analyzed, const std::filesystem::path& run) const {
    ReportChoice kept;
    kept.format = "json";
    kept.to = (run / "report.json").string();
    if (auto written = write_report(analyzed, kept, -1); !written) return written;
    return repeat_ > 1 ? base::Result<void>{} : write_shown(analyzed);
  }

  [[nodiscard]] base::Result<void> write_shown(const Analyzed& analyzed) const {
    if (choice_.to.empty() && is_quiet()) return {};
    return write_report(analyzed, choice_, beside_a_program());
  }

  [[nodiscard]] static std::string shown_path(const std::filesystem::path& run) {
    std::error_code error;
    const auto relative = std::filesystem::relative(run, error);
    return error || relative.empty() || relative.string().starts_with("..") ? run.string() : relative.string();
  }
  // `latest` where the run lies in the default folder, else its path.
  [[nodiscard]] std::string report_argument(const std::filesystem::path& run) const {
    return root_ == runs::kDefaultRoot ? "latest" : shown_path(run);
  }

  std::vector<std::string> program_;
  std::string root_{runs::kDefaultRoot};
  ConfigArguments configuration_;
  config::Config config_;
  bool dry_run_ = false, strict_ = false;
  int repeat_ = 1;
  collect::native::Options native_;
  collect::native::CounterRequest counters_;
  std::vector<std::string> metrics_;
  std::optional<PreparedCounters> prepared_;
  ReportChoice choice_;
  analyze::Options analysis_;
};

}  // namespace

std::unique_ptr<Subcommand> make_profile() {
  return std::make_unique<Profile>();
}

}  // namespace rangescope::cli
