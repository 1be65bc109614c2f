#include "report/document/findings.hpp"

#include <fmt/format.h>

#include "model/loss.hpp"

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

namespace {

/// By model::LossArea.
constexpr std::string_view kChapters[] = {"The program's ranges",
                                          "Captures",
                                          "GPU activity",
                                          "CPU samples",
                                          "Counters",
                                          "Files",
                                          "Files of Nsight Systems",
                                          "Results of Nsight Compute",
                                          "Analysis",
                                          "Stages of a run"};

}  // namespace

std::string loss_page() {
  std::string page =
      "# Losses\n\nA loss says what is missing from a report although the run went on. `info` changes no number of the "
      "report;\n`--strict` fails at a `warning` or an `error`; after an `error` numbers are known to be too small.\n"
      "`rangescope help losses` prints this page.\n";
  const model::LossEntry* before = nullptr;
  for (const model::LossEntry& entry : model::loss_table()) {
    if (before == nullptr || before->area != entry.area)
      page += fmt::format("\n## {}\n\n| loss | severity | meaning | cure |\n|:--|:--|:--|:--|\n",
                          kChapters[static_cast<std::size_t>(entry.area)]);
    page += fmt::format("| `{}` | {} | {} | {} |\n", entry.id, model::severity_name(entry.severity), entry.meaning,
                        entry.cure);
    before = &entry;
  }
  return page;
}

}  // namespace rangescope::report
