#include "doctor/check.hpp"

#include <utility>

namespace rangescope::doctor {

std::vector<model::Finding> run_checks(std::span<const Check> checks, const Probe& probe) {
  std::vector<model::Finding> all;
  for (const Check& check : checks) {
    for (model::Finding& finding : check.run(probe)) {
      if (finding.id.empty()) finding.id = check.id;
      if (finding.question.empty()) finding.question = check.question;
      all.push_back(std::move(finding));
    }
  }
  return all;
}

}  // namespace rangescope::doctor
