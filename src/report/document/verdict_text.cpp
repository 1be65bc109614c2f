#include "report/document/verdict_text.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/advice.hpp"

namespace rangescope::report {

std::string saving_text(const model::Report& report, const model::Verdict& verdict) {
  if (!verdict.saves_ns) return {};
  std::string text = "saves up to " + base::format_ns(*verdict.saves_ns);
  if (!verdict.saves_share) return text;
  const bool timeline = report.outside.has_value() && report.run.duration_ns > 0;
  return text + ", " + base::format_share(*verdict.saves_share) + (timeline ? " of the run" : " of the GPU's time");
}

std::string verdict_text(const model::Report& report, const model::Verdict& verdict, std::size_t name_width) {
  std::string text = base::elide(base::printable(verdict.path), name_width);
  if (text.empty() && verdict.region) text = "\"\"";  // a range without a name, as tables show it
  text += (text.empty() ? "" : ": ") + base::printable(verdict.text);
  if (const std::string saving = saving_text(report, verdict); !saving.empty()) text += " (" + saving + ")";
  return text;
}

Section verdict_section(const model::Report& report, const Style& style) {
  constexpr std::size_t kBesideName = 15, kShortest = 16, kLongest = 120;
  const std::size_t width = style.width < kBesideName ? kLongest : style.width - kBesideName;
  Section section{"Verdict", true};
  for (const model::Verdict& verdict : report.verdict) {
    const base::Tone tone = verdict.severity == model::Weight::kError     ? base::Tone::kBad
                            : verdict.severity == model::Weight::kWarning ? base::Tone::kBold
                                                                          : base::Tone::kPlain;
    section.add({verdict_text(report, verdict, std::clamp(width, kShortest, kLongest)), Line::kNumbered, tone,
                 std::string(model::weight_name(verdict.severity))});
    const bool first = &verdict == &report.verdict.front();
    if (const std::string advice = model::advice_for(verdict); !advice.empty())
      section.add({.text = advice, .shape = Line::kBelow, .name = "try"});
    if (!verdict.next.empty())
      section.add({"", Line::kBelow, base::Tone::kDim, "next", verdict.next, !first && !style.explain});
  }
  return section;
}

}  // namespace rangescope::report
