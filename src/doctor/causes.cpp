#include "doctor/causes.hpp"

#include <array>

#include "doctor/command/causes.hpp"
#include "doctor/machine/causes.hpp"
#include "doctor/program/causes.hpp"

namespace rangescope::doctor {

std::span<const Chapter> chapters() {
  static const std::array all{
      Chapter{"machine", "The machine", "`rangescope doctor` looks for these.", machine_causes()},
      Chapter{"command", "A command line of ncu or nsys", "`rangescope doctor --explain` looks for these.",
              command_causes()},
      Chapter{"program", "A program", "`rangescope doctor -- program` looks for these.", program_causes()},
      Chapter{"ncu", "What ncu says", "After a stage of `rangescope profile` that captured nothing.",
              tool_causes("ncu")},
      Chapter{"nsys", "What nsys says", "After a stage of `rangescope profile` that captured nothing.",
              tool_causes("nsys")},
  };
  return all;
}

const Cause* find_cause(std::string_view id) {
  for (const Chapter& chapter : chapters())
    for (const Cause& cause : chapter.causes)
      if (cause.id == id) return &cause;
  return nullptr;
}

model::Finding finding_of(std::string_view id, model::Grade verdict, std::string found, std::string hint) {
  model::Finding finding;
  finding.id = id;
  finding.verdict = verdict;
  finding.found = std::move(found);
  finding.hint = std::move(hint);
  if (const Cause* cause = find_cause(id)) {
    finding.why = cause->explanation;
    if (finding.hint.empty()) finding.hint = cause->cure;
  }
  return finding;
}

model::Finding well(std::string found) {
  model::Finding finding;
  finding.found = std::move(found);
  return finding;
}

model::Finding skipped(std::string why) {
  model::Finding finding;
  finding.verdict = model::Grade::kSkip;
  finding.found = std::move(why);
  return finding;
}

int exit_code_of(std::span<const model::Finding> findings) {
  for (const model::Finding& finding : findings) {
    if (finding.verdict != model::Grade::kFail) continue;
    const Cause* cause = find_cause(finding.id);
    return base::exit_code(cause ? cause->code : base::Code::kInternal);
  }
  return 0;
}

std::string causes_page() {
  std::string text =
      "# Causes\n\n"
      "What the doctor can find wrong, what it means, and what to do. Each has a stable id, under which it stands in "
      "the doctor's\noutput, in `status.json` and in reports. This page is written by `rangescope doctor --causes`.\n";
  for (const Chapter& chapter : chapters()) {
    text += "\n## " + std::string(chapter.title) + "\n\n" + std::string(chapter.about) + "\n";
    for (const Cause& cause : chapter.causes) {
      text += "\n### `" + std::string(cause.id) + "`: " + std::string(cause.title) + "\n\n";
      text += std::string(cause.explanation) + "\n\n";
      text += "**Cure:** " + std::string(cause.cure) + ".\n\n";
      text += "*Known from:* " + std::string(cause.seen) + ".\n";
    }
  }
  return text;
}

}  // namespace rangescope::doctor
