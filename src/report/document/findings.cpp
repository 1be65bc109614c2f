#include "report/document/findings.hpp"

#include "base/table.hpp"
#include "base/text.hpp"

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

std::string finding_text(const model::Finding& finding, bool color) {
  std::string text = base::toned(std::string(model::verdict_name(finding.verdict)) + ": " + finding.id + ": " +
                                     base::printable(finding.found),
                                 tone_of(finding.verdict), color) +
                     "\n";
  if (!finding.why.empty()) text += "  why:  " + base::printable(finding.why) + "\n";
  if (!finding.hint.empty()) text += "  hint: " + base::printable(finding.hint) + "\n";
  for (const std::string& command : finding.commands) text += "  try:  " + base::printable(command) + "\n";
  return text;
}

void write_findings(JsonWriter& json, std::span<const model::Finding> findings) {
  json.objects("findings", findings, [&](const model::Finding& finding) {
    json.field("id", finding.id);
    json.field("question", finding.question);
    json.field("verdict", model::verdict_name(finding.verdict));
    json.field("found", finding.found);
    json.field("why", finding.why);
    json.field("hint", finding.hint);
    json.texts("commands", finding.commands);
  });
}

}  // namespace rangescope::report
