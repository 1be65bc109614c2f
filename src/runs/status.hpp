// status.json: what happened, always there.
//
//   { "schema": "rangescope.status/1", "state": "running" | "done", "pid": N, "boot": "...",
//   "started": N,
//     "exit_code": 0, "outcome": "ok", "message": "...", "program": "...", "losses": [...],
//     "findings": [...] }
//
// "running" is written before the program starts and replaced at the end. A run that is still
// "running" while no process holds its lock (runs/hold.hpp; without one: while no process of that
// pid, start time and boot is alive) was interrupted: rangescope itself was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/finding.hpp"
#include "model/loss.hpp"

namespace rangescope::runs {

enum class RunState : std::uint8_t { kRunning, kDone, kInterrupted };

struct Status {
  RunState state = RunState::kRunning;
  int exit_code = 0;  ///< rangescope's own
  std::string
      outcome;  ///< "ok", "program_failed", "nothing_captured", "data_loss", "timed_out", "error"
  std::string message;  ///< one sentence
  std::string
      program;  ///< how the program ended: "exit code 0", "SIGSEGV (11)"; "" when it never started
  std::vector<model::Loss> losses;
  std::vector<model::Finding>
      findings;  ///< why the capture is empty or partial, the decisive cause first
};

[[nodiscard]] std::string_view state_name(RunState state);

/// Says that this process works on the run now.
[[nodiscard]] base::Result<void> write_running(const std::filesystem::path& run);
/// Says how it ended.
[[nodiscard]] base::Result<void> write_done(const std::filesystem::path& run, const Status& status);
/// kInterrupted where it is "running" without a process.
[[nodiscard]] base::Result<Status> read_status(const std::filesystem::path& run);

}  // namespace rangescope::runs
