// One check of the doctor: a question about a machine or a program, answered with evidence and a
// cure.
//
// To add one: a function in a file of its room (machine/, program/), one row in that room's table,
// and one cause for each answer that is not "ok" in its file of conf/doctor. The page
// docs/manual/causes.md follows from the causes.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "model/finding.hpp"

namespace rangescope::doctor {

using Findings = std::vector<model::Finding>;

/// Of a machine (MachineFacts) or a program (ProgramLook).
template <class Facts>
struct Check {
  std::string_view id;        ///< of the finding when all is well: "machine.driver"
  std::string_view question;  ///< asked of the person's situation, with a question mark
  /// None where the check does not apply. Reads the facts alone: no file, no variable.
  Findings (*run)(const Facts& facts);
};

/// Every check of the list, in order; id and question are filled in where a finding has none.
template <class Facts>
[[nodiscard]] Findings run_checks(const auto& checks, const Facts& facts) {
  Findings all;
  for (const Check<Facts>& check : checks)
    for (model::Finding& finding : check.run(facts)) {
      if (finding.id.empty())
        finding.id = check.id;
      if (finding.question.empty())
        finding.question = check.question;
      all.push_back(std::move(finding));
    }
  return all;
}

}  // namespace rangescope::doctor
