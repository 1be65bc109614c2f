// One run of `rangescope profile`: warm-up, native, repetitions and relaunches of it, nsys, ncu,
// each a stage that may be asked for with any other. What they leave is one run directory; what
// becomes of it is concluded in one place.
//
// Order and reasons are in docs/manual/pipeline.md. What is wrong in the configuration is found
// before anything runs and before a directory is made (78, 69, 77). After that every run leaves the
// same files, whatever its end was. Repetitions are runs of their own below the whole
// (docs/design/repeats.md). The program's output is that of its first run; what later runs print
// is kept with their captures.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/result.hpp"
#include "collect/native/counter_plan.hpp"
#include "collect/native/native.hpp"
#include "config/compose.hpp"
#include "profile/analyzed.hpp"
#include "profile/sampling.hpp"
#include "profile/windows.hpp"
#include "sample/cpu/target.hpp"

namespace rangescope::profile {

/// What a person sees of a run.
struct Talk {
  bool quiet = false;
  std::function<base::Result<void>(const Analyzed&)>
      report;                                          ///< shows the report; empty: it is not shown
  bool report_shows_findings = false;                  ///< and its findings and notes with it
  std::function<void(const model::Finding&)> finding;  ///< prints one by itself
};

/// Repetitions until a change of 5 % shows (analyze::enough_runs).
inline constexpr int kAutoRepeat = 0, kLeastRepeats = 5, kMostRepeats = 30;

/// A process that runs already: it is watched for a while, instead of a program being run.
struct Attach {
  sample::cpu::Target target;
  std::optional<std::chrono::nanoseconds> length;  ///< absent: until it ends, or a signal comes
  bool tree = false;
  std::filesystem::path library =
      {};  ///< loaded into it, for its work on GPUs; "" for its CPU alone
  bool gpu_or_fail = false;
};

struct Settings {
  std::optional<Attach> attach;
  analyze::Options analysis;  ///< its ranges and kernels come from the configuration
  collect::native::Options native;
  SampleChoice sampling;
  WindowChoice windows;
  collect::native::CounterRequest
      counters;                        ///< how; metrics and ranges come from the configuration
  std::vector<std::string> arguments;  ///< rangescope's own, for the manifest
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

/// All stages of a run. Its messages are printed when it returns.
[[nodiscard]] Done run(const config::Config& config, Settings settings);

}  // namespace rangescope::profile
