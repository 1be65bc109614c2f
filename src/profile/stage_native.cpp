// The native stage: the program as it is, with rangescope's library in it; after it, where native
// counters were asked for, relaunches until every range has its rounds.
#include <fmt/format.h>

#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "collect/native/trim.hpp"
#include "doctor/causes.hpp"
#include "profile/cuda/cuda_error.hpp"
#include "profile/look.hpp"
#include "profile/redact.hpp"
#include "profile/sampling.hpp"
#include "profile/stage.hpp"
#include "read/registry.hpp"
#include "runs/layout.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {

namespace fs = std::filesystem;

namespace {

std::string why_unopened(const WindowChoice& windows) {
  if (windows.stopped)
    return "no window was opened: rangescope ctl PID start opens one";
  if (!windows.counted)
    return "the program ended before its first window began (--after)";
  if (windows.counted->range.empty())
    return "the program did not call cudaProfilerStart() or cuProfilerStart() (--capture-range)";
  const std::string& range = windows.counted->range;
  const bool may_be_pattern = range.find_first_of("*?>") != std::string::npos;
  return "the program ended before instance " + std::to_string(windows.counted->first) +
         " of range " + base::printable(range) +
         std::string(may_be_pattern ? " (--window takes its own name, no pattern)" : " (--window)");
}

/// Knows the secrets of the program's environment.
base::Redactor redactor_of_program(const Run& run) {
  base::Redactor redactor;
  for (const auto& [name, value] : run.config.map("workload.env"))
    redactor.learn(name, value);
  return redactor;
}

/// Why the CPU was not sampled, behind a colon; "" where it was switched off.
std::string not_sampled(const model::Session& session) {
  for (const model::Loss& loss : session.losses)
    if (loss.kind == "cpu_not_sampled")
      return ": " + loss.detail;
  return {};
}

class Native : public Stage {
 public:
  Native(Run& run, bool look, std::string why = {})
      : Stage(run), look_(look), why_(std::move(why)) {}
  base::Result<void> prepare() override {
    auto found = find_library(run_);
    if (look_)
      return {};
    return found;
  }
  int print() override { return look_ ? 0 : print_native(run_, run_.folder, "native"); }
  base::Result<void> run() override {
    if (look_) {
      if (run_.args.native.library.empty())
        return {};
      if (!why_.empty())
        run_.note("probe run of the program without a profiler, " + why_);
      return once();
    }
    run_.wanted.emplace_back("native");
    TRY(once());
    if (!run_.counters || run_.runner->interrupted())
      return {};
    if (run_.program_failed && !run_.program_failed->timed_out)
      return again();
    if (run_.program_failed || run_.counters->request.passes != "relaunch")
      return {};
    return relaunches();
  }

 private:
  base::Result<void> once() {
    const std::string folder = look_ ? "look" : "native";
    collect::Request request =
        base_request(run_.config, look_ ? run_.folder / folder : run_.folder);
    if (run_.counters && !look_) {
      TRY(write_counters(*run_.counters, run_.folder, false, run_.args.native));
      run_.note("native: " + cost_sentence(run_.counters->plan));
    }
    collect::native::Options native = run_.args.native;
    if (look_)
      for (const auto& [name, value] : look_settings())
        native.extra_env[name] = value;
    auto plan = collect::native::plan(native, request);
    if (!plan && look_)
      return {};
    if (!plan)
      return base::fail(std::move(plan));
    for (const std::string& text : plan->notes)
      run_.note("native: " + text);
    if (!look_)
      TRY(run_.record->about_to_run(*plan));
    collect::Plan shown = *plan;
    shown.collector = folder;
    const fs::path captures = request.run_dir / "native";
    SampleChoice choice = look_ ? SampleChoice{.off = true, .cpu_off = true} : run_.args.sampling;
    choice.regions = regions_of(run_.args.native.extra_env);
    choice.library = run_.args.native.library;
    const bool in_windows = run_.args.windows.any() && !look_;  // they sample by themselves
    SampleChoice whole_run = choice;                            // what is sampled from begin to end
    if (in_windows)
      whole_run = SampleChoice{.off = true, .cpu_off = true};
    auto sampling = TRY(begin_sampling(whole_run, captures, run_.counters.has_value()));
    // The last thing before the program: what samples its CPU begins with it.
    std::unique_ptr<Windows> windows;
    if (in_windows)
      windows = TRY(Windows::begin(captures, run_.args.windows, choice));
    auto cpu = begin_cpu(whole_run, captures);
    if (!cpu)
      return base::fail(std::move(cpu));
    std::function<void(pid_t)> started;
    if (windows)
      started = [&](pid_t program) { windows->started(program); };
    auto ran = run_.runner->run(shown, folder, {}, false, started);
    if (windows)
      windows->ended();
    run_.unopened = windows && windows->count() == 0;
    if (ran && run_.unopened)
      run_.explanations.push_back({why_unopened(run_.args.windows), false});
    if (sampling)
      sampling->stop();
    if (*cpu)
      (*cpu)->stop();
    if (!ran)
      return base::fail(std::move(ran));
    return read_native(run_, folder, captures, *cpu, *ran);
  }
  /// The program failed while it was counted: without counters it shows whose fault that is.
  base::Result<void> again() {
    run_.no_counters = "the program ended by " + base::describe(*run_.program_failed) +
                       " while native counters were collected";
    run_.note("native: " + run_.no_counters + "; once more without them");
    std::error_code error;
    for (const char* file : {"native", wire::kPlanFile, "counters.json"}) {
      const std::filesystem::path kept = run_.folder / (std::string("counted-") + file);
      std::filesystem::rename(base::in_place(run_.folder / file), base::in_place(kept), error);
    }
    run_.counters.reset();
    run_.args.native.extra_env.erase(wire::kCounters);
    run_.program_failed.reset();
    run_.by_native.session.reset();
    run_.explanations.clear();
    std::erase(run_.captured, "native");
    run_.cut.push_back({"counters_failed", 1, run_.no_counters});
    return once();
  }
  /// The program again, until every range has its rounds or a run brings nothing new. What it
  /// prints goes into a file.
  base::Result<void> relaunches() {
    constexpr int kMost = 1000;
    auto plan = TRY(native_plan(run_, run_.folder));
    plan.collector = "relaunch";
    unsigned long long done = 0;
    for (int number = 2; number < kMost; ++number) {
      const auto progress = relaunch_progress(run_.folder);
      if (!progress) {
        base::warn("the program was not run again: the previous run left no passes to continue");
        return {};
      }
      if (progress->lacking == 0)
        break;
      if (number > 2 && progress->done == done) {
        base::warn("relaunching stopped after " + std::to_string(number - 1) +
                   " runs: the last one added no pass; its ranges launched different kernels, or "
                   "did not occur");
        break;
      }
      done = progress->done;
      run_.by_native.path.clear();  // what it counts is not in the session that was read
      base::info("run " + std::to_string(number) + ": " +
                 base::counted(progress->lacking, "range lacks", "ranges lack") + " passes");
      TRY(write_counters(*run_.counters, run_.folder, true, run_.args.native));
      const fs::path folder = run_.folder / "native" / ("relaunch-" + std::to_string(number));
      for (const auto& [name, value] : run_.args.native.extra_env)
        plan.set_env[name] = value;
      plan.set_env[wire::kDir] = folder.string();
      plan.folders = {folder};
      auto ran = run_.runner->run(plan, "run" + std::to_string(number), {}, true);
      collect::native::trim_captures(folder);
      redact_snapshots(folder, redactor_of_program(run_));
      if (!ran)
        return base::fail(std::move(ran));
      runs::Stage stage{.stage = "relaunch",
                        .tool = base::tool_version(),
                        .attempt = number,
                        .outcome = "ok",
                        .message = base::describe(ran->ended),
                        .wall_ns = ran->ended.wall_ns,
                        .exit_code = ran->ended.exit_code};
      if (!ran->ended.ok()) {
        stage.outcome = "failed";
        stage.why = "program_failed";
      }
      run_.runner->record(std::move(stage));
      if (!ran->ended.ok()) {
        base::warn("relaunching stopped: run " + std::to_string(number) + " ended by " +
                   base::describe(ran->ended));
        break;
      }
    }
    forget_progress(run_.folder);
    return {};
  }

  bool look_;  ///< only to see the ranges
  std::string why_;
};

}  // namespace

std::unique_ptr<Stage> native_stage(Run& run) {
  return std::make_unique<Native>(run, false);
}

std::unique_ptr<Stage> look_stage(Run& run, std::string why) {
  return std::make_unique<Native>(run, true, std::move(why));
}

base::Result<void> find_library(Run& run) {
  const auto command = run.config.list("workload.command");
  run.args.native.library = TRY(collect::native::find_library());
  if (run.config.flag("pipeline.native.mpi", true))
    run.args.native.mpi_library = collect::native::mpi_library(
        run.args.native.library, command, run.config.flag("pipeline.native.mpi", false));
  return {};
}

base::Result<collect::Plan> native_plan(const Run& run, const fs::path& folder) {
  return collect::native::plan(run.args.native, base_request(run.config, folder));
}

int print_native(Run& run, const fs::path& folder, const std::string& title) {
  if (run.counters) {
    const auto files = counter_files(*run.counters, folder, false, run.args.native);
    if (!files)
      return say(files.error());
    std::printf("mkdir -p %s\n", base::shell_quote(folder.string()).c_str());
    for (const auto& [path, text] : *files)
      std::printf("cat > %s <<'END OF FILE'\n%sEND OF FILE\n",
                  base::shell_quote(path.string()).c_str(),
                  text.c_str());
  }
  const int code = print_plan(title, native_plan(run, folder));
  if (run.counters && run.counters->request.passes == "relaunch")
    std::puts("# and again, with another RANGESCOPE_DIR, until no range lacks passes");
  return code;
}

/// Warns of functions of --phases that the recording has no call of.
static void note_unmatched_phases(Run& run) {
  const auto phases = run.args.native.extra_env.find(wire::kPhases);
  if (phases == run.args.native.extra_env.end() || phases->second == "off")
    return;
  const auto lines = base::split(phases->second, '\n');
  const std::string unmatched = unmatched_functions({lines.begin(), lines.end()},
                                                    run.config.list("workload.command"),
                                                    *run.by_native.session,
                                                    "--phases");
  if (!unmatched.empty())
    run.note(unmatched);
}

/// "native: 12 ranges, 34 kernels" of a recording with results.
static std::string native_results(const Run& run) {
  const model::Session& session = *run.by_native.session;
  std::string text = "native: " + base::counted(model::count_ranges(session), "range");
  const bool has_gpu = !run.args.native.extra_env.contains(wire::kLight);
  if (has_gpu)
    text += ", " + base::counted(session.kernels.size(), "kernel");
  return text;
}

/// Why stages that follow were not started.
static std::string program_failure(const Run& run, const base::Ended& ended) {
  const bool has_tools = run.asked.nsys || run.asked.ncu;
  if (!has_tools)
    return "the program ended by " + base::describe(ended);
  return "the program failed even without nsys and ncu: " + base::describe(ended) +
         "; they were not started";
}

/// Notes how the program ended, where it did not end well.
static void note_end(Run& run, const base::Ended& ended) {
  if (ended.timed_out)
    base::warn("the program was ended after --timeout");
  if (ended.signal)
    base::warn("the program was ended by " + base::describe(ended));
  if (!ended.ok()) {
    run.program_failed = ended;
    run.explanations.push_back({program_failure(run, ended), true});
  }
}

/// Ends the recording of the run, however the program ended.
static base::Result<void> end_recording(Run& run,
                                        bool is_probe,
                                        const fs::path& captures,
                                        std::optional<sample::cpu::Recorder>& cpu,
                                        const ToolRun& ran) {
  run.last = run.alone = ran.ended;
  if (!is_probe) {
    if (!ran.ended.ok())
      run.program_failed = ran.ended;  // whatever becomes of reading
    // The program's end is ours to pass on; finish() reports a failure.
    (void)run.record->ended(ran.ended);
  }
  TRY(run.worker->go_on_in_child());
  end_cpu(cpu, captures);
  const std::size_t running = collect::native::trim_captures(captures);
  if (running > 0 && !is_probe) {
    std::string detail =
        base::counted(running, "of its processes still runs", "of its processes still run");
    detail += ": what they do from now on is not in the report";
    run.cut.push_back({"process_running", running, std::move(detail)});
  }
  redact_snapshots(captures, redactor_of_program(run));
  return {};
}

/// What the native stage has, or why it has nothing. `is_program`: the program itself is the
/// region.
static std::string native_message(const Run& run,
                                  const base::Result<model::Session>& session,
                                  const fs::path& captures,
                                  bool has_ranges,
                                  bool is_program) {
  if (is_program)
    return "native: no range, " +
           base::counted(run.by_native.session->cpu.samples.size(), "sample") + " of the CPU";
  if (has_ranges)
    return native_results(run);
  if (session)
    return "native: " + why_no_range(*run.by_native.session);
  if (is_empty_folder(captures))
    return "native: " + why_no_range(model::Session{});
  return "native: " + session.error().what;
}

base::Result<void> read_native(Run& run,
                               const std::string& folder,
                               const fs::path& captures,
                               std::optional<sample::cpu::Recorder>& cpu,
                               const ToolRun& ran) {
  const bool is_probe = folder != "native";
  TRY(end_recording(run, is_probe, captures, cpu, ran));
  auto session = read::read_any(captures);
  collect::Observed seen = observed(ran, run.runner->interrupted());
  seen.text.clear();
  seen.report = session.has_value();
  if (session) {
    seen.results = model::count_ranges(*session) + session->kernels.size();
    const std::vector<std::string> command = run.config.list("workload.command");
    if (!is_probe && !command.empty())
      explain_missing_cuda(captures, command.front(), !ran.ended.ok(), *session);
    run.by_native.session = std::move(*session);
    run.by_native.path = captures;
    if (!is_probe)
      note_unmatched_phases(run);
  }
  const bool is_readable = session || is_empty_folder(captures);
  if (!is_probe && !is_readable)
    run.worst = session.error().code;
  const bool wants_all = run.ranges.include.empty() && !run.counters;
  // A program without ranges is a region itself, unless ranges were asked for.
  const bool is_program =
      !run.unopened && seen.results == 0 && run.by_native.session && wants_all &&
      (model::holds_anything(*run.by_native.session) || holds_program(*run.by_native.session));
  const bool has_results = seen.results > 0 || is_program;
  collect::Outcome outcome;
  outcome.result = has_results ? collect::Result::kOk : collect::Result::kEmpty;
  outcome.message = native_message(run, session, captures, seen.results > 0, is_program);
  if (!is_probe && has_results)
    run.captured.emplace_back("native");
  if (!is_probe && !has_results && !run.unopened) {
    run.explanations.push_back({outcome.message, is_readable});
    if (run.by_native.session && wants_all)
      run.explanations.push_back(
          {"no process loaded rangescope's library, and the CPU was not sampled" +
               not_sampled(*run.by_native.session),
           false});
  }
  if (!ran.ended.ok())
    outcome.message += "; the program ended by " + base::describe(ran.ended);
  runs::Stage stage = StageRunner::stage_of(folder, base::tool_version(), "", outcome, ran);
  stage.results = seen.results;
  stage.report = is_probe ? "look/native" : "native";
  run.runner->record(std::move(stage));
  note_end(run, ran.ended);
  return {};
}

/// Sets the settings of counters that depend on others.
static void complete_counter_settings(Run& run, bool is_pc) {
  run.args.counters.ranges = run.ranges;
  run.args.counters.kernels = run.args.analysis.kernels;
  run.args.counters.skip_unknown = run.config.flag("pipeline.skip_unknown");
  run.args.counters.every =
      static_cast<std::uint32_t>(run.config.integer("ranges.every").value_or(1));
  if (is_pc && !run.config.set_by_user("pipeline.native.rounds"))
    run.args.counters.rounds = 2;  // sampling the program counter slows each of them
  const bool counts_all_kernels =
      !is_pc && !run.args.analysis.kernels.empty() && run.args.counters.per != "kernel";
  if (counts_all_kernels)
    run.note(
        "native counters of a range include every kernel in it; use --per kernel to count only "
        "those of --kernel");
}

base::Result<void> plan_counters(Run& run) {
  const auto names =
      run.asked.ncu ? metrics_of(run.config) : run.config.list("pipeline.native.metrics");
  const bool is_pc = names.empty() && run.args.counters.pc != "off";
  const bool needs_pc = run.args.counters.pc == "on";
  if (names.empty() && !is_pc)
    return {};
  if (needs_pc && !names.empty())
    return base::fail(base::Code::kUsage,
                      "--metrics and --pc need the same hardware",
                      "--pc",
                      "Run the program twice: with --metrics, and with --pc on.");
  if (std::find(names.begin(), names.end(), "") != names.end())
    return base::fail(
        base::Code::kUsage, "an empty name in '" + base::join(names, ",") + "'", "--metrics");
  const collect::Wish wanted = wish_of(run);
  const bool only_ncu_can =
      wanted.mode != "auto" || wanted.sections || wanted.kernel_filter || !wanted.ranges;
  if (!is_pc && run.asked.ncu && only_ncu_can)
    return {};
  // ncu counts instead; samples that were not asked for are left out without a message.
  const bool may_lack_counters = run.asked.ncu || (is_pc && !needs_pc);
  if (!run.asked.native) {
    run.no_counters = "the native stage is off";
    if (may_lack_counters)
      return {};
    return base::fail(base::Code::kConfig,
                      "metrics are requested, but nsys measures none",
                      "pipeline.native.metrics",
                      "Switch ncu or the native stage on: --ncu or --native.");
  }
  if (run.args.native.extra_env.contains(wire::kLight)) {
    run.no_counters = "--light keeps CUPTI out of the program, and counters of ranges need it";
    if (may_lack_counters)
      return {};
    return base::fail(base::Code::kUsage,
                      run.no_counters,
                      is_pc ? "--pc" : "--metrics",
                      "Leave one of them out; GPU samples are in the report without either.");
  }
  complete_counter_settings(run, is_pc);
  auto plan =
      is_pc ? prepare_samples(run.args.counters) : prepare_counters(names, run.args.counters);
  if (plan) {
    run.counters = std::move(*plan);
    for (const std::string& metric : run.counters->plan.skipped)
      run.note("metric '" + metric + "' is unknown on " + run.counters->plan.chip +
               " and left out");
    return {};
  }
  run.no_counters = "no hardware counters: " + plan.error().what;
  if (may_lack_counters)
    return {};
  // Wrong names are an error; a machine that has no counters to give still gives wall times.
  const base::Code code = plan.error().code;
  if (run.args.strict || code == base::Code::kUsage || code == base::Code::kConfig)
    return base::fail(std::move(plan));
  run.uncounted = doctor::finding_of(
      "machine.no_counters", model::Grade::kWarn, run.no_counters, plan.error().hint);
  return {};
}

}  // namespace rangescope::profile
