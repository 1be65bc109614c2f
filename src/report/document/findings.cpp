#include "report/document/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/advice.hpp"
#include "model/loss.hpp"
#include "model/measure.hpp"

namespace rangescope::report {
namespace {

/// By model::Grade.
constexpr base::Tone kGradeTones[] = {
    base::Tone::kGood, base::Tone::kWarn, base::Tone::kBad, base::Tone::kDim};

/// By model::LossArea.
constexpr std::string_view kAreaTitles[] = {"The program's ranges",
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

void add_finding(Section& section, const model::Finding& finding) {
  section.add({finding.id + ": " + finding.found,
               Line::kItem,
               kGradeTones[static_cast<std::size_t>(finding.verdict)],
               std::string(model::verdict_name(finding.verdict))});
  if (!finding.why.empty())
    section.add({.text = finding.why, .shape = Line::kBelow, .name = "why"});
  if (!finding.hint.empty())
    section.add({.text = finding.hint, .shape = Line::kBelow, .name = "hint"});
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
    json.field("id", finding.id);
    json.field("question", finding.question);
    json.field("verdict", model::verdict_name(finding.verdict));
    json.field("found", finding.found);
    json.field("why", finding.why);
    json.field("hint", finding.hint);
    json.field("commands", finding.commands);
  });
}

std::string loss_page() {
  std::string page =
      "# Data losses\n\nFor readers of a report that lists data losses: what each kind means and "
      "how to avoid it. A "
      "data "
      "loss is something\nmissing from a report although the run went on. `info` changes no number "
      "of the report; "
      "`--strict` fails at a `warning`\nor an `error`; after an `error`, numbers are known to be "
      "too small.\n"
      "`rangescope help losses` prints this page.\n";
  const model::LossEntry* previous = nullptr;
  for (const model::LossEntry& entry : model::loss_table()) {
    if (previous == nullptr || previous->area != entry.area)
      page += fmt::format("\n## {}\n\n| loss | severity | meaning | remedy |\n|:--|:--|:--|:--|\n",
                          kAreaTitles[static_cast<std::size_t>(entry.area)]);
    page += fmt::format("| `{}` | {} | {} | {} |\n",
                        entry.id,
                        model::severity_name(entry.severity),
                        entry.meaning,
                        entry.cure);
    previous = &entry;
  }
  return page;
}

std::string saving_text(const model::Report& report, const model::Verdict& verdict) {
  if (!verdict.saves_ns || !verdict.cure.empty())
    return {};  // the sentence of a cure has it
  std::string text = "saves up to " + base::format_ns(*verdict.saves_ns);
  if (!verdict.saves_share)
    return text;
  // The share is of the run, or of the time of all kernels where there is no timeline: saves_ns
  // tells which.
  const double divisor_ns = *verdict.saves_ns / *verdict.saves_share;
  const bool of_run =
      std::abs(divisor_ns - report.run.duration_ns) <= 1e-6 * report.run.duration_ns;
  text += ", " + base::format_share(*verdict.saves_share);
  if (of_run)
    return text + " of the run";
  return text + " of the kernel time";
}

std::string verdict_text(const model::Report& report,
                         const model::Verdict& verdict,
                         std::size_t name_width) {
  std::string text = base::elide(base::printable(verdict.path), name_width);
  if (text.empty() && verdict.region)
    text = "\"\"";  // as tables show a range without a name
  if (!text.empty())
    text += ": ";
  text += base::printable(verdict.text);
  if (const std::string saving = saving_text(report, verdict); !saving.empty())
    text += " (" + saving + ")";
  return text;
}

namespace {

base::Tone weight_tone(model::Weight weight) {
  switch (weight) {
    case model::Weight::kError: return base::Tone::kBad;
    case model::Weight::kWarning: return base::Tone::kBold;
    default: return base::Tone::kPlain;
  }
}

/// How long the name of a range may be in a verdict.
std::size_t verdict_name_width(const Style& style) {
  constexpr std::size_t kShortest = 16, kLongest = 120;
  constexpr std::size_t kNumberAndSeverity = 15;  // "1. warning: " and more
  if (style.width < kNumberAndSeverity)
    return kLongest;
  return std::clamp(style.width - kNumberAndSeverity, kShortest, kLongest);
}

}  // namespace

Section verdict_section(const model::Report& report, const Style& style) {
  const std::size_t name_width = verdict_name_width(style);
  Section section{"Verdict", true};
  for (const model::Verdict& verdict : report.verdict) {
    section.add({verdict_text(report, verdict, name_width),
                 Line::kNumbered,
                 weight_tone(verdict.severity),
                 std::string(model::weight_name(verdict.severity))});
    const bool is_first = &verdict == &report.verdict.front();
    if (const std::string advice = model::advice_for(verdict); !advice.empty())
      section.add({.text = advice, .shape = Line::kBelow, .name = "try"});
    const bool is_detail = !is_first && !style.explain;
    const bool is_this_report = style.per_rank && verdict.next.ends_with(" --per-rank");
    if (!verdict.next.empty() && !is_this_report)
      section.add({"", Line::kBelow, base::Tone::kDim, "next", verdict.next, is_detail});
  }
  return section;
}

namespace {

/// "saves 211 ± 8 ms, 51.0 %"
std::string predicted_saving_text(const model::PredictedTime& time) {
  std::string text = time.saves_ns() < 0 ? "costs " : "saves ";
  if (time.is_bound)
    text += "at most ";
  const double half_ns = (time.after_high_ns - time.after_low_ns) / 2;
  text += base::format_ns_interval(std::fabs(time.saves_ns()), half_ns);
  if (time.now_ns > 0)
    text += ", " + base::format_share(std::fabs(time.saves_ns()) / time.now_ns);
  return text;
}

std::string predicted_text(const model::PredictedTime& time) {
  return base::format_ns(time.after_ns) + " instead of " + base::format_ns(time.now_ns) + " (" +
         predicted_saving_text(time) + ")";
}

/// Regions whose replay differs from the measurement: their savings are upper bounds.
void add_bounds(const model::Report& report, Section& section) {
  constexpr std::size_t kShown = 5;
  std::size_t count = 0;
  for (const model::PredictedRegion& predicted : report.what_if->regions) {
    const model::Region& region = report.regions[predicted.region];
    const bool is_part = region.process || region.thread;
    if (!predicted.time.is_bound || is_part)
      continue;
    if (++count > kShown)
      continue;
    const std::string error = base::format_share(predicted.time.replay_error);
    std::string text = "its replay is " + error + " off: " + predicted_saving_text(predicted.time);
    section.add({std::move(text), Line::kItem, base::Tone::kPlain, model::path_text(region)});
  }
  if (count <= kShown)
    return;
  const std::string omitted =
      base::counted(count - kShown, "more region saves", "more regions save");
  section.add({.text = omitted + " at most what is predicted", .shape = Line::kItem});
}

}  // namespace

Section what_if_section(const model::Report& report) {
  Section section{"What if", true};
  if (!report.what_if)
    return section;
  for (const model::SupposedChange& change : report.what_if->changes) {
    const std::string name = "what if " + change.written;
    section.add({change.subject, Line::kItem, base::Tone::kPlain, name});
  }
  std::string run = "the run takes " + predicted_text(report.what_if->run);
  section.add({.text = std::move(run), .tone = base::Tone::kBold});
  add_bounds(report, section);
  return section;
}

}  // namespace rangescope::report
