// Runs one plan of a stage: writes its command line first, keeps and shows its output, remembers
// interruptions.
//
//   <run>/<collector>/cmd.txt         every command line of this collector, in order, each runs as
//   it is <run>/<collector>/<label>.stdout  what program (and tool, as far as they share it)
//   printed; .stderr likewise
//
// Not of the native stage: its command line is the run's own cmd.txt, and what the program prints
// is not copied.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/result.hpp"
#include "collect/collector.hpp"
#include "collect/nsight/outcome.hpp"
#include "runs/stages.hpp"

namespace rangescope::profile {

struct ToolRun {
  base::Ended ended;
  std::string text;  ///< log, standard output and standard error of this run, for judging; the last
                     ///< MiB of each
};

class StageRunner {
 public:
  explicit StageRunner(std::filesystem::path run) : run_(std::move(run)) {}

  /// `log`: a file to which the tool writes its own talk; shown as it grows. `quiet`: its output is
  /// kept, not shown. `started`: called with the program's id once it runs.
  [[nodiscard]] base::Result<ToolRun> run(const collect::Plan& plan,
                                          const std::string& label,
                                          const std::filesystem::path& log = {},
                                          bool quiet = false,
                                          std::function<void(pid_t)> started = {});

  /// The program ran already, elsewhere: what later runs print is kept, not shown.
  void ran_before() { ran_ = true; }
  /// The program, or a tool with it, was started.
  [[nodiscard]] bool has_run() const { return ran_; }

  /// SIGINT, SIGTERM or SIGHUP reached us during some run; nothing more should be started.
  [[nodiscard]] bool interrupted() const { return interrupted_ != 0; }
  [[nodiscard]] int signal() const { return interrupted_; }

  /// A finished stage, into stages.json. A run goes on where that cannot be written; recorded() is
  /// the first failure.
  void record(runs::Stage stage);
  [[nodiscard]] const base::Result<void>& recorded() const { return recorded_; }
  [[nodiscard]] const std::vector<runs::Stage>& stages() const { return stages_; }

  /// A stage record from what became of it.
  [[nodiscard]] static runs::Stage stage_of(const std::string& stage,
                                            const std::string& tool,
                                            const std::string& step,
                                            const collect::Outcome& outcome,
                                            const ToolRun& run);

 private:
  std::filesystem::path run_;
  std::vector<runs::Stage> stages_;
  base::Result<void> recorded_;
  int interrupted_ = 0;
  bool ran_ = false;  ///< something whose output a person may see
};

/// What is known of a run before its report was looked at.
[[nodiscard]] collect::Observed observed(const ToolRun& run, bool interrupted);

}  // namespace rangescope::profile
