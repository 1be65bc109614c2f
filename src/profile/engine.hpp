// One run of `rangescope profile`: warm-up, native, repetitions and relaunches of it, nsys, ncu, each a stage that may
// be asked for with any other. What they leave is one run directory; what becomes of it is concluded in one place.
//
// Order and reasons are in docs/manual/pipeline.md. What is wrong in the configuration is found before anything runs
// and before a directory is made (78, 69, 77). After that every run leaves the same files, whatever its end was.
// Repetitions are runs of their own below the whole (docs/design/repeats.md). The program's output is that of its first
// run; what later runs print lies beside their captures.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/tree/meant.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "collect/native/counter_plan.hpp"
#include "collect/native/native.hpp"
#include "collect/nsight/ladder.hpp"
#include "config/compose.hpp"
#include "model/session.hpp"
#include "profile/analyzed.hpp"
#include "profile/counters.hpp"
#include "profile/record.hpp"
#include "profile/sampling.hpp"
#include "profile/settings.hpp"
#include "profile/tool_run.hpp"
#include "profile/windows.hpp"
#include "profile/worker.hpp"
#include "sample/cpu/target.hpp"

namespace rangescope::profile {

/// What a person sees of a run.
struct Talk {
  bool quiet = false;
  std::function<base::Result<void>(const Analyzed&)> report;  ///< shows the report; empty: nobody wants to see it
  bool report_tells = false;                                  ///< and its findings and notes with it
  std::function<void(const model::Finding&)> finding;         ///< prints one by itself
};

/// Repetitions until a change of 5 % shows (analyze::enough_runs).
inline constexpr int kAutoRepeat = 0, kLeastRepeats = 5, kMostRepeats = 30;

/// A process that runs already: it is watched for a while, instead of a program being run.
struct Attach {
  sample::cpu::Target target;
  std::optional<std::chrono::nanoseconds> length;  ///< absent: until it ends, or a signal comes
  bool tree = false;
  std::filesystem::path library = {};  ///< loaded into it, for its work on GPUs; "" for its CPU alone
  bool gpu_or_fail = false;
};

struct Settings {
  std::optional<Attach> attach;
  analyze::Options analysis;  ///< its ranges and kernels come from the configuration
  collect::native::Options native;
  SampleChoice sampling;
  WindowChoice windows;
  collect::native::CounterRequest counters;  ///< how; metrics and ranges come from the configuration
  std::vector<std::string> arguments;        ///< rangescope's own, for the manifest
  Talk talk;
  int repeat = 1;  ///< runs of the native stage, or kAutoRepeat
  bool dry_run = false;
  bool strict = false;
};

/// How a run ended.
struct Done {
  int code = 0;                       ///< rangescope's own exit code
  std::optional<base::Ended> end{};   ///< the program failed: we end as it did
  std::filesystem::path directory{};  ///< "" where none was made
};

using base::say;

/// All stages of a run. Its messages are printed when it returns.
[[nodiscard]] Done run(const config::Config& config, Settings settings);

/// The state that the stages share. One object a run, and one a repetition.
class Engine {
 public:
  Engine(const config::Config& config, Settings settings) : config_(config), args_(std::move(settings)) {}
  [[nodiscard]] Done run();

 private:
  /// What it comes to, for status.json and the exit code.
  struct Conclusion {
    int code = 0;
    std::string outcome = "ok", message;
  };

  // engine.cpp
  [[nodiscard]] base::Result<void> prepare();
  [[nodiscard]] base::Result<collect::Abilities> able(const std::string& tool) const;
  [[nodiscard]] base::Result<void> check_windows() const;
  [[nodiscard]] base::Result<void> prepare_ncu();
  [[nodiscard]] base::Result<void> plan_counters();
  [[nodiscard]] int print_plans();
  [[nodiscard]] Done run_in(RunRecord record);
  [[nodiscard]] base::Result<void> stages();
  void resolve();
  [[nodiscard]] const model::Session* timeline() const;
  void note(const std::string& text);
  void cut_short(const std::string& stage, const base::Ended& ended);

  // stage_native.cpp
  [[nodiscard]] base::Result<void> warm_up();
  [[nodiscard]] base::Result<void> native_stages();
  [[nodiscard]] base::Result<void> native_stage(const std::string& folder);
  /// What the stage has left, read: behind the end of the program.
  [[nodiscard]] base::Result<void> read_native(const std::string& folder, const std::filesystem::path& captures,
                                               std::optional<sample::cpu::Recorder>& cpu, const ToolRun& ran);
  [[nodiscard]] base::Result<void> native_again();
  [[nodiscard]] base::Result<void> relaunches();
  [[nodiscard]] base::Result<void> repetitions();
  [[nodiscard]] collect::Plan warm_up_plan() const;
  [[nodiscard]] base::Result<collect::Plan> native_plan(const std::filesystem::path& run) const;

  // stage_attach.cpp
  [[nodiscard]] base::Result<void> attach_stage();

  // conclude.cpp
  [[nodiscard]] Done conclude(const std::optional<base::Error>& failure);
  [[nodiscard]] Conclusion conclusion(const std::optional<base::Error>& failure, const base::Result<void>& reported,
                                      const std::vector<std::string>& missing);
  /// Looks at the program once more where nothing is known of it, and explains why stages captured nothing.
  void diagnose(const std::vector<std::string>& missing, bool reported);
  /// Of a rank's job, by the last one to finish.
  void show_job(Done& done) const;
  void remove_old_runs() const;
  void compress_old_runs() const;

  // reports.cpp
  /// Takes the sessions that stages have read.
  [[nodiscard]] base::Result<Analyzed> analyzed();
  /// Reads them again for who needs them after that.
  void read_again();
  /// `show`: something was captured, and a person may see it.
  [[nodiscard]] base::Result<void> write_reports(Analyzed& analyzed, bool show);
  [[nodiscard]] base::Result<void> write_files(const Analyzed& analyzed) const;

  // stage_nsys.cpp
  [[nodiscard]] base::Result<void> nsys_stage();
  [[nodiscard]] base::Result<std::vector<std::filesystem::path>> nsys_reports();
  [[nodiscard]] base::Result<void> nsys_export(const std::filesystem::path& report);
  [[nodiscard]] base::Result<void> nsys_exports(const std::vector<std::filesystem::path>& reports);
  [[nodiscard]] base::Result<collect::Plan> nsys_plan(const collect::Request& request) const;

  // stage_ncu.cpp
  [[nodiscard]] base::Result<void> ncu_stage();
  [[nodiscard]] base::Result<void> ncu_kernels();
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
  void ncu_exports(const std::filesystem::path& report, const std::string& stem) const;

  struct Explanation {
    std::string text;
    bool found = false;  ///< a finding covers it
  };
  /// Joined; `found`: those too that a finding tells.
  [[nodiscard]] std::string explanations(bool found) const;

  const config::Config& config_;
  Settings args_;
  bool native_ = false, nsys_ = false, ncu_ = false;
  std::map<std::string, std::string> inputs_;  ///< of the program, as they were found
  std::string mode_;
  std::optional<collect::Abilities> nsys_can_, ncu_can_;
  model::RangeSelection ranges_;  ///< what is left to measure; kinds settled once they were seen
  std::vector<std::vector<std::string>> kernel_groups_;
  std::vector<std::string> asked_metrics_;    ///< for ncu, as written
  std::vector<std::string> ncu_metrics_;      ///< groups replaced by what they are made of
  std::optional<PreparedCounters> counters_;  ///< what the native stage counts
  std::string no_counters_;                   ///< why it does not
  std::optional<model::Finding> uncounted_;   ///< the same, where metrics were asked for all the same
  bool process_scope_ = false;                ///< push/pop ranges are to count for every thread of the process
  std::optional<RunRecord> record_;
  std::optional<StageRunner> runner_;
  std::shared_ptr<Worker> worker_;  ///< one for all repetitions
  std::optional<model::Session> native_session_, nsys_session_, ncu_session_;
  /// Captures that these sessions are the whole content of; "" where several were joined.
  std::filesystem::path native_capture_, nsys_capture_, ncu_capture_;
  std::filesystem::path run_;
  std::optional<base::Ended> program_failed_;  ///< the program itself failed, without nsys and ncu
  bool finished_ = false;                      ///< every stage had its turn
  bool unopened_ = false;                      ///< windows were asked for, and none came
  bool repetition_ = false;                    ///< this is one of several
  Conclusion concluded_;
  std::optional<Conclusion> repeated_;          ///< of the repetition that ended the series
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
