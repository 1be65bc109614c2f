// Runs a plan: every collector starts the program (and the tool around it) in this way.
//
// The program's own output is inherited unless `out` or `err` say otherwise. While it runs, SIGINT,
// SIGTERM and SIGHUP that reach us are sent on to it, and we stay to write the run directory.
#pragma once

#include <chrono>
#include <functional>

#include "base/process.hpp"
#include "base/result.hpp"
#include "collect/collector.hpp"

namespace rangescope::collect {

struct LaunchOptions {
  base::Output out, err;
  bool null_stdin = false;             ///< /dev/null instead of our standard input
  std::function<void(pid_t)> started;  ///< called once it runs
  std::chrono::milliseconds tick_every{250};
  std::function<void(std::chrono::nanoseconds elapsed)> tick;  ///< for a progress line
  std::function<bool()> enough;  ///< asked after each tick: true ends the program, its children too
};

/// Runs it to its end. Fails only if it could not be started.
[[nodiscard]] base::Result<base::Ended> launch(const Plan& plan, const LaunchOptions& options = {});

/// The plan as one POSIX shell command: `cd`, `env`, program, arguments. Its folders have to exist.
[[nodiscard]] std::string shell_command(const Plan& plan);
/// The same, after a command that makes its folders.
[[nodiscard]] std::string script_command(const Plan& plan);
/// The same for a file, without secrets (base/redact.hpp): it may have to be completed before it
/// runs.
[[nodiscard]] std::string recorded_command(const Plan& plan);

}  // namespace rangescope::collect
