// The native stage: the program as it is, with rangescope's library in it. Before it the warm-up; after it, where
// native counters were asked for, relaunches until every range has its rounds; in place of it, repetitions.
#include <fmt/format.h>

#include "analyze/compare/gate.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "collect/native/trim.hpp"
#include "profile/engine.hpp"
#include "profile/look.hpp"
#include "profile/sampling.hpp"
#include "read/registry.hpp"
#include "runs/baselines.hpp"
#include "runs/layout.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {

namespace fs = std::filesystem;

namespace {

std::string why_unopened(const WindowChoice& windows) {
  if (windows.stopped) return "no window was opened: rangescope ctl PID start opens one";
  if (!windows.counted) return "the program ended before its first window began (--after)";
  if (windows.counted->range.empty())
    return "the program did not call cudaProfilerStart() or cuProfilerStart() (--capture-range)";
  return "the program ended before instance " + std::to_string(windows.counted->first) + " of range " +
         base::printable(windows.counted->range) + " (--window" +
         (windows.counted->range.find_first_of("*?>") == std::string::npos ? ")" : " takes its own name, no pattern)");
}

/// Why the CPU was not sampled, behind a colon; "" where it was switched off.
std::string not_sampled(const model::Session& session) {
  for (const model::Loss& loss : session.losses)
    if (loss.kind == "cpu_not_sampled") return ": " + loss.detail;
  return {};
}

}  // namespace

collect::Plan Engine::warm_up_plan() const {
  const collect::Request request = base_request(config_, run_);
  return {.collector = "warmup",
          .argv = request.command,
          .set_env = request.env,
          .cwd = request.cwd,
          .timeout = request.timeout};
}

base::Result<void> Engine::warm_up() {
  const auto times = repetition_ ? 0 : config_.integer("workload.warmup").value_or(0);
  if (times > 0) TRY(record_->about_to_run(warm_up_plan()));
  for (std::int64_t i = 1; i <= times; ++i) {
    const std::string label = "warmup" + std::to_string(i);
    auto ran = TRY(runner_->run(warm_up_plan(), label, {}, true));
    if (!ran.ended.ok() && !runner_->interrupted()) {
      program_failed_ = ran.ended;
      TRY(record_->ended(ran.ended));
      explanations_.push_back({"the program failed in its warm-up run, without any profiler: " +
                                   base::describe(ran.ended) + "; see warmup/" + label + ".stderr",
                               false});
      base::warn(explanations_.back().text);
      return {};
    }
    if (runner_->interrupted()) return {};
  }
  return {};
}

base::Result<collect::Plan> Engine::native_plan(const fs::path& run) const {
  return collect::native::plan(args_.native, base_request(config_, run));
}

base::Result<void> Engine::native_stages() {
  TRY(native_stage("native"));
  if (!counters_ || runner_->interrupted()) return {};
  if (program_failed_ && !program_failed_->timed_out) return native_again();
  return program_failed_ || counters_->request.passes != "relaunch" ? base::Result<void>{} : relaunches();
}

/// `folder` "native": a stage of its own; "look": only to see the ranges, and its failures stop nothing.
base::Result<void> Engine::native_stage(const std::string& folder) {
  const bool look = folder != "native";
  collect::Request request = base_request(config_, look ? run_ / folder : run_);
  if (counters_ && !look) {
    TRY(write_counters(*counters_, run_, false, args_.native));
    note("native: " + cost_sentence(counters_->plan));
  }
  collect::native::Options native = args_.native;
  if (look)
    for (const auto& [name, value] : look_settings()) native.extra_env[name] = value;
  auto plan = collect::native::plan(native, request);
  if (!plan) return look ? base::Result<void>{} : base::fail(std::move(plan));
  for (const std::string& text : plan->notes) note("native: " + text);
  if (!look) TRY(record_->about_to_run(*plan));
  collect::Plan shown = *plan;
  shown.collector = folder;
  const fs::path captures = request.run_dir / "native";
  SampleChoice choice = look ? SampleChoice{.off = true, .cpu_off = true} : args_.sampling;
  std::unique_ptr<Windows> windows;
  if (args_.windows.any() && !look) {
    windows = TRY(Windows::begin(captures, args_.windows, choice));
    choice.off = choice.cpu_off = true;  // they sample by themselves
  }
  choice.regions = regions_of(args_.native.extra_env);
  auto sampling = TRY(begin_sampling(choice, captures, counters_.has_value()));
  auto cpu = begin_cpu(choice, captures);  // the last thing before the program
  if (!cpu) return base::fail(std::move(cpu));
  const auto started = [&](pid_t program) { windows->started(program); };
  auto ran = runner_->run(shown, folder, {}, false, windows ? started : std::function<void(pid_t)>());
  if (windows) windows->ended();
  unopened_ = windows && windows->count() == 0;
  if (ran && unopened_) explanations_.push_back({why_unopened(args_.windows), false});
  if (sampling) sampling->stop();
  if (*cpu) (*cpu)->stop();
  if (!ran) return base::fail(std::move(ran));
  return read_native(folder, captures, *cpu, *ran);
}

base::Result<void> Engine::read_native(const std::string& folder, const fs::path& captures,
                                       std::optional<sample::cpu::Recorder>& cpu, const ToolRun& ran) {
  const bool look = folder != "native";
  last_ = alone_ = ran.ended;
  if (!ran.ended.ok() && !look) program_failed_ = ran.ended;  // whatever becomes of reading
  if (!look) (void)record_->ended(ran.ended);  // the program's end is ours to pass on; finish() reports a failure
  TRY(worker_->go_on_in_child());
  end_cpu(cpu, captures);
  if (const std::size_t running = collect::native::trim_captures(captures); running > 0 && !look)
    cut_.push_back({"process_running", running,
                    base::counted(running, "of its processes still runs", "of its processes still run") +
                        ": what they do from now on is not in the report"});
  auto session = read::read_any(captures);
  collect::Observed seen = observed(ran, runner_->interrupted());
  seen.text.clear();
  seen.report = session.has_value();
  if (session) {
    seen.results = model::count_ranges(*session) + session->kernels.size();
    native_session_ = std::move(*session);
    native_capture_ = captures;
  }
  const model::Session none;
  const bool whole = session || is_empty_folder(captures);
  if (!look && !whole) worst_ = session.error().code;
  collect::Outcome outcome;
  // A program without ranges is a region itself, unless ranges were asked for.
  const bool program = !unopened_ && seen.results == 0 && native_session_ && ranges_.include.empty() && !counters_ &&
                       (model::holds_anything(*native_session_) || holds_program(*native_session_));
  const bool any = seen.results > 0 || program;
  outcome.result = any ? collect::Result::kOk : collect::Result::kEmpty;
  outcome.message = seen.results > 0
                        ? "native: " + base::counted(model::count_ranges(*native_session_), "range") +
                              (args_.native.extra_env.contains(wire::kLight)
                                   ? ""
                                   : ", " + base::counted(native_session_->kernels.size(), "kernel"))
                        : "native: " + (whole ? why_no_range(session ? *native_session_ : none) : session.error().what);
  if (program)
    outcome.message =
        "native: no range, " + base::counted(native_session_->cpu.samples.size(), "sample") + " of the CPU";
  if (!look && any) captured_.emplace_back("native");
  if (!look && !any && !unopened_) explanations_.push_back({outcome.message, whole});
  if (!look && !any && !unopened_ && native_session_ && ranges_.include.empty() && !counters_)
    explanations_.push_back(
        {"no process loaded rangescope's library, and the CPU was not sampled" + not_sampled(*native_session_), false});
  if (!ran.ended.ok()) outcome.message += "; the program ended by " + base::describe(ran.ended);
  runs::Stage stage = StageRunner::stage_of(folder, base::tool_version(), "", outcome, ran);
  stage.results = seen.results;
  stage.report = look ? "look/native" : "native";
  runner_->record(std::move(stage));
  if (ran.ended.timed_out) base::warn("the program was ended after --timeout");
  if (ran.ended.signal) base::warn("the program was ended by " + base::describe(ran.ended));
  if (!ran.ended.ok()) {
    program_failed_ = ran.ended;
    explanations_.push_back(
        {(nsys_ || ncu_ ? "the program failed even without nsys and ncu: " : "the program ended by ") +
             base::describe(ran.ended) + (nsys_ || ncu_ ? "; they were not started" : ""),
         true});
  }
  return {};
}

/// The program failed while it was counted: without counters it shows whose fault that is.
base::Result<void> Engine::native_again() {
  no_counters_ = "the program ended by " + base::describe(*program_failed_) + " while native counters were collected";
  note("native: " + no_counters_ + "; once more without them");
  std::error_code error;
  for (const char* file : {"native", wire::kPlanFile, "counters.json"}) {
    const std::filesystem::path kept = run_ / (std::string("counted-") + file);
    std::filesystem::rename(base::in_place(run_ / file), base::in_place(kept), error);
  }
  counters_.reset();
  args_.native.extra_env.erase(wire::kCounters);
  program_failed_.reset();
  native_session_.reset();
  explanations_.clear();
  std::erase(captured_, "native");
  cut_.push_back({"counters_failed", 1, no_counters_});
  return native_stage("native");
}

/// The program again, until every range has its rounds or a run brings nothing new. What it prints goes into a file.
base::Result<void> Engine::relaunches() {
  constexpr int kMost = 1000;
  auto plan = TRY(native_plan(run_));
  plan.collector = "relaunch";
  unsigned long long done = 0;
  for (int number = 2; number < kMost; ++number) {
    const auto progress = relaunch_progress(run_);
    if (!progress) {
      base::warn("the program was not run again: the previous run left no passes to continue");
      return {};
    }
    if (progress->lacking == 0) break;
    if (number > 2 && progress->done == done) {
      base::warn("relaunching stopped after " + std::to_string(number - 1) +
                 " runs: the last one added no pass; its ranges launched different kernels, or did not occur");
      break;
    }
    done = progress->done;
    native_capture_.clear();  // what it counts is not in the session that was read
    base::info("run " + std::to_string(number) + ": " + base::counted(progress->lacking, "range lacks", "ranges lack") +
               " passes");
    TRY(write_counters(*counters_, run_, true, args_.native));
    const fs::path folder = run_ / "native" / ("relaunch-" + std::to_string(number));
    for (const auto& [name, value] : args_.native.extra_env) plan.set_env[name] = value;
    plan.set_env[wire::kDir] = folder.string();
    plan.folders = {folder};
    auto ran = runner_->run(plan, "run" + std::to_string(number), {}, true);
    collect::native::trim_captures(folder);
    if (!ran) return base::fail(std::move(ran));
    runner_->record({.stage = "relaunch",
                     .tool = base::tool_version(),
                     .attempt = number,
                     .outcome = ran->ended.ok() ? "ok" : "failed",
                     .why = ran->ended.ok() ? "" : "program_failed",
                     .message = base::describe(ran->ended),
                     .wall_ns = ran->ended.wall_ns,
                     .exit_code = ran->ended.exit_code});
    if (!ran->ended.ok()) {
      base::warn("relaunching stopped: run " + std::to_string(number) + " ended by " + base::describe(ran->ended));
      break;
    }
  }
  forget_progress(run_);
  return {};
}

/// Runs below this one, each a whole run directory of its own (runs/layout.hpp). Stops at the first that fails.
base::Result<void> Engine::repetitions() {
  std::vector<fs::path> done;
  std::optional<base::Ended> whole;
  bool captured = false;
  runner_->ran_before();
  const bool automatic = args_.repeat == kAutoRepeat;
  const int most = automatic ? kMostRepeats : args_.repeat;
  const auto enough = [&] {
    if (!automatic || std::ssize(done) < kLeastRepeats) return false;
    std::vector<model::Digest> runs;
    for (const fs::path& folder : done)
      if (auto run = runs::read_report(folder / "report.json")) runs.push_back(std::move(*run));
    return analyze::enough_runs(runs, analyze::GateOptions().max_regression);
  };
  for (int i = 1; i <= most && !enough(); ++i) {
    const fs::path folder = run_ / "repeats" / fmt::format("{:03}", i);
    if (i == 1) {
      const auto plan = TRY(native_plan(folder));
      TRY(record_->about_to_run(plan));
    }
    auto record = TRY(RunRecord::begin_in(folder, config_.list("workload.command"), args_.arguments));
    base::detail(fmt::format("repetition {} of {}{}", i, automatic ? "at most " : "", most));
    Engine one(config_, args_);
    one.args_.repeat = 1;
    one.args_.talk.report = {};
    one.native_ = one.repetition_ = true;
    one.counters_ = counters_;
    one.ranges_ = ranges_;
    one.worker_ = worker_;
    const Done ended = one.run_in(std::move(record));
    done.push_back(folder);
    if (one.alone_) {
      const std::int64_t start = whole ? whole->start_unix_ns : one.alone_->start_unix_ns;
      whole = one.alone_;
      whole->wall_ns += whole->start_unix_ns - start;
      whole->start_unix_ns = start;
    }
    cut_.insert(cut_.end(), one.cut_.begin(), one.cut_.end());
    counters_ = one.counters_;  // a program that dies while it is counted is not counted again
    captured = captured || !one.captured_.empty();
    if (one.captured_.empty() || ended.code != 0 || one.runner_->interrupted()) {
      findings_ = one.findings_;
      repeated_ = one.concluded_;
      if (ended.code == 0 && i < most)
        repeated_ = Conclusion{128 + one.runner_->signal(), "interrupted",
                               "interrupted by " + base::signal_name(one.runner_->signal())};
      repeated_->message = fmt::format("repetition {} of {}: {}", i, most, repeated_->message);
      program_failed_ = one.program_failed_;
      break;
    }
  }
  last_ = alone_ = whole;
  if (whole) (void)record_->ended(*whole);  // finish() reports a failure
  if (repeated_) {
    const auto kept = runs::repeats_of(run_);
    if (captured) captured_.emplace_back("native");
    base::warn(repeated_->message + (captured && !kept.empty() ? "; the report is of repetition " +
                                                                     runs::median_repeat(kept).filename().string()
                                                               : ""));
    return {};
  }
  const fs::path median = runs::median_repeat(done);
  native_session_ = TRY(read::read_any(median / "native"));
  native_capture_ = median / "native";
  captured_.emplace_back("native");
  const std::string message =
      fmt::format("the report is of repetition {}, of median duration, of {}", median.filename().string(), done.size());
  base::info(message);
  runner_->record({.stage = "native",
                   .tool = base::tool_version(),
                   .step = fmt::format("{} repetitions", done.size()),
                   .outcome = "ok",
                   .message = message,
                   .wall_ns = whole ? whole->wall_ns : 0,
                   .results = model::count_ranges(*native_session_) + native_session_->kernels.size(),
                   .report = (median / "native").lexically_relative(run_).string()});
  return {};
}

}  // namespace rangescope::profile
