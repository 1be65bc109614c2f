#include "report/document/findings.hpp"

namespace rangescope::report {
namespace {

base::Tone tone_of(model::Grade verdict) {
  switch (verdict) {
    case model::Grade::kOk: return base::Tone::kGood;
    case model::Grade::kWarn: return base::Tone::kWarn;
    case model::Grade::kFail: return base::Tone::kBad;
    case model::Grade::kSkip: return base::Tone::kDim;
  }
  return base::Tone::kPlain;
}

}  // namespace

void add_finding(Section& section, const model::Finding& finding) {
  section.add({finding.id + ": " + finding.found, Line::kItem, tone_of(finding.verdict),
               std::string(model::verdict_name(finding.verdict))});
  if (!finding.why.empty()) section.add({.text = finding.why, .shape = Line::kBelow, .name = "why"});
  if (!finding.hint.empty()) section.add({.text = finding.hint, .shape = Line::kBelow, .name = "hint"});
  for (const std::string& command : finding.commands)
    section.add({.shape = Line::kBelow, .name = "try", .code = command});
}

std::string finding_text(const model::Finding& finding, bool color) {
  Document document;
  add_finding(document.begin(""), finding);
  return terminal_text(document, {.width = 0, .color = color});
}

void write_findings(JsonWriter& json, std::span<const model::Finding> findings) {
  json.objects("findings", findings, [&](const model::Finding& finding) {
    json.fields("id", finding.id, "question", finding.question, "verdict", model::verdict_name(finding.verdict),
                "found", finding.found, "why", finding.why, "hint", finding.hint, "commands", finding.commands);
  });
}

}  // namespace rangescope::report
