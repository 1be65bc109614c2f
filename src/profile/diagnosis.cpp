#include "profile/diagnosis.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::profile {
namespace {

using model::Finding;
using model::Grade;

/// The tool only says that nothing came out; why lies in the program.
bool says_nothing(const std::string& id) {
  for (const char* one : {"ncu.nothing_matched", "ncu.only_push_pop", "ncu.only_start_end", "ncu.exit_in_range",
                          "nsys.never_started", "ncu.empty", "nsys.empty", "ncu.failed", "nsys.failed"})
    if (id == one) return true;
  return false;
}

}  // namespace

std::vector<Finding> diagnose_capture(const model::Session* session, const std::vector<std::string>& command,
                                      const model::RangeSelection& ranges, const model::KernelSelection& kernels,
                                      const base::Ended& ended, const std::optional<doctor::FailedCapture>& failed) {
  doctor::ProgramLook look;
  look.command = command;
  look.ended = ended;
  look.cut_short = ended.timed_out || ended.forwarded.has_value();
  look.failed = failed;
  const model::Session none;
  look.facts = doctor::gather(session ? *session : none, ranges, kernels);
  auto findings = doctor::diagnose(look);
  std::erase_if(findings, [](const Finding& finding) {
    return finding.verdict == Grade::kOk || finding.verdict == Grade::kSkip;
  });
  return findings;
}

std::vector<Finding> findings_of(const collect::Outcome& outcome, const std::string& tool) {
  std::vector<Finding> out;
  if (outcome.result == collect::Result::kOk) return out;
  for (const collect::Complaint& complaint : outcome.complaints) {
    Finding finding;
    finding.id = complaint.id;
    finding.question = "Why did " + tool + " capture nothing?";
    finding.verdict = out.empty() ? Grade::kFail : Grade::kWarn;
    finding.found = complaint.explanation;
    if (complaint.id == "ncu.unsupported_api" && !outcome.unsupported_calls.empty())
      finding.found += ": " + base::join(outcome.unsupported_calls, ", ");
    finding.why = complaint.evidence;  // the tool's own words
    finding.hint = complaint.cure;
    out.push_back(std::move(finding));
  }
  if (out.empty()) {
    Finding finding;
    finding.id = tool + "." + std::string(collect::result_name(outcome.result));
    finding.question = "Why did " + tool + " capture nothing?";
    finding.verdict = Grade::kFail;
    finding.found = outcome.message;
    finding.why = tool + " gave no reason that is known";
    finding.hint = "Read its output in the run directory";
    out.push_back(std::move(finding));
  }
  return out;
}

std::vector<Finding> joined(std::vector<Finding> program, std::vector<Finding> tool) {
  const bool last = tool.empty() || says_nothing(tool.front().id);
  const bool found = std::any_of(program.begin(), program.end(),
                                 [](const Finding& finding) { return finding.verdict == Grade::kFail; });
  auto& first = last && found ? program : tool;
  auto& second = last && found ? tool : program;
  first.insert(first.end(), std::make_move_iterator(second.begin()), std::make_move_iterator(second.end()));
  return std::move(first);
}

}  // namespace rangescope::profile
