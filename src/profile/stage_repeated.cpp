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
      code |= print_native(run_, run_.folder / "repeats" / fmt::format("{:03}", i),
                           fmt::format("native, repetition {} of {}", i, times));
    return code;
  }
  /// Stops at the first that fails.
  base::Result<void> run() override {
    run_.wanted.emplace_back("native");
    std::vector<fs::path> done;
    std::optional<base::Ended> whole;
    bool captured = false;
    run_.runner->ran_before();
    const bool automatic = run_.args.repeat == kAutoRepeat;
    const int most = automatic ? kMostRepeats : run_.args.repeat;
    const auto enough = [&] {
      if (!automatic || std::ssize(done) < kLeastRepeats) return false;
      std::vector<model::Digest> runs;
      for (const fs::path& folder : done)
        if (auto run = runs::read_report(folder / "report.json")) runs.push_back(std::move(*run));
      return analyze::enough_runs(runs, analyze::GateOptions().max_regression);
    };
    for (int i = 1; i <= most && !enough(); ++i) {
      const fs::path folder = run_.folder / "repeats" / fmt::format("{:03}", i);
      if (i == 1) {
        const auto plan = TRY(native_plan(run_, folder));
        TRY(run_.record->about_to_run(plan));
      }
      auto record = TRY(
          RunRecord::begin_in(folder, run_.config.list("workload.command"), run_.args.arguments));
      base::detail(fmt::format("repetition {} of {}{}", i, automatic ? "at most " : "", most));
      Run one(run_.config, run_.args);
      one.args.repeat = 1;
      one.args.talk.report = {};
      one.asked.native = one.repetition = true;
      one.counters = run_.counters;
      one.ranges = run_.ranges;
      one.worker = run_.worker;
      const Done ended = run_in(one, std::move(record), stages_of(one));
      done.push_back(folder);
      if (one.alone) {
        const std::int64_t start = whole ? whole->start_unix_ns : one.alone->start_unix_ns;
        whole = one.alone;
        whole->wall_ns += whole->start_unix_ns - start;
        whole->start_unix_ns = start;
      }
      run_.cut.insert(run_.cut.end(), one.cut.begin(), one.cut.end());
      run_.counters = one.counters;  // a program that dies while it is counted is not counted again
      captured = captured || !one.captured.empty();
      if (one.captured.empty() || ended.code != 0 || one.runner->interrupted()) {
        run_.findings = one.findings;
        run_.repeated = one.concluded;
        if (ended.code == 0 && i < most)
          run_.repeated = Conclusion{128 + one.runner->signal(), "interrupted",
                                     "interrupted by " + base::signal_name(one.runner->signal())};
        run_.repeated->message =
            fmt::format("repetition {} of {}: {}", i, most, run_.repeated->message);
        run_.program_failed = one.program_failed;
        break;
      }
    }
    run_.last = run_.alone = whole;
    if (whole) (void)run_.record->ended(*whole);  // finish() reports a failure
    if (run_.repeated) {
      const auto kept = runs::repeats_of(run_.folder);
      if (captured) run_.captured.emplace_back("native");
      base::warn(run_.repeated->message + (captured && !kept.empty()
                                               ? "; the report is of repetition " +
                                                     runs::median_repeat(kept).filename().string()
                                               : ""));
      return {};
    }
    const fs::path median = runs::median_repeat(done);
    run_.by_native.session = TRY(read::read_any(median / "native"));
    run_.by_native.path = median / "native";
    run_.captured.emplace_back("native");
    const std::string message =
        fmt::format("the report is of repetition {}, of median duration, of {}",
                    median.filename().string(), done.size());
    base::info(message);
    run_.runner->record({.stage = "native",
                         .tool = base::tool_version(),
                         .step = fmt::format("{} repetitions", done.size()),
                         .outcome = "ok",
                         .message = message,
                         .wall_ns = whole ? whole->wall_ns : 0,
                         .results = model::count_ranges(*run_.by_native.session) +
                                    run_.by_native.session->kernels.size(),
                         .report = (median / "native").lexically_relative(run_.folder).string()});
    return {};
  }
};

}  // namespace

std::unique_ptr<Stage> repeated_stage(Run& run) {
  return std::make_unique<Repeated>(run);
}

}  // namespace rangescope::profile
