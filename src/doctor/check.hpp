// One check of the doctor: a question about a machine or a program, answered with evidence and a cure.
//
// To add one: a function in a file of its room (machine/, program/), one row in that room's table, and one cause for
// each answer that is not "ok" in that room's causes.cpp. The page docs/manual/causes.md follows from the causes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/finding.hpp"

namespace rangescope::doctor {

// What a check may look at. Each part is there or not; a check that needs one which is absent answers nothing.

struct MachineFacts;  // doctor/machine/facts.hpp
struct ProgramLook;   // doctor/program/program.hpp

struct Probe {
  const MachineFacts* machine = nullptr;
  const ProgramLook* program = nullptr;
};

struct Check {
  std::string_view id;        ///< of the finding when all is well: "machine.driver"
  std::string_view question;  ///< asked of the person's situation, with a question mark
  /// Findings, none when the check does not apply to this probe. Reads the probe alone: no file, no variable.
  std::vector<model::Finding> (*run)(const Probe& probe);
};

/// Every check of the list, in order; the question is filled in where a finding has none.
[[nodiscard]] std::vector<model::Finding> run_checks(std::span<const Check> checks, const Probe& probe);

}  // namespace rangescope::doctor
