#include "profile/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <thread>

#include "base/fs.hpp"
#include "base/library.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "collect/launch.hpp"
#include "collect/nsight/tools.hpp"
#include "config/metric_groups.hpp"
#include "doctor/causes.hpp"
#include "profile/captures.hpp"
#include "profile/jobs.hpp"
#include "runs/compress.hpp"
#include "runs/job/folder.hpp"
#include "runs/layout.hpp"
#include "runs/provenance.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace {

// `--wait-idle`: a run begins when nobody else uses its GPUs.

using std::chrono::steady_clock;

constexpr auto kBetween = std::chrono::milliseconds(250);
constexpr int kQuietLooks = 4;  // NVML's share is of a sixth of a second to a second

struct Gpu {
  unsigned index;
  base::Nvml::Device device;
};

/// By number or by the beginning of its UUID; all of them where nothing is given.
std::vector<Gpu> visible_gpus(const base::Nvml& nvml, const char* chosen) {
  std::vector<Gpu> all, visible;
  unsigned count = 0;
  (void)nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    base::Nvml::Device device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0) all.push_back({i, device});
  }
  if (chosen == nullptr) return all;
  for (const std::string_view word : base::split(chosen, ',')) {
    const auto number = base::to_uint(base::trim(word));
    for (const Gpu& gpu : all)
      if (number ? *number == gpu.index
                 : !word.empty() && nvml.text("nvmlDeviceGetUUID", gpu.device).starts_with(base::trim(word)))
        visible.push_back(gpu);
  }
  return visible;
}

/// "GPU 1 is busy (37 %)" of the first that is; "" where none is.
std::string busy_gpu(const base::Nvml& nvml, const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    struct {
      unsigned gpu = 0, memory = 0;  // nvmlUtilization_t
    } share;
    if (nvml.call("nvmlDeviceGetUtilizationRates", gpu.device, static_cast<void*>(&share)) == 0 && share.gpu > 0)
      return fmt::format("GPU {} is busy ({} %)", gpu.index, share.gpu);
  }
  return {};
}

/// Waits until the GPUs that CUDA_VISIBLE_DEVICES leaves (in `environment` of the program, else in ours) have done
/// nothing for a second, as NVML tells, at most `limit`. What a report should say of it; "" where they were idle at
/// once.
std::string wait_for_idle(std::chrono::nanoseconds limit, const std::map<std::string, std::string>& environment) {
  const base::Nvml nvml;
  const int started = nvml.loaded() ? nvml.call("nvmlInit_v2") : 0;
  if (!nvml.loaded() || started != 0)
    return "--wait-idle: whether a GPU is busy is not known: " +
           (nvml.loaded() ? nvml.words_of(started) : std::string("there is no libnvidia-ml.so.1"));
  const auto asked = environment.find("CUDA_VISIBLE_DEVICES");
  const std::vector<Gpu> gpus =
      visible_gpus(nvml, asked != environment.end() ? asked->second.c_str() : std::getenv("CUDA_VISIBLE_DEVICES"));
  const auto begin = steady_clock::now();
  std::string busy = busy_gpu(nvml, gpus), told = busy;
  for (int quiet = 0; !told.empty() && quiet < kQuietLooks && steady_clock::now() - begin < limit;) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kBetween, limit));
    busy = busy_gpu(nvml, gpus);
    quiet = busy.empty() ? quiet + 1 : 0;
  }
  (void)nvml.call("nvmlShutdown");
  if (told.empty()) return {};
  const auto waited = base::format_ns(static_cast<double>((steady_clock::now() - begin).count()));
  return busy.empty() ? "--wait-idle: waited " + waited + " for the GPU (" + told + ")"
                      : "--wait-idle: " + busy + " after " + waited + "; the program runs anyway";
}

}  // namespace

Done run(const config::Config& config, Settings settings) {
  return Engine(config, std::move(settings)).run();
}

void Engine::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) != notes_.end()) return;
  notes_.push_back(text);
  base::info(text);
}

/// A stage with results that the time limit ended: what came after is missing, and every report lists it.
void Engine::cut_short(const std::string& stage, const base::Ended& ended) {
  if (!ended.timed_out) return;
  cut_.push_back({"timed_out", 1, "the time limit ended stage " + stage + "; later work of the program is missing"});
  base::warn(cut_.back().detail);
}

const model::Session* Engine::timeline() const {
  return better_timeline(native_session_ ? &*native_session_ : nullptr, nsys_session_ ? &*nsys_session_ : nullptr);
}

namespace {

/// Where runs go when the folder that we are in cannot be written (XDG Base Directory Specification 0.8); "" for
/// nowhere.
std::string state_root() {
  const auto environment = collect::tool_search().environment;
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string state = value("XDG_STATE_HOME"); state.starts_with('/')) return state + "/rangescope/runs";
  return value("HOME").empty() ? "" : value("HOME") + "/.local/state/rangescope/runs";
}

}  // namespace

Done Engine::run() {
  if (args_.attach) {
    native_ = true;
  } else if (auto ready = prepare(); !ready) {
    return {say(ready.error())};
  }
  const auto program = config_.list("workload.command");
  for (const char* patterns : {wire::kFunctions, wire::kPhases})
    if (const auto chosen = args_.native.extra_env.find(patterns); chosen != args_.native.extra_env.end())
      chosen->second = name_main(chosen->second, program);
  if (args_.dry_run) return {print_plans()};
  // Whoever attaches is none of a job's ranks, whatever its own environment holds.
  const auto place = args_.attach ? base::Result<runs::job::Place>() : place_in_job(config_);
  if (!place) return {say(place.error())};
  const auto ranks = args_.attach ? decltype(ranks_asked_for(config_))() : ranks_asked_for(config_);
  if (!ranks.empty()) {
    if (place->rank && std::find(ranks.begin(), ranks.end(), *place->rank) == ranks.end())
      return {say(run_bare(base_request(config_, ".")))};
    if (!place->rank) args_.native.extra_env[wire::kRanks] = runs::job::ranks_text(ranks);
  }
  const std::string root = config_.text("run.root").value_or(std::string(runs::kDefaultRoot));
  const auto begin = [&]() -> base::Result<RunRecord> {
    if (config_.text("run.dir")) return RunRecord::begin_in(*config_.text("run.dir"), program, args_.arguments);
    if (place->name.empty()) {
      auto begun = RunRecord::begin(root, program, args_.arguments);
      const std::string state = root == runs::kDefaultRoot ? state_root() : std::string();
      if (begun || state.empty()) return begun;
      auto kept = RunRecord::begin(state, program, args_.arguments);
      if (!kept) return begun;
      base::warn("this folder cannot be written: the run is kept in " + kept->path().string());
      return kept;
    }
    auto dir = TRY(runs::job::make_run_dir(root, *place, ranks));
    return RunRecord::begin_rank(dir, program, args_.arguments);
  };
  auto record = begin();
  if (!record) return {say(record.error())};
  return run_in(std::move(*record));
}

Done Engine::run_in(RunRecord record) {
  if (!worker_) worker_ = std::make_shared<Worker>();
  record_.emplace(std::move(record));
  record_->saw(inputs_);
  std::error_code ignored;
  run_ = std::filesystem::absolute(record_->path(), ignored);
  runner_.emplace(run_);
  std::optional<base::Error> failure;
  const auto guarded = [&](const auto& work) {
    try {
      work();
      return true;
    } catch (const std::bad_alloc&) {
      Worker::out_of_memory();
      failure = base::Error{base::Code::kInternal, "out of memory", run_.string(),
                            "Read it with more memory: rangescope report"};
    } catch (const std::exception& error) {
      failure = base::Error{base::Code::kInternal, error.what(), run_.string(), "Please report it"};
    }
    return false;
  };
  guarded([&] {
    auto ran = stages();
    if (ran) ran = worker_->go_on_in_child();
    if (!ran) failure = std::move(ran).error();
  });
  Done done;
  const auto end = [&] { done = conclude(failure); };
  const bool concluded = guarded(end) || guarded(end);  // the second time without reading
  if (!concluded)
    done = {base::exit_code(base::Code::kInternal), program_failed_ ? program_failed_ : worker_->stopped(), {}};
  if (concluded && !repetition_) worker_->done();
  return done;
}

/// All that can be known to be wrong before the program starts.
base::Result<void> Engine::prepare() {
  native_ = config_.flag("pipeline.native.enable");
  nsys_ = config_.flag("pipeline.nsys.enable");
  ncu_ = config_.flag("pipeline.ncu.enable");
  if (!native_ && !nsys_ && !ncu_)
    return base::fail(base::Code::kConfig, "every stage is disabled", "pipeline",
                      "Enable pipeline.native, pipeline.nsys or pipeline.ncu.");
  if (config_.list("workload.command").empty())
    return base::fail(base::Code::kUsage, "there is no program to run", {},
                      "Put it after --: rangescope profile -- python train.py");
  if (const std::string program = config_.list("workload.command").front();
      program.find('/') == std::string::npos && !base::find_on_path(program))
    return base::fail(base::Code::kNoInput, "there is no program '" + base::printable(program) + "' on PATH", {},
                      "Write ./" + program + " for a file of this folder");
  std::vector<std::string> inputs = config_.list("workload.inputs");
  if (auto subset = config_.text("workload.subset"); subset && !subset->empty()) inputs.push_back(*subset);
  inputs_ = TRY(runs::look_at_inputs(inputs, config_.text("workload.cwd").value_or("")));
  if (const auto rule = config_.text("run.compress")) TRY(runs::parse_compress(*rule));
  if (args_.repeat != 1 && !native_)
    return base::fail(base::Code::kUsage, "--repeat repeats the native stage, which is off", "--repeat",
                      "Leave --no-native out, or run the command several times.");
  if (args_.native.extra_env.contains(wire::kLight) && !native_)
    return base::fail(base::Code::kUsage, "--light needs the native stage, which is off", "--light",
                      "Leave --no-native out.");
  if (args_.native.extra_env.contains(wire::kOverhead) && args_.native.extra_env.contains(wire::kLight))
    return base::fail(base::Code::kUsage, "--light traces no GPU work, so there is nothing to budget", "--overhead",
                      "Leave --light or --overhead out.");
  if (args_.native.extra_env.contains(wire::kOverhead) && !native_)
    return base::fail(base::Code::kUsage, "--overhead needs the native stage, which is off", "--overhead",
                      "Leave --no-native out.");
  if (opens_window_by_calls(config_)) args_.windows.counted = WindowChoice::Counted{"", 1, 1};
  TRY(check_windows());
  mode_ = config_.text("pipeline.ncu.ncu_cli.replay_mode").value_or("auto");
  auto ranges = TRY(ranges_of(config_));
  auto kernels = TRY(kernels_of(config_));
  for (const std::string& text : ranges.notes) base::detail(base::printable(text));
  warn_of_bars(ranges);
  args_.analysis.ranges = ranges_ = std::move(ranges);
  args_.analysis.kernels = std::move(kernels);
  if (nsys_) {
    nsys_can_ = TRY(able("nsys"));
    TRY(nsys_plan(base_request(config_, "/run")));
  }
  if (native_ || (config_.flag("pipeline.probe", true) && ncu_)) {
    auto library = collect::native::find_library();
    if (!library && native_) return base::fail(std::move(library));
    if (library) args_.native.library = *library;
    if (library && config_.flag("pipeline.native.mpi", true))
      args_.native.mpi_library = collect::native::mpi_library(*library, config_.list("workload.command"),
                                                              config_.flag("pipeline.native.mpi", false));
  }
  return ncu_ ? prepare_ncu() : plan_counters();
}

/// What cannot be had in windows, by name.
base::Result<void> Engine::check_windows() const {
  if (args_.windows.when && !args_.windows.keep_last)
    return base::fail(base::Code::kUsage, "--when marks what --keep-last keeps", "--when", "Add --keep-last 60s");
  if (!args_.windows.any()) return {};
  if (args_.windows.keep_last &&
      (args_.windows.counted || args_.windows.stopped || args_.windows.after || args_.windows.length))
    return base::fail(base::Code::kUsage, "--keep-last records all the time", "--keep-last",
                      "Leave out --after, --for, --window and --stopped");
  if (args_.windows.counted && (args_.windows.stopped || args_.windows.after || args_.windows.length))
    return base::fail(base::Code::kUsage, "--window already defines the window", "--window",
                      "Leave out --after, --for and --stopped");
  const std::pair<bool, const char*> refused[] = {{!native_, "--no-native"},
                                                  {nsys_, "--nsys"},
                                                  {ncu_, "--ncu"},
                                                  {args_.repeat != 1, "--repeat"},
                                                  {!config_.list("pipeline.native.metrics").empty(), "--metrics"},
                                                  {!args_.sampling.cpu_counters.empty(), "--cpu-counters"},
                                                  {args_.native.extra_env.contains(wire::kOverhead), "--overhead"}};
  for (const auto& [given, option] : refused)
    if (given)
      return base::fail(base::Code::kUsage,
                        std::string("windows record one run of the native stage, without ") + option, option,
                        "Leave it out, or --after, --for, --window and --stopped");
  return {};
}

/// What the installed tool can do; without one a plan that nobody runs is made for the newest version that is known.
base::Result<collect::Abilities> Engine::able(const std::string& tool) const {
  auto can = collect::probe_tool(tool, search_for(config_, tool));
  if (can || !args_.dry_run || can.error().code != base::Code::kToolMissing) return can;
  const auto conf = config::shipped_folder();
  auto known = conf ? collect::newest_known(tool, *conf / "tools") : can;
  if (!known) return can;
  base::warn("no " + tool + " was found here; the commands are for " + tool + " " + collect::to_string(known->version) +
             ", the newest version that is known");
  return known;
}

base::Result<void> Engine::prepare_ncu() {
  auto can = TRY(able("ncu"));
  ncu_metrics_ = config_.list("pipeline.native.metrics");
  for (std::string& metric : config_.list("pipeline.ncu.ncu_cli.metrics")) ncu_metrics_.push_back(std::move(metric));
  asked_metrics_ = ncu_metrics_;
  if (!ncu_metrics_.empty()) {
    collect::probe_metrics(can, search_for(config_, "ncu"));
    auto groups = TRY(config::shipped_groups());
    std::vector<std::string> notes;
    ncu_metrics_ = ncu_metrics(ncu_metrics_, groups, can, notes);
    if (config_.flag("pipeline.skip_unknown"))
      std::erase_if(ncu_metrics_, [&](const std::string& metric) {
        if (collect::ncu::knows_metric(can, metric) || !collect::ncu::metric_regex(metric).empty()) return false;
        notes.push_back("metric '" + metric + "' is unknown to ncu " + collect::to_string(can.version) +
                        " on this GPU and left out");
        return true;
      });
    for (const std::string& text : notes) note("ncu: " + text);
  }
  ncu_can_ = std::move(can);
  TRY(plan_counters());
  // Every rung that may be taken must have a plan; kernel mode always may.
  for (const collect::Rung& rung : collect::ladder(wish(), {}, *ncu_can_)) {
    if (!rung.take || rung.step == collect::Step::kNative) continue;
    auto plan = collect::ncu::plan(*ncu_can_, ncu_options_for(rung.step, "ncu", {}, false), ncu_request());
    if (!plan && (!collect::is_ladder(mode_) || rung.step == collect::Step::kKernel))
      return base::fail(std::move(plan));
  }
  return {};
}

/// Metrics of ranges, and nothing that only ncu has: then the native stage counts while it looks. Without ncu it must.
base::Result<void> Engine::plan_counters() {
  const auto names = ncu_ ? asked_metrics_ : config_.list("pipeline.native.metrics");
  // What is sampled unless something else is asked for is left out without a word.
  const bool pc = names.empty() && args_.counters.pc != "off", must = args_.counters.pc == "on";
  if (names.empty() && !pc) return {};
  if (must && !names.empty())
    return base::fail(base::Code::kUsage, "--metrics and --pc need the same hardware", "--pc",
                      "Run the program twice: with --metrics, and with --pc on.");
  if (std::find(names.begin(), names.end(), "") != names.end())
    return base::fail(base::Code::kUsage, "an empty name in '" + base::join(names, ",") + "'", "--metrics");
  const collect::Wish wanted = wish();
  if (!pc && ncu_ && (mode_ != "auto" || wanted.sections || wanted.kernel_filter || !wanted.ranges)) return {};
  if (!native_) {
    no_counters_ = "the native stage is off";
    if (ncu_ || (pc && !must)) return {};
    return base::fail(base::Code::kConfig, "metrics are requested, but nsys measures none", "pipeline.native.metrics",
                      "Switch ncu or the native stage on: --ncu or --native.");
  }
  for (const auto& [setting, why] :
       {std::pair{wire::kLight, "--light keeps CUPTI out of the program, and counters of ranges need it"},
        std::pair{wire::kOverhead, "--overhead and counters of ranges both choose what is traced"}}) {
    if (!args_.native.extra_env.contains(setting)) continue;
    no_counters_ = why;
    if (ncu_ || (pc && !must)) return {};
    return base::fail(base::Code::kUsage, no_counters_, pc ? "--pc" : "--metrics",
                      "Leave one of them out; GPU samples are in the report without either.");
  }
  args_.counters.ranges = ranges_;
  args_.counters.kernels = args_.analysis.kernels;
  args_.counters.skip_unknown = config_.flag("pipeline.skip_unknown");
  args_.counters.every = static_cast<std::uint32_t>(config_.integer("ranges.every").value_or(1));
  if (pc && !config_.set_by_user("pipeline.native.rounds")) args_.counters.rounds = 2;  // each is dear
  if (!pc && !args_.analysis.kernels.empty() && args_.counters.per != "kernel")
    note("native counters of a range include every kernel in it; use --per kernel to count only those of --kernel");
  auto plan = pc ? prepare_samples(args_.counters) : prepare_counters(names, args_.counters);
  if (plan) {
    counters_ = std::move(*plan);
    for (const std::string& metric : counters_->plan.skipped)
      note("metric '" + metric + "' is unknown on " + counters_->plan.chip + " and left out");
    return {};
  }
  no_counters_ = "no hardware counters: " + plan.error().what;
  if (ncu_ || (pc && !must)) return {};
  // Wrong names are an error; a machine that has no counters to give still gives wall times.
  const base::Code code = plan.error().code;
  if (args_.strict || code == base::Code::kUsage || code == base::Code::kConfig) return base::fail(std::move(plan));
  uncounted_ = doctor::finding_of("machine.no_counters", model::Grade::kWarn, no_counters_, plan.error().hint);
  return {};
}

/// Shell commands that do by hand what the stages would do, up to the reading of what was captured.
int Engine::print_plans() {
  const std::filesystem::path root = config_.text("run.root").value_or(std::string(runs::kDefaultRoot));
  std::error_code ignored;
  run_ = std::filesystem::absolute(config_.text("run.dir").value_or(runs::next_run_dir(root).string()), ignored);
  const auto print = [&](const std::string& what, const base::Result<collect::Plan>& plan) {
    if (!plan) return say(plan.error());
    for (const std::string& text : plan->notes) base::info(what + ": " + text);
    std::string text = "# " + what + "\n";
    for (const auto& folder : plan->folders) text += "mkdir -p " + base::shell_quote(folder.string()) + "\n";
    std::puts((text + collect::shell_command(*plan)).c_str());
    return 0;
  };
  int code = 0;
  for (std::int64_t i = 1; i <= config_.integer("workload.warmup").value_or(0); ++i)
    code |= print("warm-up " + std::to_string(i), warm_up_plan());
  const auto whole = run_;
  const int repeat = args_.repeat == kAutoRepeat ? kLeastRepeats : args_.repeat;
  for (int i = 1; native_ && i <= repeat; ++i) {
    if (repeat > 1) run_ = whole / "repeats" / fmt::format("{:03}", i);
    if (counters_) {
      const auto files = counter_files(*counters_, run_, false, args_.native);
      if (!files) return say(files.error());
      std::printf("mkdir -p %s\n", base::shell_quote(run_.string()).c_str());
      for (const auto& [path, text] : *files)
        std::printf("cat > %s <<'END OF FILE'\n%sEND OF FILE\n", base::shell_quote(path.string()).c_str(),
                    text.c_str());
    }
    code |= print(repeat > 1 ? fmt::format("native, repetition {} of {}", i, repeat) : "native", native_plan(run_));
    if (counters_ && counters_->request.passes == "relaunch")
      std::puts("# and again, with another RANGESCOPE_DIR, until no range lacks passes");
  }
  run_ = whole;
  if (nsys_) {
    code |= print("nsys", nsys_plan(base_request(config_, run_)));
    const std::string base = (run_ / "nsys" / "nsys").string();
    // Debian's nsys leaves what has to be imported.
    if (const auto importer = collect::find_importer(nsys_can_->path)) {
      std::printf("if [ ! -e %s ]; then\n", base::shell_quote(base + ".nsys-rep").c_str());
      code |= print("nsys, its import", collect::nsys::import_plan(*importer, base + ".qdstrm", base + ".nsys-rep"));
      std::puts("fi");
    }
    code |= print("nsys, its export", collect::nsys::export_plan(*nsys_can_, base + ".nsys-rep", base + ".sqlite"));
  }
  if (ncu_) {
    const std::string report = collect::ncu::report_base(ncu_request(), {}).string();
    bool tried = false;
    for (const collect::Rung& rung : collect::ladder(wish(), {}, *ncu_can_)) {
      const std::string name = "ncu, " + std::string(collect::step_name(rung.step)) + ": " + rung.reason;
      if (!rung.take || rung.step == collect::Step::kNative) {
        std::printf("# %s: %s\n", rung.take ? "done by the native stage" : "not tried", name.c_str());
        continue;
      }
      const auto plan = collect::ncu::plan(*ncu_can_, ncu_options_for(rung.step, "ncu", {}, false), ncu_request());
      if (!plan && collect::is_ladder(mode_) && rung.step != collect::Step::kKernel) {
        std::printf("# not tried: %s: %s\n", name.c_str(), plan.error().what.c_str());
        continue;
      }
      // A run goes on to the next mode where one left no report.
      if (tried)
        std::printf("if [ ! -e %s ] && [ ! -e %s ]; then\n", base::shell_quote(report + ".ncu-rep").c_str(),
                    base::shell_quote(report + ".ncu-repz").c_str());
      code |= print(name, plan);
      if (tried) std::puts("fi");
      tried = true;
    }
  }
  return code;
}

base::Result<void> Engine::stages() {
  TRY(write_config(run_, config_));
  TRY(runs::write_stages(run_, {}));
  if (args_.attach) {
    wanted_.emplace_back("native");
    auto watched = attach_stage();
    finished_ = watched.has_value();
    return watched;
  }
  if (const auto limit = config_.duration("run.wait_idle"))
    if (const std::string waited = wait_for_idle(*limit, base_request(config_, run_).env); !waited.empty())
      note(waited);
  TRY(warm_up());
  if (program_failed_ || runner_->interrupted()) return {};
  if (native_) {
    wanted_.emplace_back("native");
    TRY(args_.repeat != 1 ? repetitions() : native_stages());
    if (program_failed_ || repeated_ || runner_->interrupted()) {
      finished_ = !nsys_ && !ncu_;
      return {};
    }
  }
  // A look is worth a run of the program only where something is not certain.
  const auto kind_said = [](const model::RangeTerm& term) { return term.kind_said(); };
  const bool kinds_said =
      std::ranges::all_of(ranges_.include, kind_said) && std::ranges::all_of(ranges_.exclude, kind_said);
  const bool uncertain = ncu_ && (!kinds_said || (collect::is_ladder(mode_) && !ranges_.include.empty()));
  if (!native_ && !nsys_ && uncertain && config_.flag("pipeline.probe", true) && !args_.native.library.empty()) {
    note("probe run of the program without a profiler, to find its ranges (--no-probe skips it)");
    TRY(native_stage("look"));
    if (program_failed_ || runner_->interrupted()) return {};
  }
  if (nsys_) {
    wanted_.emplace_back("nsys");
    TRY(nsys_stage());
    if (runner_->interrupted()) return {};
  }
  if (ncu_) {
    wanted_.emplace_back("ncu");
    if (!native_ && !nsys_) TRY(worker_->go_on_in_child());
    resolve();
    TRY(ncu_stage());
  }
  finished_ = !runner_->interrupted();
  return {};
}

/// Push/pop or start/end, from what was seen.
void Engine::resolve() {
  std::vector<std::string> notes;
  if (const model::Session* seen = timeline()) analyze::settle_kinds(ranges_, *seen, notes);
  for (const std::string& text : notes) note("ranges: " + text);
}

}  // namespace rangescope::profile
