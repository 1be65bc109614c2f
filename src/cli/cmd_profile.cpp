#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/redact.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/bind_config.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "cli/watch/watch.hpp"
#include "profile/analyzed.hpp"
#include "profile/engine.hpp"
#include "profile/settings.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

// The program's end is ours: its code, or its signal.
int end_like(const base::Ended& ended) {
  if (ended.exit_code)
    return *ended.exit_code;
  base::die_by(*ended.signal);
}

/// A script of Python that is no program by itself is run by the Python that asked for it
/// (`python -m rangescope`), else by python3.
std::vector<std::string> with_interpreter(std::vector<std::string> program) {
  std::error_code ignored;
  if (program.empty() || !program.front().ends_with(".py") || base::find_on_path(program.front()) ||
      !std::filesystem::is_regular_file(program.front(), ignored))
    return program;
  std::string interpreter = "python3";
  if (const char* python = std::getenv("RANGESCOPE_PYTHON"))
    interpreter = python;
  program.insert(program.begin(), std::move(interpreter));
  return program;
}

/// N of `--repeat N`.
base::Result<int> repetitions(const std::string& text) {
  constexpr std::int64_t kMost = 1000;
  if (text == "auto")
    return profile::kAutoRepeat;
  const auto number = base::to_int(text);
  if (!number || *number < 1 || *number > kMost)
    return base::fail(base::Code::kUsage,
                      "'" + base::printable(text) + "' is not a number of runs",
                      "--repeat",
                      "Write 1 to 1000, or auto");
  return static_cast<int>(*number);
}

class Profile final : public Subcommand {
 public:
  Profile() : Subcommand("profile", true) {}

  void options(const Arguments& app) override {
    const Arguments run = app.under("Run"), windows = app.under("Windows");
    run.add_flag("--dry-run", dry_run_);
    run.add_option("--repeat", repeat_);
    run.add_flag("--strict", strict_);
    run.add_flag("--watch", watch_.is_on);
    run.add_duration("--watch-every", watch_.every, 100'000'000, kLongest);
    run.add_option("--openmetrics", watch_.openmetrics);
    windows.add_duration("--after", windows_.after, 0, kLongest);
    windows.add_duration("--for", windows_.length, 1'000'000, kLongest);
    windows.add_option("--window", window_);
    windows.add_duration("--keep-last", windows_.keep_last, 1'000'000'000, kLongest);
    windows.add_option("--when", when_);
    windows.add_flag("--stopped", windows_.stopped);
    bind_native(app, native_);
    bind_sampling(app, sampling_);
    bind_report(app, choice_);
    bind_regions(app, analysis_);
    bind_counters(app, counters_);
    configuration_.options(app);
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto composed = TRY(configuration_.compose(with_interpreter(program_)));
    const config::Config& config = composed;
    TRY(configuration_.apply(config));
    base::set_record_arguments(config.flag("run.record_args"));
    program_ = config.list("workload.command");
    if (program_.empty())
      return base::fail(base::Code::kUsage,
                        "there is no program to run",
                        {},
                        "Put it after --: rangescope profile -- python3 train.py");
    TRY(report::find_exporter(choice_.format));
    TRY(check_values(choice_.style));
    const int repeat = TRY(repetitions(repeat_));
    if (watch_.is_asked_for() && repeat != 1)
      return base::fail(base::Code::kUsage,
                        "a program that is repeated cannot be watched",
                        "--repeat, " + watching_option(),
                        "Leave one of them out: the report of all runs comes at the end");
    if (watch_.is_asked_for() && !dry_run_) {
      analysis_.ranges = TRY(profile::ranges_of(config));
      analysis_.kernels = TRY(profile::kernels_of(config));
      TRY(check_analysis(analysis_));
      std::string root = config.text("run.root").value_or(std::string(runs::kDefaultRoot));
      return Watch(std::move(root), watch_, choice_, analysis_).run(arguments());
    }
    to_ = dry_run_ ? beside_a_program() : descriptor_beside_a_program(choice_);
    TRY(check_destination(choice_, to_));
    analysis_.fold_names.reset();  // the run's configuration has it
    TRY(check_analysis(analysis_));
    counters_.by_payload = analysis_.by_payload;
    if (!window_.empty()) {
      windows_.counted = TRY(profile::parse_counted(window_));
    }
    if (!when_.empty()) {
      auto when = TRY(profile::parse_when(when_));
      windows_.when = std::move(when);
    }
    profile::warn_of_idle_keys(config);
    TRY(profile::wanted_events(sampling_));
    const profile::Done done = profile::run(config,
                                            {.analysis = analysis_,
                                             .native = native_,
                                             .sampling = sampling_,
                                             .windows = windows_,
                                             .counters = counters_,
                                             .arguments = arguments(),
                                             .talk = talk_of(choice_, to_),
                                             .repeat = repeat,
                                             .dry_run = dry_run_,
                                             .strict = strict_});
    if (!done.directory.empty())
      say_kept(done.directory,
               config.text("run.root") == runs::kDefaultRoot && !config.get("run.dir"));
    if (done.end)
      return end_like(*done.end);
    return done.code;
  }

 private:
  [[nodiscard]] std::string watching_option() const {
    if (!watch_.openmetrics.empty())
      return "--openmetrics";
    if (watch_.is_on)
      return "--watch";
    return "--watch-every";
  }

  ConfigArguments configuration_;
  bool dry_run_ = false, strict_ = false;
  WatchChoice watch_;
  std::string repeat_ = "1", window_, when_;
  int to_ = STDERR_FILENO;
  collect::native::Options native_;
  profile::SampleChoice sampling_;
  profile::WindowChoice windows_;
  collect::native::CounterRequest counters_;
  ReportChoice choice_;
  analyze::Options analysis_;
};

}  // namespace

std::unique_ptr<Subcommand> make_profile() {
  return std::make_unique<Profile>();
}

}  // namespace rangescope::cli
