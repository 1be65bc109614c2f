// The stages of a run, and what they share. A run is a list of them, made by engine.cpp from what
// was asked for; each is prepared, printed (--dry-run) or run in its turn, and knows nothing of the
// others but what they left in `Run`.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/tree/meant.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "collect/nsight/abilities.hpp"
#include "collect/nsight/ladder.hpp"
#include "model/session.hpp"
#include "profile/counters.hpp"
#include "profile/engine.hpp"
#include "profile/record.hpp"
#include "profile/settings.hpp"
#include "profile/tool_run.hpp"
#include "profile/worker.hpp"

namespace rangescope::profile {

using base::say;

/// Final status of the run: written to status.json and returned as the exit code.
struct Conclusion {
  int code = 0;
  std::string outcome = "ok", message = {};
};

/// What a stage has read, for those after it and for the report.
struct StageData {
  std::optional<model::Session> session;
  std::filesystem::path
      path;  ///< of the capture that it is the whole of; "" where several were joined
};

struct Explanation {
  std::string text;
  bool found = false;  ///< a finding covers it
};

/// One object a run, and one a repetition.
struct Run {
  Run(const config::Config& composed, Settings settings)
      : config(composed), args(std::move(settings)) {}

  // What is asked for.
  const config::Config& config;
  Settings args;
  struct {
    bool native = false, nsys = false, ncu = false;
  } asked;
  bool repetition = false;       ///< this is one of several
  model::RangeSelection ranges;  ///< what is left to measure; kinds settled once they were seen
  std::optional<PreparedCounters> counters;   ///< what the native stage counts
  std::map<std::string, std::string> inputs;  ///< of the program, as they were found
  std::string no_counters;                    ///< why it does not
  std::optional<model::Finding> uncounted;  ///< the same, where metrics were asked for all the same

  // Where it is kept.
  std::filesystem::path folder;
  std::optional<RunRecord> record;
  std::optional<StageRunner> runner;
  std::shared_ptr<Worker> worker;  ///< one for all repetitions

  // What was seen.
  StageData by_native, by_nsys, by_ncu;
  std::optional<base::Ended> program_failed;  ///< the program itself failed, without nsys and ncu
  std::optional<base::Ended> last, alone;     ///< of any stage; of the program without nsys and ncu
  std::vector<std::string> wanted, captured;  ///< stages asked for; stages with results

  // What came of it.
  bool finished = false;               ///< every stage had its turn
  bool unopened = false;               ///< windows were asked for, and none came
  std::optional<Conclusion> repeated;  ///< of the repetition that ended the series
  Conclusion concluded;
  std::vector<model::Loss>
      cut;  ///< of stages that have results: the time limit, counters that failed
  std::vector<Explanation> explanations;  ///< why something is missing
  std::vector<model::Finding> findings;   ///< the same, as causes with cures
  std::vector<std::pair<std::string, collect::Outcome>>
      outcomes;             ///< of tools that captured nothing
  bool nsys_gated = false;  ///< by a range, and at registered strings only
  base::Code worst = base::Code::kNothingCaptured;
  std::vector<std::string> notes;

  /// How the program ended where that was no good end, or the user stopped us.
  [[nodiscard]] const std::optional<base::Ended>& bad_end() const {
    return program_failed ? program_failed : worker->stopped();
  }
  /// The better of those that were recorded; null for none.
  [[nodiscard]] const model::Session* timeline() const;
  /// Said now and in the report, once.
  void note(const std::string& text);
  /// A stage with results that the time limit ended: what came after is missing, and every report
  /// lists it.
  void cut_short(const std::string& stage, const base::Ended& ended);
  /// The program failed by itself, or somebody interrupted: no further stage is begun.
  [[nodiscard]] bool over() const { return program_failed || repeated || runner->interrupted(); }
};

class Stage {
 public:
  explicit Stage(Run& run) : run_(run) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  /// All that can be known to be wrong before the program starts: 64, 69, 77, 78. Writes nothing.
  [[nodiscard]] virtual base::Result<void> prepare() { return {}; }
  /// Prints the shell commands that do by hand what run() would do. Exit code.
  [[nodiscard]] virtual int print() { return 0; }
  /// What kept it from capturing is in the run; an error only for what ends the whole run.
  [[nodiscard]] virtual base::Result<void> run() = 0;

 protected:
  Run& run_;
};

using Stages = std::vector<std::unique_ptr<Stage>>;

// Each in the file of its name, stage_*.cpp.
[[nodiscard]] std::unique_ptr<Stage> attach_stage(Run& run);
[[nodiscard]] std::unique_ptr<Stage> idle_stage(Run& run, std::chrono::nanoseconds limit);
[[nodiscard]] std::unique_ptr<Stage> warm_up_stage(Run& run);
[[nodiscard]] std::unique_ptr<Stage> native_stage(Run& run);
/// Runs the program only to see its ranges: what fails there stops nothing. `why`: for a note, ""
/// for none.
[[nodiscard]] std::unique_ptr<Stage> look_stage(Run& run, std::string why);
/// The native stage several times, each a run of its own below the whole (docs/design/repeats.md).
[[nodiscard]] std::unique_ptr<Stage> repeated_stage(Run& run);
[[nodiscard]] std::unique_ptr<Stage> nsys_stage(Run& run);
[[nodiscard]] std::unique_ptr<Stage> ncu_stage(Run& run);

/// What is asked for, in the order in which it runs.
[[nodiscard]] Stages stages_of(Run& run);
/// Runs the stages and concludes; `record` is the directory, just begun.
[[nodiscard]] Done run_in(Run& run, RunRecord record, const Stages& stages);

/// Metrics of ranges, and nothing that only ncu has: then the native stage counts while it looks.
/// Without ncu it must.
[[nodiscard]] base::Result<void> plan_counters(Run& run);
/// Of ncu, or where its ladder begins: "auto", "range", "range-or-kernel" ...
[[nodiscard]] std::string replay_mode(const config::Config& config);
/// What is wanted of ncu's stage, for its ladder of replay modes.
[[nodiscard]] collect::Wish wish_of(const Run& run);
/// Metrics for ncu, as written.
[[nodiscard]] std::vector<std::string> metrics_of(const config::Config& config);
/// What the installed tool can do; without one a plan that is only shown is made for the newest
/// version that is known.
[[nodiscard]] base::Result<collect::Abilities> able(const Run& run, const std::string& tool);
/// Prints one plan of a stage, "# title" above it. Exit code.
[[nodiscard]] int print_plan(const std::string& title, const base::Result<collect::Plan>& plan);
/// The library that is loaded into the program, into the settings. kToolMissing.
[[nodiscard]] base::Result<void> find_library(Run& run);
[[nodiscard]] base::Result<collect::Plan> native_plan(const Run& run,
                                                      const std::filesystem::path& folder);
[[nodiscard]] int print_native(Run& run,
                               const std::filesystem::path& folder,
                               const std::string& title);
/// What the native stage reads when the program has ended: `captures` of folder "native", or of
/// "look".
[[nodiscard]] base::Result<void> read_native(Run& run,
                                             const std::string& folder,
                                             const std::filesystem::path& captures,
                                             std::optional<sample::cpu::Recorder>& cpu,
                                             const ToolRun& ran);

// conclude.cpp, reports.cpp

/// Ends a run: reports, status, exit code.
[[nodiscard]] Done conclude(Run& run, const std::optional<base::Error>& failure);
/// The report of what the stages have read; takes their sessions.
[[nodiscard]] base::Result<Analyzed> analyze_run(Run& run);
/// Reads them again for who needs them after that.
void read_again(Run& run);
/// `show`: something was captured, and a person may see it.
[[nodiscard]] base::Result<void> write_reports(Run& run, Analyzed& analyzed, bool show);

}  // namespace rangescope::profile
