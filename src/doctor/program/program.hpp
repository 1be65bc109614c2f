// The doctor's look at a program: what was run, how it ended, and what its session says; the checks
// over it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "collect/nsight/outcome.hpp"
#include "doctor/program/facts.hpp"
#include "model/finding.hpp"

namespace rangescope::doctor {

/// What a tool was asked for when it captured nothing, where the look explains such a capture.
struct FailedCapture {
  std::string tool;  ///< "ncu", "nsys", "native"
  bool registered_only =
      false;  ///< nsys: the recording was to start at a range, and at registered strings only
};

struct ProgramLook {
  std::vector<std::string> command;
  std::optional<base::Error> not_started;  ///< it could not be run at all
  base::Ended ended;
  std::string last_words;  ///< the line of a failing program's standard error that says what
                           ///< failed, else its last
  std::vector<collect::Complaint>
      said;                ///< what a failing program printed, as far as it is understood
  bool no_driver = false;  ///< this machine has no NVIDIA driver
  bool cut_short = false;  ///< we ended it: the time limit, or all was known
  bool all_known =
      false;  ///< cut short because every range that was meant had been seen often enough
  ProgramFacts facts;
  std::optional<FailedCapture> failed;
};

/// Every check over the look: failures first, then warnings, then what is well.
[[nodiscard]] std::vector<model::Finding> diagnose(const ProgramLook& look);

/// "decode/ (6 times)" ...: names of the program nearest to what was written, as expressions that
/// match them.
[[nodiscard]] std::vector<std::string> nearest_expressions(const ProgramFacts& facts,
                                                           const std::string& written,
                                                           std::size_t limit = 3);

}  // namespace rangescope::doctor
