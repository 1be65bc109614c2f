// Why a capture of `profile` is empty or partial: the doctor's program checks over what was recorded, and what the
// tools themselves said.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "collect/nsight/outcome.hpp"
#include "doctor/program/program.hpp"
#include "model/session.hpp"

namespace rangescope::profile {

/// What went wrong, the decisive cause first; failures and warnings only. `session` null: nothing was recorded.
[[nodiscard]] std::vector<model::Finding> diagnose_capture(const model::Session* session,
                                                           const std::vector<std::string>& command,
                                                           const model::RangeSelection& ranges,
                                                           const model::KernelSelection& kernels,
                                                           const base::Ended& ended,
                                                           const std::optional<doctor::FailedCapture>& failed);

/// What a tool said of its own failure, as findings; "" where it said nothing that is understood.
[[nodiscard]] std::vector<model::Finding> findings_of(const collect::Outcome& outcome, const std::string& tool);

/// Both: a tool that knows its reason goes first; one that only says that nothing matched goes last, behind the reason
/// that was seen in the program.
[[nodiscard]] std::vector<model::Finding> joined(std::vector<model::Finding> program, std::vector<model::Finding> tool);

}  // namespace rangescope::profile
