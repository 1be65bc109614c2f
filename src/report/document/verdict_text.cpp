#include "report/document/verdict_text.hpp"

#include <algorithm>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/advice.hpp"

namespace rangescope::report {
namespace {

/// Lines of at most `width` columns, broken at spaces; from the second one on they begin with `indent` spaces.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::vector<std::string> lines;
  std::string line;
  for (const std::string_view word : base::split(text, ' ')) {
    if (!line.empty() && width > 0 && base::display_width(line) + 1 + base::display_width(word) > width) {
      lines.push_back(line);
      line.assign(indent, ' ');
      line += word;
      continue;
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  lines.push_back(line);
  return lines;
}

base::Tone weight_tone(model::Weight weight) {
  return weight == model::Weight::kError     ? base::Tone::kBad
         : weight == model::Weight::kWarning ? base::Tone::kBold
                                             : base::Tone::kPlain;
}

}  // namespace

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

std::string verdict_lines(const model::Report& report, const Style& style) {
  constexpr std::size_t kIndent = 3;
  const std::size_t name_width =
      style.width == 0 ? kNameWidth
                       : std::clamp(style.width - std::min<std::size_t>(style.width, 15), 16ul, kNameWidth);
  std::string out;
  for (std::size_t i = 0; i < report.verdict.size(); ++i) {
    const model::Verdict& verdict = report.verdict[i];
    const std::string number = std::to_string(i + 1) + ". " + std::string(model::weight_name(verdict.severity)) + ": ";
    for (std::string& line : wrapped(number + verdict_text(report, verdict, name_width), style.width, kIndent))
      out += base::toned(std::move(line), weight_tone(verdict.severity), style.color) + "\n";
    if (const std::string advice = model::advice_for(verdict); !advice.empty())
      for (std::string& line : wrapped("try: " + advice, style.width == 0 ? 0 : style.width - kIndent, kIndent))
        out += std::string(kIndent, ' ') + line + "\n";
    if (!verdict.next.empty() && (i == 0 || style.explain))
      out += base::toned(std::string(kIndent, ' ') + "next: " + base::printable(verdict.next), base::Tone::kDim,
                         style.color) +
             "\n";
  }
  return out;
}

}  // namespace rangescope::report
