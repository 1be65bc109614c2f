#include "doctor/program/program.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "doctor/program/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Finding;
using model::Grade;

/// The three standard streams, the injected library and one capture file, with room for little
/// else.
constexpr std::uint64_t kFewFiles = 8;

Findings check_ran(const ProgramLook& look) {
  if (look.not_started) {
    const bool injection = look.not_started->where.find("INJECTION") != std::string::npos;
    return {finding_of(injection ? "program.other_injection" : "program.not_started",
                       Grade::kFail,
                       base::printable(look.not_started->what),
                       look.not_started->hint)};
  }
  if (look.cut_short || look.ended.ok())
    return {};
  const bool all_seen =
      !look.facts.meant.empty() &&
      std::all_of(look.facts.meant.begin(), look.facts.meant.end(), [](const RangeFacts& range) {
        return range.occurrences > range.unclosed;
      });
  std::vector<Finding> out;
  for (const collect::Complaint& complaint : look.said) {
    const std::string found = "the program printed: " + complaint.evidence;
    if (look.no_driver && complaint.id.starts_with("cuda.no_d")) {
      // Without a driver every such message has one cause.
      out.push_back(finding_of("machine.no_driver", Grade::kFail, found));
      break;
    }
    out.push_back(finding_of(complaint.id, Grade::kFail, found, complaint.cure));
  }
  std::string found = "it ended by " + base::describe(look.ended);
  if (!look.last_words.empty())
    found += "; its last words: " + look.last_words;
  const bool is_measured = all_seen && !look.ended.signal;
  out.push_back(
      finding_of("program.failed", is_measured ? Grade::kWarn : Grade::kFail, std::move(found)));
  return out;
}

Findings check_nvtx(const ProgramLook& look) {
  if (look.not_started)
    return {};
  const ProgramFacts& facts = look.facts;
  if (!facts.ranges.empty())
    return {};
  if (!facts.unrecorded.empty())
    return {finding_of("program.no_files", Grade::kFail, facts.unrecorded)};
  if (!facts.not_recorded.empty())
    return {finding_of("program." + facts.not_recorded_kind, Grade::kFail, facts.not_recorded)};
  const auto files = look.ended.open_files;
  if (facts.processes == 0 && files && *files < kFewFiles)
    return {finding_of("program.no_files",
                       Grade::kFail,
                       "no process of it loaded NVTX or CUDA, and it limits itself to " +
                           base::counted(*files, "file") + " (RLIMIT_NOFILE)")};
  const std::string processes = base::counted(facts.processes, "process");
  // What failed before it loaded anything may have ranges all the same.
  if (facts.processes == 0 && !look.said.empty())
    return {};
  if (!facts.nvtx) {
    std::string found = processes + " of it loaded CUDA, but none made an NVTX call";
    if (facts.processes == 0)
      found = "no process of it loaded NVTX or CUDA";
    return {finding_of("program.no_nvtx", Grade::kFail, std::move(found))};
  }
  return {finding_of(
      "program.no_ranges", Grade::kFail, processes + " used NVTX, but none opened a range")};
}

Findings check_registered(const ProgramLook& look) {
  const bool decides = look.failed && look.failed->tool == "nsys" && look.failed->registered_only;
  std::vector<Finding> out;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.seen.empty() || range.registered == range.occurrences)
      continue;
    Finding finding = finding_of("program.unregistered",
                                 decides ? Grade::kFail : Grade::kOk,
                                 base::printable(range.term.written) + ": " +
                                     std::to_string(range.occurrences - range.registered) + " of " +
                                     base::counted(range.occurrences, "instance") +
                                     " without a registered string for a name");
    // Most programs' names are not: a fact for who gates nsys by hand, and no complaint.
    if (!decides)
      finding.hint.clear();
    out.push_back(std::move(finding));
  }
  return out;
}

constexpr Check<ProgramLook> kChecks[] = {
    {"program.ran", "Does the program run to its end?", check_ran},
    {"program.nvtx", "Does the program open NVTX ranges?", check_nvtx},
    {"program.ranges", "Did every selected range occur?", check_names},
    {"program.registered", "Can nsys gate on the range?", check_registered},
    {"program.ends", "Is every range closed before the program ends?", check_ends},
    {"program.cuda", "Does the program use CUDA, and was its GPU work recorded?", check_cuda},
    {"program.work", "Is GPU work launched inside the ranges?", check_work},
    {"program.processes", "Are the ranges in the process that is started?", check_processes},
    {"program.replay", "Can the ranges be replayed?", check_replay},
    {"program.alike", "Are the instances of a range alike?", check_alike},
    {"program.wall_time", "Do the ranges' wall times hold their GPU work?", check_late},
};

constexpr Grade kOrder[] = {Grade::kFail, Grade::kWarn, Grade::kSkip, Grade::kOk};

}  // namespace

std::vector<Finding> diagnose(const ProgramLook& look) {
  auto findings = run_checks(kChecks, look);
  std::ranges::stable_sort(
      findings, {}, [](const Finding& each) { return std::ranges::find(kOrder, each.verdict); });
  return findings;
}

}  // namespace rangescope::doctor
