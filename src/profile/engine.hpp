// One pipeline around a program: native, then nsys, then ncu on what matters, everything checked in between.
//
// Order and reasons are in docs/manual/pipeline.md. Each stage leaves its files below the run directory and a line in
// stages.json. The exit code: the program's own failure, else 78/69/77 before anything ran, else 80 when no stage that
// was asked for captured anything, else 0.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/meant.hpp"
#include "base/result.hpp"
#include "collect/ladder.hpp"
#include "collect/native/counter_plan.hpp"
#include "collect/native/native.hpp"
#include "config/compose.hpp"
#include "model/session.hpp"
#include "profile/analyzed.hpp"
#include "profile/counters.hpp"
#include "profile/record.hpp"
#include "profile/settings.hpp"
#include "profile/tool_run.hpp"

namespace rangescope::profile {

/// What a person sees of a run.
struct Talk {
  bool quiet = false;
  std::function<base::Result<void>(const Analyzed&)> report;  ///< shows the report; empty: nobody wants to see it
  bool report_tells = false;                                  ///< and its findings and notes with it
  std::function<void(const model::Finding&)> finding;         ///< says one by itself
};

struct PipelineArguments {
  analyze::Options analysis;
  collect::native::Options native;
  collect::native::CounterRequest counters;  ///< how; which metrics and ranges, the configuration says
  std::vector<std::string> arguments;        ///< rangescope's own, for the manifest
  Talk talk;
  bool dry_run = false;
  bool strict = false;
};

/// True when nsys or ncu is asked for, or native is switched off: then run_pipeline, not the plain native profile.
[[nodiscard]] bool pipeline_wanted(const config::Config& config);
/// The whole of it; the exit code. Everything said was said.
[[nodiscard]] int run_pipeline(const config::Config& config, PipelineArguments arguments);

/// The state that the stages share. One object a run; stages are called in order by run_pipeline.
class Pipeline {
 public:
  Pipeline(const config::Config& config, PipelineArguments arguments) : config_(config), args_(std::move(arguments)) {}
  [[nodiscard]] int run();

 private:
  // pipeline.cpp
  [[nodiscard]] base::Result<void> prepare();
  [[nodiscard]] base::Result<void> prepare_ncu();
  [[nodiscard]] base::Result<void> plan_counters();
  [[nodiscard]] int print_plans();
  [[nodiscard]] base::Result<void> stages();
  [[nodiscard]] base::Result<void> warm_up();
  [[nodiscard]] base::Result<void> native_stage(const std::string& folder);
  [[nodiscard]] base::Result<void> native_again();
  void resolve();
  [[nodiscard]] int conclude(const std::optional<base::Error>& failure);
  [[nodiscard]] base::Result<void> reports();
  [[nodiscard]] const model::Session* timeline() const;
  void note(const std::string& text);
  /// Looks at the program once more where nothing is known of it, and says why stages captured nothing.
  void diagnose(const std::vector<std::string>& missing);
  void cut_short(const std::string& stage, const base::Ended& ended);

  // pipeline_nsys.cpp
  [[nodiscard]] base::Result<void> nsys_stage();
  [[nodiscard]] base::Result<std::vector<std::filesystem::path>> nsys_reports();
  [[nodiscard]] base::Result<void> nsys_import(const std::filesystem::path& importer,
                                               const std::filesystem::path& stream, const std::filesystem::path& report,
                                               const std::string& number);
  [[nodiscard]] base::Result<void> nsys_export(const std::filesystem::path& report);
  [[nodiscard]] base::Result<void> nsys_exports(const std::vector<std::filesystem::path>& reports);
  [[nodiscard]] base::Result<collect::Plan> nsys_plan(const collect::Request& request) const;

  // pipeline_ncu.cpp
  [[nodiscard]] base::Result<void> ncu_stage();
  [[nodiscard]] base::Result<void> ncu_kernels();
  [[nodiscard]] std::string filter_hint() const;
  void other_threads(const collect::Evidence& evidence);
  [[nodiscard]] base::Result<bool> native_rung(const std::string& reason);
  [[nodiscard]] collect::Outcome ncu_step(collect::Step step, const std::string& report,
                                          const std::vector<std::string>& kernels, bool trial);
  [[nodiscard]] collect::Outcome ncu_attempts(collect::Step step, const std::string& report,
                                              const std::vector<std::string>& kernels, bool trial);
  [[nodiscard]] collect::ncu::Options ncu_options_for(collect::Step step, const std::string& report,
                                                      const std::vector<std::string>& kernels, bool trial) const;
  [[nodiscard]] collect::Request ncu_request() const;
  [[nodiscard]] collect::Wish wish() const;
  void ncu_exports(const std::filesystem::path& report, const std::string& stem);

  struct Explanation {
    std::string text;
    bool found = false;  ///< a finding says the same
  };
  /// Joined; `found`: those too that a finding tells.
  [[nodiscard]] std::string explanations(bool found) const;
  /// Are findings told below the table, which nobody sent elsewhere?
  [[nodiscard]] bool table_tells() const {
    return args_.talk.report && args_.talk.report_tells && (timeline() || !captured_.empty());
  }

  const config::Config& config_;
  PipelineArguments args_;
  bool native_ = false, nsys_ = false, ncu_ = false;
  std::string mode_;
  std::optional<collect::Abilities> nsys_can_, ncu_can_;
  model::RangeSelection ranges_;  ///< what is left to measure; kinds settled once they were seen
  std::vector<std::vector<std::string>> kernel_groups_;
  std::vector<std::string> ncu_metrics_;      ///< groups replaced by what they are made of
  std::optional<PreparedCounters> counters_;  ///< what the native stage counts
  std::string no_counters_;                   ///< why it does not
  bool process_scope_ = false;                ///< push/pop ranges are to count for every thread of the process
  std::optional<RunRecord> record_;
  std::optional<StageRunner> runner_;
  std::optional<model::Session> native_session_, nsys_session_, ncu_session_;
  std::filesystem::path run_;
  std::optional<base::Ended> program_failed_;   ///< the program itself failed in the native stage
  std::optional<base::Ended> last_, alone_;     ///< of any stage; of the program without nsys and ncu
  std::vector<std::string> wanted_, captured_;  ///< stages asked for; stages with results
  std::vector<model::Loss> cut_;                ///< of stages that have results: the time limit, counters that failed
  std::vector<Explanation> explanations_;       ///< why something is missing
  std::vector<model::Finding> findings_;        ///< the same, as causes with cures
  std::vector<std::pair<std::string, collect::Outcome>> outcomes_;  ///< of tools that captured nothing
  bool nsys_gated_ = false;                                         ///< by a range, and at registered strings only
  base::Code worst_ = base::Code::kNothingCaptured;
  std::vector<std::string> notes_;
};

}  // namespace rangescope::profile
