// The doctor's look at a program: a short run under the native collector, read, and turned into
// facts.
//
// The program's standard output is not shown, its standard error is kept for when it fails.
// Everything is written below a temporary folder that is removed again.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "doctor/program/advice.hpp"
#include "doctor/program/program.hpp"

namespace rangescope::profile {

struct LookRequest {
  std::vector<std::string> command;
  model::RangeSelection ranges;
  model::KernelSelection kernels;
  std::optional<std::filesystem::path> cwd;
  std::map<std::string, std::string> env;
  std::chrono::nanoseconds limit = std::chrono::seconds(30);
  bool chain_injection = false;
};

/// Runs and looks. An error only where nothing could be looked at at all (no library, a wrong
/// expression, no temporary folder); a program that does not start is a look.
[[nodiscard]] base::Result<doctor::ProgramLook> look_at_program(const LookRequest& request);

/// nsys, ncu and counters of this machine.
[[nodiscard]] doctor::Tools tools_here();

/// Settings of the native collector for a look: calls to note, and to write GPU work out often.
[[nodiscard]] std::map<std::string, std::string> look_settings();

}  // namespace rangescope::profile
