// The ncu stage: which kernels, which replay mode, tried in the ladder's order, each success proved by reading the
// report.

#include <tuple>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "doctor/program/facts.hpp"
#include "ncu_pages/pages.hpp"
#include "profile/engine.hpp"
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
    if (fs::path file = base.string() + extension; fs::exists(file, ignored)) return file;
  return {};
}

}  // namespace

collect::Wish Engine::wish() const {
  collect::Wish wish;
  wish.mode = mode_;
  wish.every = base_request(config_, run_).every;
  wish.ranges = !args_.analysis.ranges.include.empty();
  const auto options = ncu_options(config_);
  const auto given = [&](const char* key) { return options.values.count(key) > 0; };
  // A preset's own kernel_name narrows kernel replay, and keeps nobody from measuring ranges.
  const bool named = config_.set_by_user("kernels.include") || config_.set_by_user("pipeline.ncu.ncu_cli.kernel_name");
  wish.kernel_filter = (named && !args_.analysis.kernels.include.empty()) || given("kernel_id");
  wish.metrics = !asked_metrics_.empty();
  wish.sections = given("sections") || given("set") || !wish.metrics;
  wish.native_counters = counters_.has_value();
  wish.no_native_counters = no_counters_;
  return wish;
}

collect::Request Engine::ncu_request() const {
  collect::Request request = base_request(config_, run_.empty() ? "/run" : run_);
  request.ranges = ranges_;
  request.kernels = args_.analysis.kernels;
  return request;
}

collect::ncu::Options Engine::ncu_options_for(Step step, const std::string& report,
                                              const std::vector<std::string>& kernels, bool trial) const {
  collect::ncu::Options options = ncu_options(config_);
  options.replay_mode = collect::step_name(step);
  options.report = report;
  options.kernels = kernels;
  if (!ncu_metrics_.empty()) options.values["metrics"] = ncu_metrics_;
  if (process_scope_) options.values["push_pop_scope"] = {"process"};
  if (collect::is_ladder(mode_)) {  // what only some rungs know must not stop the others
    for (const auto& row : collect::option_table("ncu"))
      if (row.modes != collect::kEveryMode) options.asked.erase(std::string(row.key));
  }
  if (trial) {
    options.values["launch_count"] = {"1"};
    options.values["kill"] = {"true"};
  }
  return options;
}

/// Names of the kernels that matter, from the timeline; none where the user named kernels or ranges are measured whole.
base::Result<void> Engine::ncu_kernels() {
  kernel_groups_ = {{}};
  const auto options = ncu_options(config_);
  const auto top = config_.integer("pipeline.ncu.top_n").value_or(0);
  if (top == 0 || !args_.analysis.kernels.include.empty() || options.values.count("kernel_id")) return {};
  const model::Session* seen = timeline();
  if (!seen || seen->kernels.empty()) {
    if (nsys_ || native_) note("ncu: no earlier stage saw kernels, so none are chosen by time");
    return {};
  }
  analyze::Options within = args_.analysis;
  within.ranges = config_.flag("pipeline.ncu.gating_nvtx", true) ? ranges_ : model::RangeSelection{};
  auto chosen = analyze::top_kernels(*seen, within, static_cast<std::size_t>(top));
  if (!chosen) {
    note("ncu: no kernels were chosen by time: " + chosen.error().what);
    return {};
  }
  std::vector<std::string> names;
  std::string told;
  for (const analyze::ChosenKernel& kernel : *chosen) {
    names.push_back(kernel.name);
    if (names.size() <= 5)
      told += (told.empty() ? "" : ", ") + kernel.name + " (" + base::format_ns(kernel.total_ns) + ")";
  }
  if (names.empty()) return {};
  kernel_groups_ = collect::ncu::split_kernels(names);
  note("ncu: the " + base::counted(names.size(), "kernel") + " with the most GPU time" +
       (ranges_.include.empty() ? "" : " in the ranges") + ": " + told + (names.size() > 5 ? ", ..." : ""));
  if (kernel_groups_.size() > 1)
    base::warn("ncu: their names are too long for one command line; ncu runs " + std::to_string(kernel_groups_.size()) +
               " times");
  return {};
}

/// One run of ncu, judged by its report.
Outcome Engine::ncu_step(Step step, const std::string& report, const std::vector<std::string>& kernels, bool trial) {
  Outcome failed;
  const auto options = ncu_options_for(step, report, kernels, trial);
  const collect::Request request = ncu_request();
  auto plan = collect::ncu::plan(*ncu_can_, options, request);
  if (!plan) {
    failed.message = "ncu: " + plan.error().what;
    failed.code = plan.error().code;
    failed.complaints.push_back({"ncu.plan", plan.error().where, plan.error().what, plan.error().hint, false, false});
    runs::Stage stage = StageRunner::stage_of("ncu", "ncu " + collect::to_string(ncu_can_->version),
                                              std::string(collect::step_name(step)), failed, {});
    stage.outcome = "refused";
    runner_->record(std::move(stage));
    return failed;
  }
  for (const std::string& text : plan->notes) note("ncu: " + text);
  if (!native_ && !nsys_ && !last_)
    if (auto written = record_->about_to_run(*plan); !written) base::warn(written.error().what);
  const fs::path base = collect::ncu::report_base(request, options);
  std::error_code ignored;
  for (const char* extension : {".ncu-rep", ".ncu-repz"})
    fs::remove(base.string() + extension, ignored);  // an old report proves nothing
  auto ran = runner_->run(*plan, report, base.string() + ".log");
  if (!ran) {
    failed.message = "ncu: " + ran.error().what;
    failed.code = ran.error().code;
    failed.fatal = true;
    return failed;
  }
  last_ = ran->ended;
  if (!native_ && !nsys_)
    if (auto written = record_->ended(ran->ended); !written) base::warn(written.error().what);
  collect::Observed seen = observed(*ran, runner_->interrupted());
  const fs::path file = report_file(base);
  std::optional<model::Session> session;
  std::optional<base::Error> unread;
  if (!file.empty()) {
    auto read = read::read_any(file);
    seen.report = read.has_value();
    if (read) {
      seen.results = read->measurements.size();
      session = std::move(*read);
    } else {
      unread = std::move(read).error();
    }
  }
  Outcome outcome = collect::judge_ncu(seen);
  if (unread && outcome.complaints.empty()) {
    outcome.result = collect::Result::kFailed;
    outcome.message = "ncu: its report cannot be read: " + unread->what;
    outcome.code = base::Code::kNothingCaptured;
    outcome.complaints.push_back({"ncu.report", unread->where, outcome.message.substr(5), unread->hint, false, true});
  }
  runs::Stage stage =
      StageRunner::stage_of("ncu", "ncu " + collect::to_string(ncu_can_->version),
                            std::string(collect::step_name(step)) + (trial ? " (one instance)" : ""), outcome, *ran);
  stage.results = seen.results;
  if (!file.empty()) stage.report = file.lexically_relative(run_).string();
  runner_->record(std::move(stage));
  if (outcome.result == collect::Result::kOk && !trial) {
    cut_short("ncu", ran->ended);
    ncu_capture_ = ncu_session_ ? fs::path() : file;
    read::join_to(ncu_session_, std::move(*session));
    ncu_exports(file, report);
  }
  return outcome;
}

Outcome Engine::ncu_attempts(Step step, const std::string& report, const std::vector<std::string>& kernels,
                             bool trial) {
  const int retries = static_cast<int>(config_.integer("run.retries").value_or(1));
  for (int attempt = 1;; ++attempt) {
    Outcome outcome = ncu_step(step, report, kernels, trial);
    if (runner_->interrupted() || !collect::try_again(outcome, attempt, retries)) return outcome;
    base::warn(outcome.why() + ": trying again (" + std::to_string(attempt) + " of " + std::to_string(retries) + ")");
  }
}

/// ncu counts a push/pop range for the thread that opened it. Kernels of another thread (PyTorch's backward pass) are
/// in no range to it: where most of them are so, the scope is the process; where some are, a note tells.
void Engine::other_threads(const collect::Evidence& evidence) {
  const std::uint64_t others = evidence.other_thread_kernels, all = evidence.kernels.value_or(0);
  if (others == 0 || config_.get("pipeline.ncu.ncu_cli.push_pop_scope")) return;
  const std::string seen = std::to_string(others) + " of " + base::counted(all, "kernel") +
                           " in the ranges launched by threads that did not open them";
  if (!ncu_can_->has("--nvtx-push-pop-scope"))
    note("ncu: " + seen + "; ncu " + collect::to_string(ncu_can_->version) +
         " cannot see those (2025.1 and newer can, with push_pop_scope=process)");
  else if (2 * others <= all)
    note("ncu: " + seen + "; ncu sees those only with push_pop_scope=process");
  else {
    note("ncu: " + seen + ", so push_pop_scope=process is passed");
    process_scope_ = true;
  }
}

/// The native stage ran with its counters; what it has is in its own session. True when every range has some: then
/// nothing is left to ncu. Ranges that have them are not measured again.
base::Result<bool> Engine::native_rung(const std::string& reason) {
  const auto missing = native_session_ ? analyze::unmeasured(*native_session_, ranges_) : ranges_.include;
  const bool some = missing.size() < ranges_.include.size();
  const std::size_t results = native_session_ ? native_session_->measurements.size() : 0;
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
    if (native_session_)
      for (const model::Loss& loss : native_session_->losses)
        if (loss.kind.area() == model::LossArea::kCounters && loss.severity != model::Severity::kInfo) {
          stage.evidence = loss.detail;
          break;
        }
  }
  note("replay mode native: " + (missing.empty() ? reason : stage.message));
  if (some) {
    captured_.emplace_back("ncu");
    ranges_.include = missing;
  }
  runner_->record(std::move(stage));
  return missing.empty();
}

base::Result<void> Engine::ncu_stage() {
  TRY(ncu_kernels());
  collect::Evidence evidence;
  if (const model::Session* seen = timeline(); seen && !ranges_.include.empty())
    evidence = doctor::evidence_of(doctor::gather(*seen, ranges_));
  // A counted run's timeline sees the first occurrences only, and a light one no kernel: what is not seen may be there.
  const auto set = [&](const char* name) { return args_.native.extra_env.contains(name) && !nsys_; };
  if (counters_ || set(wire::kLight) || set(wire::kOverhead)) {
    evidence.alike.reset();
    if (evidence.kernels == 0) evidence.kernels.reset();
  }
  if (!ranges_.include.empty() && evidence.occurrences == 0)
    note("ncu: the previous stage saw none of the chosen ranges; trying anyway");
  other_threads(evidence);
  const auto rungs = collect::ladder(wish(), evidence, *ncu_can_);
  Outcome last;
  for (const collect::Rung& rung : rungs) {
    const std::string name(collect::step_name(rung.step));
    if (!rung.take) {
      if (collect::is_ladder(mode_)) note("replay mode " + name + " not tried: " + rung.reason);
      runner_->record({.stage = "ncu",
                       .tool = "ncu " + collect::to_string(ncu_can_->version),
                       .step = name,
                       .outcome = "refused",
                       .message = rung.reason});
      continue;
    }
    if (rung.step == Step::kNative) {
      const auto enough = TRY(native_rung(rung.reason));
      if (enough) return {};
      continue;
    }
    if (collect::is_ladder(mode_)) note("replay mode " + name + ": " + rung.reason);
    const bool ranges = rung.step == Step::kRange || rung.step == Step::kAppRange;
    if (collect::is_ladder(mode_) && rung.step == Step::kRange &&
        config_.integer("pipeline.ncu.ncu_cli.launch_count").value_or(2) != 1) {
      note("replay mode " + name + " is tried on one instance first");
      last = ncu_attempts(rung.step, "trial-range", {}, true);
      if (last.result != collect::Result::kOk) {
        if (last.fatal || runner_->interrupted()) break;
        continue;
      }
    }
    std::size_t ok = 0;
    const std::vector<std::vector<std::string>> whole{{}};
    const auto& groups = ranges ? whole : kernel_groups_;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      last = ncu_attempts(rung.step, i == 0 ? "ncu" : "ncu-" + std::to_string(i + 1), groups[i], false);
      if (last.result == collect::Result::kOk)
        ++ok;
      else if (ok > 0)
        explanations_.push_back(
            {"run " + std::to_string(i + 1) + " of " + std::to_string(groups.size()) + ": " + last.message});
      if (last.fatal || runner_->interrupted()) break;
    }
    if (ok > 0) {
      captured_.emplace_back("ncu");
      base::info("ncu: " + base::counted(ncu_session_->measurements.size(), "result") + " in replay mode " + name);
      return {};
    }
    if (last.fatal || runner_->interrupted()) break;
  }
  worst_ = last.code == base::Code::kInternal ? base::Code::kNothingCaptured : last.code;
  explanations_.push_back({last.message, true});
  outcomes_.emplace_back("ncu", last);
  return {};
}

/// ncu's own tables beside the report, for people and scripts that know them.
void Engine::ncu_exports(const fs::path& report, const std::string& stem) const {
  const auto file = ncu_pages::File::open(report);
  if (!file) return;  // its reading has told
  ncu_pages::PageOptions options;
  options.base_units = true;
  if (ncu_can_->version < collect::Version{2025, 1, 0}) options.spelling = model::UnitSpelling::kNcu2024;
  for (const auto& [page, name, csv] : {std::tuple{ncu_pages::Page::kRaw, "raw.csv", true},
                                        {ncu_pages::Page::kDetails, "details.csv", true},
                                        {ncu_pages::Page::kDetails, "sections_report.txt", false}}) {
    if (!config_.flag(csv ? "pipeline.ncu.ncu_cli.export.csv" : "pipeline.ncu.ncu_cli.export.sections", true)) continue;
    options.page = page;
    options.csv = csv;
    std::string text;
    std::vector<model::Loss> losses;
    auto printed = ncu_pages::print_pages(
        *file, options, [&](std::string_view more) { text += more; }, losses);
    const fs::path out = run_ / "ncu" / ((stem == "ncu" ? "" : stem + "-") + name);
    if (printed) printed = base::write_file(out, text);
    if (!printed) base::warn(std::string(name) + " of ncu's report is missing: " + printed.error().what);
  }
}

}  // namespace rangescope::profile
