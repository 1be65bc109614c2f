// The native stage several times (`--repeat`), each a run of its own below the whole. The report is
// of the repetition of median duration.
#include <fmt/format.h>

#include "analyze/compare/gate.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "profile/stage.hpp"
#include "read/registry.hpp"
#include "runs/baselines.hpp"
#include "runs/layout.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

class Repeated : public Stage {
 public:
  using Stage::Stage;
  base::Result<void> prepare() override { return find_library(run_); }
  int print() override {
    int code = 0;
    const int times = run_.args.repeat == kAutoRepeat ? kLeastRepeats : run_.args.repeat;
    for (int i = 1; i <= times; ++i)
      code |= print_native(run_,
                           run_.folder / "repeats" / fmt::format("{:03}", i),
                           fmt::format("native, repetition {} of {}", i, times));
    return code;
  }
  /// Stops at the first that fails.
  base::Result<void> run() override {
    run_.wanted.emplace_back("native");
    run_.runner->ran_before();
    const bool is_automatic = run_.args.repeat == kAutoRepeat;
    const int limit = is_automatic ? kMostRepeats : run_.args.repeat;
    for (int number = 1; number <= limit; ++number) {
      if (is_automatic && has_enough())
        break;
      const bool goes_on = TRY(repeat(number, limit));
      if (!goes_on)
        break;
    }
    run_.last = run_.alone = series_;
    if (series_)
      (void)run_.record->ended(*series_);  // finish() reports a failure
    if (run_.repeated) {
      warn_of_failure();
      return {};
    }
    return read_median();
  }

 private:
  [[nodiscard]] bool has_enough() const {
    if (std::ssize(folders_) < kLeastRepeats)
      return false;
    std::vector<model::Digest> runs;
    for (const fs::path& folder : folders_)
      if (auto run = runs::read_report(folder / "report.json"))
        runs.push_back(std::move(*run));
    return analyze::enough_runs(runs, analyze::GateOptions().max_regression);
  }

  /// One repetition. False when it failed.
  base::Result<bool> repeat(int number, int limit) {
    const fs::path folder = run_.folder / "repeats" / fmt::format("{:03}", number);
    if (number == 1) {
      const auto plan = TRY(native_plan(run_, folder));
      TRY(run_.record->about_to_run(plan));
    }
    auto record =
        TRY(RunRecord::begin_in(folder, run_.config.list("workload.command"), run_.args.arguments));
    const char* at_most = run_.args.repeat == kAutoRepeat ? "at most " : "";
    base::detail(fmt::format("repetition {} of {}{}", number, at_most, limit));
    Run repetition(run_.config, run_.args);
    repetition.args.repeat = 1;
    repetition.args.talk.report = {};
    repetition.asked.native = true;
    repetition.repetition = true;
    repetition.counters = run_.counters;
    repetition.ranges = run_.ranges;
    repetition.worker = run_.worker;
    const Done done = run_in(repetition, std::move(record), stages_of(repetition));
    folders_.push_back(folder);
    add_time(repetition.alone);
    run_.cut.insert(run_.cut.end(), repetition.cut.begin(), repetition.cut.end());
    // A program that dies while it is counted is not counted again.
    run_.counters = repetition.counters;
    const bool has_captured = !repetition.captured.empty();
    has_captured_ = has_captured_ || has_captured;
    const bool is_ok = has_captured && done.code == 0 && !repetition.runner->interrupted();
    if (is_ok)
      return true;
    run_.findings = repetition.findings;
    run_.repeated = repetition.concluded;
    if (done.code == 0 && number < limit) {
      const int signal = repetition.runner->signal();
      run_.repeated =
          Conclusion{128 + signal, "interrupted", "interrupted by " + base::signal_name(signal)};
    }
    run_.repeated->message =
        fmt::format("repetition {} of {}: {}", number, limit, run_.repeated->message);
    run_.program_failed = repetition.program_failed;
    return false;
  }

  /// Extends `series_` from the start of the first repetition to the end of this one.
  void add_time(const std::optional<base::Ended>& ended) {
    if (!ended)
      return;
    const std::int64_t start = series_ ? series_->start_unix_ns : ended->start_unix_ns;
    series_ = ended;
    series_->wall_ns += series_->start_unix_ns - start;
    series_->start_unix_ns = start;
  }

  void warn_of_failure() {
    const auto kept = runs::repeats_of(run_.folder);
    if (has_captured_)
      run_.captured.emplace_back("native");
    std::string warning = run_.repeated->message;
    if (has_captured_ && !kept.empty())
      warning += "; the report is of repetition " + runs::median_repeat(kept).filename().string();
    base::warn(warning);
  }

  base::Result<void> read_median() {
    const fs::path median = runs::median_repeat(folders_);
    run_.by_native.session = TRY(read::read_any(median / "native"));
    run_.by_native.path = median / "native";
    run_.captured.emplace_back("native");
    const model::Session& session = *run_.by_native.session;
    const std::string message =
        fmt::format("the report is of repetition {}, of median duration, of {}",
                    median.filename().string(),
                    folders_.size());
    base::info(message);
    run_.runner->record({.stage = "native",
                         .tool = base::tool_version(),
                         .step = fmt::format("{} repetitions", folders_.size()),
                         .outcome = "ok",
                         .message = message,
                         .wall_ns = series_ ? series_->wall_ns : 0,
                         .results = model::count_ranges(session) + session.kernels.size(),
                         .report = (median / "native").lexically_relative(run_.folder).string()});
    return {};
  }

  std::vector<fs::path> folders_;      ///< of the repetitions so far
  std::optional<base::Ended> series_;  ///< all of them as one run
  bool has_captured_ = false;          ///< one of them has
};

}  // namespace

std::unique_ptr<Stage> repeated_stage(Run& run) {
  return std::make_unique<Repeated>(run);
}

}  // namespace rangescope::profile
