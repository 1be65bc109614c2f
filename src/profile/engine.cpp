#include "profile/engine.hpp"

#include <algorithm>
#include <cstdio>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "collect/launch.hpp"
#include "config/metric_groups.hpp"
#include "profile/analyzed.hpp"
#include "profile/captures.hpp"
#include "profile/counters.hpp"
#include "profile/diagnosis.hpp"
#include "profile/look.hpp"
#include "read/registry.hpp"
#include "runs/layout.hpp"
#include "runs/retention.hpp"

namespace rangescope::profile {
namespace {

/// Says the error; its exit code.
int say(const base::Error& error) {
  base::log(error);
  return base::exit_code(error.code);
}

}  // namespace

bool pipeline_wanted(const config::Config& config) {
  return config.flag("pipeline.nsys.enable") || config.flag("pipeline.ncu.enable") ||
         !config.flag("pipeline.native.enable", true) || config.integer("workload.warmup").value_or(0) > 0 ||
         config.get("run.dir") || config.get("run.keep");
}

int run_pipeline(const config::Config& config, PipelineArguments arguments) {
  return Pipeline(config, std::move(arguments)).run();
}

void Pipeline::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) != notes_.end()) return;
  notes_.push_back(text);
  base::info(text);
}

/// A stage with results that the time limit ended: what came after is missing, and every report says so.
void Pipeline::cut_short(const std::string& stage, const base::Ended& ended) {
  if (!ended.timed_out) return;
  cut_.push_back({"timed_out", model::Severity::kWarning, 1,
                  "the time limit ended stage " + stage + "; what the program did later is missing"});
  base::warn(cut_.back().detail);
}

const model::Session* Pipeline::timeline() const {
  return better_timeline(native_session_ ? &*native_session_ : nullptr, nsys_session_ ? &*nsys_session_ : nullptr);
}

int Pipeline::run() {
  if (auto ready = prepare(); !ready) return say(ready.error());
  if (args_.dry_run) return print_plans();
  const auto program = config_.list("workload.command");
  if (!base::find_on_path(program.front()) && program.front().find('/') == std::string::npos)
    return say({base::Code::kNoInput,
                "there is no program '" + base::printable(program.front()) + "' on PATH",
                {},
                "Write ./" + program.front() + " for a file of this folder"});
  auto record = config_.text("run.dir")
                    ? RunRecord::begin_in(*config_.text("run.dir"), program, args_.arguments)
                    : RunRecord::begin(config_.text("run.root").value_or(std::string(runs::kDefaultRoot)), program,
                                       args_.arguments);
  if (!record) return say(record.error());
  record_.emplace(std::move(*record));
  std::error_code ignored;
  run_ = std::filesystem::absolute(record_->path(), ignored);
  runner_.emplace(run_);
  const auto done = stages();
  return conclude(done ? std::nullopt : std::optional(done.error()));
}

/// All that can be known to be wrong before the program starts.
base::Result<void> Pipeline::prepare() {
  native_ = config_.flag("pipeline.native.enable");
  nsys_ = config_.flag("pipeline.nsys.enable");
  ncu_ = config_.flag("pipeline.ncu.enable");
  if (!native_ && !nsys_ && !ncu_)
    return base::fail(base::Code::kConfig, "every stage is switched off", "pipeline",
                      "Enable pipeline.native, pipeline.nsys or pipeline.ncu.");
  if (config_.list("workload.command").empty())
    return base::fail(base::Code::kUsage, "there is no program to run", {},
                      "Put it behind --: rangescope profile -- python train.py");
  mode_ = config_.text("pipeline.ncu.ncu_cli.replay_mode").value_or("auto");
  ranges_ = args_.analysis.ranges;
  if (nsys_) {
    auto can = collect::probe_tool("nsys", search_for(config_, "nsys"));
    if (!can) return base::fail(std::move(can));
    nsys_can_ = std::move(*can);
    if (auto plan = nsys_plan(base_request(config_, "/run")); !plan) return base::fail(std::move(plan));
  }
  if (native_ || (config_.flag("pipeline.probe", true) && ncu_)) {
    auto library = collect::native::find_library();
    if (!library && native_) return base::fail(std::move(library));
    if (library) args_.native.library = *library;
  }
  return ncu_ ? prepare_ncu() : plan_counters();
}

base::Result<void> Pipeline::prepare_ncu() {
  auto can = collect::probe_tool("ncu", search_for(config_, "ncu"));
  if (!can) return base::fail(std::move(can));
  ncu_metrics_ = config_.list("pipeline.ncu.ncu_cli.metrics");
  if (!ncu_metrics_.empty()) {
    collect::probe_metrics(*can, search_for(config_, "ncu"));
    auto groups = config::shipped_groups();
    if (!groups) return base::fail(std::move(groups));
    std::vector<std::string> said;
    ncu_metrics_ = ncu_metrics(ncu_metrics_, *groups, *can, said);
    for (const std::string& text : said) note("ncu: " + text);
  }
  ncu_can_ = std::move(*can);
  if (auto counted = plan_counters(); !counted) return counted;
  // Every rung that may be taken must have a plan; kernel mode always may.
  for (const collect::Rung& rung : collect::ladder(wish(), {}, *ncu_can_)) {
    if (!rung.take || rung.step == collect::Step::kNative) continue;
    auto plan = collect::ncu::Collector(*ncu_can_, ncu_options_for(rung.step, "ncu", {}, false)).plan(ncu_request());
    if (!plan && (mode_ != "auto" || rung.step == collect::Step::kKernel)) return base::fail(std::move(plan));
  }
  return {};
}

/// Metrics of ranges, and nothing that only ncu has: then the native stage counts while it looks. Without ncu it must.
base::Result<void> Pipeline::plan_counters() {
  const auto names = config_.list("pipeline.ncu.ncu_cli.metrics");
  if (names.empty()) return {};
  const collect::Wish wanted = wish();
  if (ncu_ && (mode_ != "auto" || wanted.sections || wanted.kernel_filter || !wanted.ranges)) return {};
  if (!native_) {
    no_counters_ = "the native stage is off";
    if (ncu_) return {};
    return base::fail(base::Code::kConfig, "metrics are asked for, and nsys measures none",
                      "pipeline.ncu.ncu_cli.metrics", "Switch ncu or the native stage on: --ncu or --native.");
  }
  args_.counters.ranges = ranges_;
  auto plan = prepare_counters(names, args_.counters);
  if (plan) {
    counters_ = std::move(*plan);
    return {};
  }
  no_counters_ = "native counters cannot be had: " + plan.error().what;
  return ncu_ ? base::Result<void>{} : base::fail(std::move(plan));
}

int Pipeline::print_plans() {
  run_ = runs::next_run_dir(config_.text("run.root").value_or(std::string(runs::kDefaultRoot)));
  const auto print = [&](const char* what, const base::Result<collect::Plan>& plan) {
    if (!plan) return say(plan.error());
    for (const std::string& text : plan->notes) base::info(std::string(what) + ": " + text);
    std::printf("# %s\n%s\n", what, collect::shell_command(*plan).c_str());
    return 0;
  };
  int code = 0;
  if (native_)
    code |= print("native", collect::native::make_collector(args_.native)->plan(base_request(config_, run_)));
  if (nsys_) code |= print("nsys", nsys_plan(base_request(config_, run_)));
  if (ncu_)
    for (const collect::Rung& rung : collect::ladder(wish(), {}, *ncu_can_)) {
      const std::string name = "ncu, " + std::string(collect::step_name(rung.step)) + ": " + rung.reason;
      if (!rung.take || rung.step == collect::Step::kNative)
        std::printf("# not tried: %s\n", name.c_str());
      else
        code |=
            print(name.c_str(),
                  collect::ncu::Collector(*ncu_can_, ncu_options_for(rung.step, "ncu", {}, false)).plan(ncu_request()));
    }
  return code;
}

base::Result<void> Pipeline::stages() {
  if (auto written = write_config(run_, config_); !written) return written;
  if (auto warm = warm_up(); !warm) return warm;
  if (native_) {
    wanted_.emplace_back("native");
    if (auto ran = native_stage("native"); !ran) return ran;
    if (counters_ && program_failed_ && !program_failed_->timed_out && !runner_->interrupted()) {
      if (auto ran = native_again(); !ran) return ran;
    }
    if (program_failed_ || runner_->interrupted()) return {};
  }
  // A look is worth a run of the program only where something is not certain.
  const auto kind_said = [](const model::RangeTerm& term) { return term.kind_said(); };
  const bool kinds_said =
      std::ranges::all_of(ranges_.include, kind_said) && std::ranges::all_of(ranges_.exclude, kind_said);
  const bool uncertain = ncu_ && (!kinds_said || (mode_ == "auto" && !ranges_.include.empty()));
  if (!native_ && !nsys_ && uncertain && config_.flag("pipeline.probe", true) && !args_.native.library.empty()) {
    note("looking at the program once without a profiler, to see which ranges it has (--no-probe forbids it)");
    if (auto ran = native_stage("look"); !ran) return ran;
    if (program_failed_ || runner_->interrupted()) return {};
  }
  if (nsys_) {
    wanted_.emplace_back("nsys");
    if (auto ran = nsys_stage(); !ran) return ran;
    if (runner_->interrupted()) return {};
  }
  if (ncu_) {
    wanted_.emplace_back("ncu");
    resolve();
    if (auto ran = ncu_stage(); !ran) return ran;
  }
  return {};
}

base::Result<void> Pipeline::warm_up() {
  const auto times = config_.integer("workload.warmup").value_or(0);
  for (std::int64_t i = 0; i < times; ++i) {
    const collect::Request request = base_request(config_, run_);
    collect::Plan plan;
    plan.collector = "warmup";
    plan.argv = request.command;
    plan.cwd = request.cwd;
    plan.set_env = request.env;
    plan.timeout = request.timeout;
    auto ran = runner_->run(plan, "warmup" + std::to_string(i + 1), {}, true);
    if (!ran) return base::fail(std::move(ran));
    if (!ran->ended.ok()) {
      program_failed_ = ran->ended;
      return base::fail(base::Code::kNothingCaptured,
                        "the program failed in its warm-up run, without any profiler: " + base::describe(ran->ended),
                        {}, "See warmup/warmup" + std::to_string(i + 1) + ".stderr in the run directory.");
    }
    if (runner_->interrupted()) return {};
  }
  return {};
}

/// `folder` "native": a stage of its own; "look": only to see the ranges, and its failures stop nothing.
base::Result<void> Pipeline::native_stage(const std::string& folder) {
  const bool look = folder != "native";
  collect::Request request = base_request(config_, look ? run_ / folder : run_);
  if (counters_ && !look) {
    if (auto written = write_counters(*counters_, run_, false, args_.native); !written) return written;
    note("native: " + cost_sentence(counters_->plan));
  }
  collect::native::Options native = args_.native;
  if (look)
    for (const auto& [name, value] : look_settings()) native.extra_env[name] = value;
  auto plan = collect::native::make_collector(native)->plan(request);
  if (!plan) return look ? base::Result<void>{} : base::fail(std::move(plan));
  for (const std::string& text : plan->notes) note("native: " + text);
  if (!look)
    if (auto written = record_->about_to_run(*plan); !written) return written;
  collect::Plan shown = *plan;
  shown.collector = folder;
  auto ran = runner_->run(shown, folder);
  if (!ran) return base::fail(std::move(ran));
  last_ = alone_ = ran->ended;
  if (!look)
    if (auto written = record_->ended(ran->ended); !written) return written;
  auto session = read::read_any(request.run_dir / "native");
  collect::Observed seen = observed(*ran, runner_->interrupted());
  seen.text.clear();
  seen.report = session.has_value();
  if (session) {
    seen.results = session->ranges.size() + session->kernels.size();
    native_session_ = std::move(*session);
  }
  const model::Session none;
  const bool whole = session || is_empty_folder(request.run_dir / "native");
  collect::Outcome outcome;
  outcome.result = seen.results > 0 ? collect::Result::kOk : collect::Result::kEmpty;
  outcome.message = seen.results > 0
                        ? "native: " + base::counted(native_session_->ranges.size(), "range") + ", " +
                              base::counted(native_session_->kernels.size(), "kernel")
                        : "native: " + (whole ? why_no_range(session ? *native_session_ : none) : session.error().what);
  if (!ran->ended.ok()) outcome.message += "; the program ended by " + base::describe(ran->ended);
  if (!look && seen.results > 0) captured_.emplace_back("native");
  if (!look && seen.results == 0) explanations_.push_back({outcome.message, whole});
  runs::Stage stage = StageRunner::stage_of(folder, base::tool_version(), "", outcome, *ran);
  stage.results = seen.results;
  stage.report = look ? "look/native" : "native";
  if (auto written = runner_->record(std::move(stage)); !written) return written;
  if (!ran->ended.ok() && !runner_->interrupted()) {
    program_failed_ = ran->ended;
    explanations_.push_back({"the program itself failed, without nsys and ncu: " + base::describe(ran->ended) +
                                 (nsys_ || ncu_ ? "; they were not started" : ""),
                             true});
  }
  return {};
}

/// The program failed while it was counted: without counters it shows whose fault that is.
base::Result<void> Pipeline::native_again() {
  no_counters_ = "the program ended by " + base::describe(*program_failed_) + " while native counters were collected";
  note("native: " + no_counters_ + "; once more without them");
  std::error_code error;
  for (const char* file : {"native", "counters.plan", "counters.json"}) {
    const std::filesystem::path kept = run_ / (std::string("counted-") + file);
    std::filesystem::rename(run_ / file, kept, error);
  }
  counters_.reset();
  args_.native.extra_env.erase("RANGESCOPE_COUNTERS");
  program_failed_.reset();
  native_session_.reset();
  explanations_.clear();
  std::erase(captured_, "native");
  cut_.push_back({"counters_failed", model::Severity::kWarning, 1, no_counters_});
  return native_stage("native");
}

/// Push/pop or start/end, from what was seen.
void Pipeline::resolve() {
  std::vector<std::string> notes;
  if (const model::Session* seen = timeline()) analyze::settle_kinds(ranges_, *seen, notes);
  for (const std::string& text : notes) note("ranges: " + text);
}

void Pipeline::diagnose(const std::vector<std::string>& missing) {
  const bool fatal = std::any_of(outcomes_.begin(), outcomes_.end(), [](const auto& one) { return one.second.fatal; });
  if (!timeline() && !fatal && !program_failed_ && config_.flag("pipeline.probe", true)) {
    if (args_.native.library.empty())
      if (auto library = collect::native::find_library()) args_.native.library = *library;
    if (!args_.native.library.empty()) {
      base::info("looking at the program once without a profiler, to say why nothing was captured");
      if (auto ran = native_stage("look"); !ran) base::detail("no look: " + ran.error().what);
      program_failed_.reset();  // the look's own failure is a finding, not the run's end
    }
  }
  std::optional<doctor::FailedCapture> failed;
  if (!missing.empty()) failed = doctor::FailedCapture{missing.back(), nsys_gated_};
  model::RangeSelection meant = args_.analysis.ranges;
  if (meant.include.empty())
    if (const auto range = config_.text("pipeline.nsys.nvtx_capture"))
      if (auto gate = model::parse_terms(*range)) meant.include = std::move(*gate);
  const model::Session* seen = timeline();
  std::vector<model::Finding> program;
  if (seen || program_failed_ || native_)
    program = diagnose_capture(seen, config_.list("workload.command"), meant,
                               alone_.value_or(base::Ended{.exit_code = 0}), failed);
  std::vector<model::Finding> tools;
  for (const auto& [tool, outcome] : outcomes_)
    for (model::Finding& finding : findings_of(outcome, tool)) tools.push_back(std::move(finding));
  findings_ = joined(std::move(program), std::move(tools));
  if (!table_tells())
    for (const model::Finding& finding : findings_) args_.talk.finding(finding);
}

std::string Pipeline::explanations(bool found) const {
  std::vector<std::string> texts;
  for (const Explanation& one : explanations_)
    if (found || !one.found) texts.push_back(one.text);
  return base::join(texts, "; ");
}

int Pipeline::conclude(const std::optional<base::Error>& failure) {
  int code = 0;
  std::string outcome = "ok", message;
  const auto fail_with = [&](int exit_code, std::string what, std::string text) {
    code = exit_code;
    outcome = std::move(what);
    message = std::move(text);
  };
  std::vector<model::Loss> losses = cut_;
  std::vector<std::string> missing;
  for (const std::string& stage : wanted_)
    if (std::find(captured_.begin(), captured_.end(), stage) == captured_.end()) missing.push_back(stage);
  if (!failure && !runner_->interrupted() && (!missing.empty() || captured_.empty())) diagnose(missing);
  if (failure)
    fail_with(say(*failure), "error", base::to_string(*failure));
  else if (auto written = reports(); !written)
    fail_with(say(written.error()), written.error().code == base::Code::kNothingCaptured ? "nothing_captured" : "error",
              base::to_string(written.error()));

  for (const std::string& stage : missing)
    losses.push_back(
        {"stage_empty", model::Severity::kWarning, 1,
         "stage " + stage + " captured nothing" + (explanations_.empty() ? "" : ": " + explanations(true))});
  // What the findings have told, the last line does not tell again.
  const bool told = !findings_.empty() && !args_.talk.quiet;
  std::string rest = explanations(!told);
  if (!rest.empty()) rest = ": " + rest;
  const std::string cure = told || findings_.empty() ? "" : findings_.front().hint;
  if (!failure && runner_->interrupted()) {
    fail_with(128 + runner_->signal(), "interrupted", "interrupted by " + base::signal_name(runner_->signal()));
  } else if (program_failed_ && !failure) {
    fail_with(program_failed_->exit_code.value_or(128 + program_failed_->signal.value_or(0)),
              program_failed_->timed_out ? "timed_out" : "program_failed", explanations(true));
  } else if (!failure && captured_.empty()) {
    // Nobody measured anything: 80, or what stood in the way (77 permission, 69 no driver ...).
    const base::Error error{worst_, "nothing was captured" + rest, run_.string(),
                            cure.empty() ? "Look at the logs in the run directory." : cure};
    fail_with(say(error), "nothing_captured",
              "nothing was captured: " + (explanations_.empty() ? "no stage had results" : explanations(true)));
  } else if (!failure && !missing.empty()) {
    // Part of what was asked for is missing: say so; the exit code is 80 when the last word was a tool's empty capture.
    fail_with(base::exit_code(worst_), "partial",
              "stage " + base::join(missing, ", ") + " captured nothing: " + explanations(true));
    base::warn("stage " + base::join(missing, ", ") + " captured nothing" + rest + (cure.empty() ? "" : ". " + cure));
  }
  if (auto finished = record_->finish(code, outcome, message, losses, findings_); !finished)
    (void)say(finished.error());
  if (code == 0)
    if (const auto keep = config_.integer("run.keep")) {
      const auto now =
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count();
      runs::Retention retention;
      retention.keep = static_cast<std::size_t>(*keep);
      for (const runs::Candidate& old : runs::prunable(run_.parent_path(), retention, now))
        if (old.path != run_) {
          if (auto removed = runs::remove_run(old.path); removed)
            base::detail("run.keep: removed " + old.path.string());
        }
    }
  base::info("run kept in " + run_.string());
  return code;
}

}  // namespace rangescope::profile
