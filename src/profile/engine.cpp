#include "profile/engine.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <new>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "collect/launch.hpp"
#include "collect/nsight/tools.hpp"
#include "profile/captures.hpp"
#include "profile/jobs.hpp"
#include "profile/stage.hpp"
#include "runs/compress.hpp"
#include "runs/job/folder.hpp"
#include "runs/layout.hpp"
#include "runs/provenance.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace {

/// What windows do not support, by name.
base::Result<void> check_windows(const Run& run) {
  if (run.args.windows.when && !run.args.windows.keep_last)
    return base::fail(
        base::Code::kUsage, "--when marks what --keep-last keeps", "--when", "Add --keep-last 60s");
  if (!run.args.windows.any())
    return {};
  if (run.args.windows.keep_last && (run.args.windows.counted || run.args.windows.stopped ||
                                     run.args.windows.after || run.args.windows.length))
    return base::fail(base::Code::kUsage,
                      "--keep-last records all the time",
                      "--keep-last",
                      "Leave out --after, --for, --window and --stopped");
  if (run.args.windows.counted &&
      (run.args.windows.stopped || run.args.windows.after || run.args.windows.length))
    return base::fail(base::Code::kUsage,
                      "--window already defines the window",
                      "--window",
                      "Leave out --after, --for and --stopped");
  const std::pair<bool, const char*> refused[] = {
      {!run.asked.native, "--no-native"},
      {run.asked.nsys, "--nsys"},
      {run.asked.ncu, "--ncu"},
      {run.args.repeat != 1, "--repeat"},
      {!run.config.list("pipeline.native.metrics").empty(), "--metrics"},
      {!run.args.sampling.cpu_counters.empty(), "--cpu-counters"}};
  for (const auto& [given, option] : refused)
    if (given)
      return base::fail(
          base::Code::kUsage,
          std::string("windows record one run of the native stage, without ") + option,
          option,
          "Leave it out, or --after, --for, --window and --stopped");
  return {};
}

/// What to write instead of a program that is not on PATH.
std::string hint_for_missing(const std::string& program) {
  std::error_code ignored;
  if (std::filesystem::exists(program, ignored))
    return "Write ./" + program + " for the file of this folder";
  if (program == "python" && base::find_on_path("python3"))
    return "Write python3";
  return "Check its name, or write its path";
}

/// What is wrong with what is asked for, whatever the stages say.
base::Result<void> prepare(Run& run) {
  run.asked.native = run.config.flag("pipeline.native.enable");
  run.asked.nsys = run.config.flag("pipeline.nsys.enable");
  run.asked.ncu = run.config.flag("pipeline.ncu.enable");
  if (!run.asked.native && !run.asked.nsys && !run.asked.ncu)
    return base::fail(base::Code::kConfig,
                      "every stage is disabled",
                      "pipeline",
                      "Enable pipeline.native, pipeline.nsys or pipeline.ncu.");
  if (run.config.list("workload.command").empty())
    return base::fail(base::Code::kUsage,
                      "there is no program to run",
                      {},
                      "Put it after --: rangescope profile -- python3 train.py");
  if (const std::string program = run.config.list("workload.command").front();
      program.find('/') == std::string::npos && !base::find_on_path(program))
    return base::fail(base::Code::kNoInput,
                      "there is no program '" + base::printable(program) + "' on PATH",
                      {},
                      hint_for_missing(program));
  std::vector<std::string> inputs = run.config.list("workload.inputs");
  if (auto subset = run.config.text("workload.subset"); subset && !subset->empty())
    inputs.push_back(*subset);
  run.inputs = TRY(runs::look_at_inputs(inputs, run.config.text("workload.cwd").value_or("")));
  if (const auto rule = run.config.text("run.compress"))
    TRY(runs::parse_compress(*rule));
  if (run.args.repeat != 1 && !run.asked.native)
    return base::fail(base::Code::kUsage,
                      "--repeat repeats the native stage, which is off",
                      "--repeat",
                      "Leave --no-native out, or run the command several times.");
  if (run.args.native.extra_env.contains(wire::kLight) && !run.asked.native)
    return base::fail(base::Code::kUsage,
                      "--light needs the native stage, which is off",
                      "--light",
                      "Leave --no-native out.");
  if (opens_window_by_calls(run.config))
    run.args.windows.counted = WindowChoice::Counted{"", 1, 1};
  TRY(check_windows(run));
  auto ranges = TRY(ranges_of(run.config));
  auto kernels = TRY(kernels_of(run.config));
  for (const std::string& text : ranges.notes)
    base::detail(base::printable(text));
  TRY(check_ranges(ranges));
  TRY(check_kernels(kernels));
  run.args.analysis.ranges = run.ranges = std::move(ranges);
  run.args.analysis.kernels = std::move(kernels);
  return plan_counters(run);
}

base::Result<void> run_stages(Run& run, const Stages& stages) {
  TRY(write_config(run.folder, run.config));
  TRY(runs::write_stages(run.folder, {}));
  for (const auto& stage : stages) {
    TRY(stage->run());
    if (run.over() && stage != stages.back())
      return {};
  }
  run.finished = !run.runner->interrupted() || (!run.asked.nsys && !run.asked.ncu);
  return {};
}

/// Where ncu alone is to measure, and something is not certain: a look is a run of the program.
bool needs_look(const Run& run) {
  if (run.asked.native || run.asked.nsys || !run.asked.ncu ||
      !run.config.flag("pipeline.probe", true))
    return false;
  const auto kind_said = [](const model::RangeTerm& term) { return term.kind_said(); };
  const bool kinds_said = std::ranges::all_of(run.ranges.include, kind_said) &&
                          std::ranges::all_of(run.ranges.exclude, kind_said);
  if (!kinds_said)
    return true;
  return collect::is_ladder(replay_mode(run.config)) && !run.ranges.include.empty();
}

std::string root_of(const Run& run) {
  return run.config.text("run.root").value_or(std::string(runs::kDefaultRoot));
}

using Ranks = std::vector<std::uint32_t>;

/// Makes the directory: the one that is named, a rank's in the folder of its job, or the next of
/// all runs.
base::Result<RunRecord> begin_record(const Run& run,
                                     const runs::job::Place& place,
                                     const Ranks& ranks) {
  const auto program = run.config.list("workload.command");
  const std::string root = root_of(run);
  if (const auto named = run.config.text("run.dir"))
    return RunRecord::begin_in(*named, program, run.args.arguments);
  if (!place.name.empty()) {
    auto dir = TRY(runs::job::make_run_dir(root, place, ranks));
    return RunRecord::begin_rank(dir, program, run.args.arguments);
  }
  auto begun = RunRecord::begin(root, program, run.args.arguments);
  const std::string state = root == runs::kDefaultRoot ? runs::state_root() : std::string();
  if (begun || state.empty())
    return begun;
  auto kept = RunRecord::begin(state, program, run.args.arguments);
  if (!kept)
    return begun;
  base::warn("this folder cannot be written: the run is kept in " + kept->path().string());
  return kept;
}

bool files_are_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// The run's own files do not fit below RLIMIT_FSIZE: the user's program is worth more than its
/// measurement. Returns only where the program cannot be run; the exit code.
int run_unmeasured(const Run& run) {
  base::warn("the program runs without a recording");
  return say(run_bare(base_request(run.config, ".")));
}

/// `--dry-run`: what the stages would do, by hand. Exit code.
int print(Run& run, const Stages& stages) {
  std::error_code ignored;
  const auto folder =
      run.config.text("run.dir").value_or(runs::next_run_dir(root_of(run)).string());
  run.folder = std::filesystem::absolute(folder, ignored);
  int code = 0;
  for (const auto& stage : stages)
    code |= stage->print();
  return code;
}

}  // namespace

void Run::note(const std::string& text) {
  if (std::find(notes.begin(), notes.end(), text) != notes.end())
    return;
  notes.push_back(text);
  base::info(text);
}

void Run::cut_short(const std::string& stage, const base::Ended& ended) {
  if (!ended.timed_out)
    return;
  cut.push_back({"timed_out",
                 1,
                 "the time limit ended stage " + stage + "; later work of the program is missing"});
  base::warn(cut.back().detail);
}

const model::Session* Run::timeline() const {
  const auto session_of = [](const auto& capture) {
    return capture.session ? &*capture.session : nullptr;
  };
  return better_timeline(session_of(by_native), session_of(by_nsys));
}

Stages stages_of(Run& run) {
  Stages stages;
  const auto add = [&](std::unique_ptr<Stage> stage) { stages.push_back(std::move(stage)); };
  if (run.args.attach) {
    add(attach_stage(run));
    return stages;
  }
  if (const auto limit = run.config.duration("run.wait_idle"))
    add(idle_stage(run, *limit));
  if (!run.repetition && run.config.integer("workload.warmup").value_or(0) > 0)
    add(warm_up_stage(run));
  if (run.asked.native)
    add(run.args.repeat != 1 ? repeated_stage(run) : native_stage(run));
  if (needs_look(run))
    add(look_stage(run, "to find its ranges (--no-probe skips it)"));
  if (run.asked.nsys)
    add(nsys_stage(run));
  if (run.asked.ncu)
    add(ncu_stage(run));
  return stages;
}

Done run_in(Run& run, RunRecord record, const Stages& list) {
  if (!run.worker)
    run.worker = std::make_shared<Worker>();
  run.record.emplace(std::move(record));
  run.record->saw(run.inputs);
  std::error_code ignored;
  run.folder = std::filesystem::absolute(run.record->path(), ignored);
  run.runner.emplace(run.folder);
  std::optional<base::Error> failure;
  const auto guarded = [&](const auto& work) {
    try {
      work();
      return true;
    } catch (const std::bad_alloc&) {
      Worker::out_of_memory();
      failure = base::Error{base::Code::kInternal,
                            "out of memory",
                            run.folder.string(),
                            "Read it with more memory: rangescope report"};
    } catch (const std::exception& error) {
      failure =
          base::Error{base::Code::kInternal, error.what(), run.folder.string(), "Please report it"};
    }
    return false;
  };
  guarded([&] {
    auto ran = run_stages(run, list);
    if (ran)
      ran = run.worker->go_on_in_child();
    if (!ran)
      failure = std::move(ran).error();
  });
  Done done;
  const auto end = [&] { done = conclude(run, failure); };
  const bool concluded = guarded(end) || guarded(end);  // the second time without reading
  if (!concluded)
    done = {base::exit_code(base::Code::kInternal), run.bad_end(), {}};
  if (concluded && !run.repetition)
    run.worker->done();
  return done;
}

base::Result<collect::Abilities> able(const Run& run, const std::string& tool) {
  auto can = collect::probe_tool(tool, search_for(run.config, tool));
  if (can || !run.args.dry_run || can.error().code != base::Code::kToolMissing)
    return can;
  const auto conf = config::shipped_folder();
  auto newest = conf ? collect::newest_known(tool, *conf / "tools") : can;
  if (!newest)
    return can;
  base::warn("no " + tool + " was found here; the commands are for " + tool + " " +
             collect::to_string(newest->version) + ", the newest version that is known");
  return newest;
}

int print_plan(const std::string& title, const base::Result<collect::Plan>& plan) {
  if (!plan)
    return say(plan.error());
  for (const std::string& text : plan->notes)
    base::info(title + ": " + text);
  std::string text = "# " + title + "\n";
  for (const auto& folder : plan->folders)
    text += "mkdir -p " + base::shell_quote(folder.string()) + "\n";
  std::puts((text + collect::shell_command(*plan)).c_str());
  return 0;
}

Done run(const config::Config& config, Settings settings) {
  Run run(config, std::move(settings));
  if (run.args.attach)
    run.asked.native = true;
  else if (auto ready = prepare(run); !ready)
    return {say(ready.error())};
  const Stages stages = stages_of(run);
  for (const auto& stage : stages)
    if (auto ready = stage->prepare(); !ready)
      return {say(ready.error())};
  auto& environment = run.args.native.extra_env;
  for (const char* patterns : {wire::kFunctions, wire::kPhases}) {
    const auto chosen = environment.find(patterns);
    if (chosen != environment.end())
      chosen->second = name_main(chosen->second, config.list("workload.command"));
  }
  if (run.args.dry_run)
    return {print(run, stages)};
  // A run that attaches is none of a job's ranks, whatever its own environment holds.
  const auto place = run.args.attach ? base::Result<runs::job::Place>() : place_in_job(config);
  if (!place)
    return {say(place.error())};
  const auto ranks = run.args.attach ? Ranks() : ranks_asked_for(config);
  if (!ranks.empty()) {
    if (place->rank && std::find(ranks.begin(), ranks.end(), *place->rank) == ranks.end())
      return {say(run_bare(base_request(config, ".")))};
    if (!place->rank)
      run.args.native.extra_env[wire::kRanks] = runs::job::ranks_text(ranks);
  }
  run.worker = std::make_shared<Worker>();
  if (!Worker::has_reserve())
    return {say({base::Code::kInternal,
                 "out of memory",
                 {},
                 "Raise the limit on memory: ulimit -v unlimited"})};
  const bool may_run_unmeasured = !run.args.attach && files_are_limited();
  auto record = begin_record(run, *place, ranks);
  if (!record) {
    const int code = say(record.error());
    return {may_run_unmeasured ? run_unmeasured(run) : code};
  }
  Done done = run_in(run, std::move(*record), stages);
  if (may_run_unmeasured && !run.runner->has_run())
    done.code = run_unmeasured(run);
  return done;
}

}  // namespace rangescope::profile
