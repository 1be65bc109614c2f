// The comparison as one offline page without scripts of others: side by side, what changed most first. Names are text
// wherever they stand. The only script filters the tables by what is typed.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "report/compare/flame.hpp"
#include "report/compare/formats.hpp"
#include "report/compare/view.hpp"
#include "report/document/markup_text.hpp"

namespace rangescope::report {
namespace {

using model::Change;
using model::ComparedValue;
using model::Comparison;

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';
script-src 'unsafe-inline'">
<title>rangescope comparison</title><style>
:root{color-scheme:light dark;--fg:#1d2430;--bg:#fff;--dim:#5d6878;--line:#d9dee6;--worse:#b3261e;--better:#0b7a3e;
--noise:#8a94a3;--head:#f3f5f8;--panel:var(--bg);--text:var(--fg);--mark:#2563eb}
@media(prefers-color-scheme:dark){:root{--fg:#e4e8ee;--bg:#14181f;--dim:#9aa5b5;--line:#303845;--worse:#ff8a80;
--better:#6ad39a;--noise:#76818f;--head:#1c222b}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:0 auto;padding:1rem;
max-width:100rem}
h1{font-size:1.35rem;margin:.2rem 0 .6rem}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}
ul{margin:.3rem 0;padding-left:1.2rem}li{overflow-wrap:anywhere}.heavy{color:var(--worse);font-weight:600}
.dim{color:var(--dim)}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{background:var(--head);font-weight:600;position:sticky;top:0}th:first-child,td:first-child{text-align:left;
white-space:normal;overflow-wrap:anywhere;min-width:11rem}
tr:last-child td{border-bottom:0}.more{color:var(--worse);font-weight:600}.less{color:var(--better);font-weight:600}
.noise{color:var(--noise)}
svg{display:block}svg line{stroke:var(--line)}svg .more{stroke:var(--worse)}svg .less{stroke:var(--better)}
svg .noise{stroke:var(--noise)}
svg circle{stroke:none}svg circle.more{fill:var(--worse)}svg circle.less{fill:var(--better)}
svg circle.noise{fill:var(--noise)}
input,button,select{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:6px;
padding:.3rem .6rem;max-width:100%;box-sizing:border-box}input{width:22rem}
@media(max-width:640px){.wide{display:none}th:first-child,td:first-child{min-width:7rem}th,td{padding:.28rem .35rem}}
</style></head><body>
)";

constexpr std::string_view kTail = R"(<script>
document.getElementById("find").addEventListener("input",e=>{const w=e.target.value.toLowerCase();
for(const r of document.querySelectorAll("tbody tr"))r.hidden=!r.cells[0].textContent.toLowerCase().includes(w)});
document.documentElement.dataset.ready="1"
</script></body></html>
)";

std::string_view style_of(const Change& change) {
  switch (change.standing) {
    case model::Standing::kMore: return "more";
    case model::Standing::kLess: return "less";
    default: return "noise";
  }
}

/// Ratio and interval as a line about "no change", on a logarithmic scale up to `most`.
std::string whisker(const Change& change, double most) {
  if (!change.ratio || *change.ratio <= 0) return "";
  constexpr double kWidth = 120, kHeight = 16;
  const auto x = [&](double ratio) {
    return kWidth / 2 + std::clamp(std::log(ratio) / most, -1.0, 1.0) * (kWidth / 2 - 4);
  };
  std::string svg = fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" aria-hidden=\"true\"><line x1=\"{2}\" x2=\"{2}\" "
      "y1=\"0\" y2=\"{1}\"/>",
      kWidth, kHeight, kWidth / 2);
  const std::string_view style = style_of(change);
  if (change.low && *change.low > 0)
    svg += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"8\" y2=\"8\" stroke-width=\"2\"/>", style,
                       x(*change.low), x(*change.high));
  return svg + fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"8\" r=\"4\"/></svg>", style, x(*change.ratio));
}

class Page {
 public:
  Page(const Comparison& comparison, const Style& style, Sink& sink)
      : comparison_(comparison), style_(style), sink_(sink) {}

  void write() {
    sink_.write(kHead);
    sink_.write("<h1>Comparison</h1><p>" + markup_escaped(comparison_sentence(comparison_)) + "</p><ul>");
    for (std::size_t side = 0; side < comparison_.sides.size(); ++side) item(side_sentence(comparison_, side));
    sink_.write("</ul>");
    if (!comparison_.environment.empty()) sink_.write("<h2>Different around the runs</h2><ul>");
    for (const model::EnvironmentDifference& difference : comparison_.environment)
      item(difference_sentence(difference), difference.heavy ? "heavy" : "");
    if (!comparison_.environment.empty()) sink_.write("</ul>");
    if (!comparison_.notes.empty()) sink_.write("<h2>Notes</h2><ul>");
    for (const std::string& note : comparison_.notes) item(note);
    if (!comparison_.notes.empty()) sink_.write("</ul>");
    sink_.write("<p><label>Find <input id=\"find\" type=\"search\" placeholder=\"range or kernel\"></label></p>");
    regions();
    missing();
    functions();
    if (const model::ComparedRegion* region = chains_shown(comparison_, style_.cpu))
      write_flame(comparison_, *region, sink_);
    kernels();
    sink_.write("<p class=\"dim\">");
    for (const std::string& text : untested_sentences(comparison_)) sink_.write(markup_escaped(text) + "<br>");
    if (comparison_.tests > 0)
      sink_.write(base::counted(comparison_.tests, "value") + " tested: " + markup_escaped(comparison_.method));
    sink_.write("</p>");
    sink_.write(kTail);
  }

 private:
  void item(const std::string& text, std::string_view style = "") {
    sink_.write(fmt::format("<li class=\"{}\">{}</li>", style, markup_escaped(text)));
  }

  void head(const char* first, const char* second = "count") {
    sink_.write(fmt::format(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"wide\">{}</th>",
        first, second));
    const auto column = [&](const std::string& title, std::string_view style = "") {
      sink_.write(fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", style, title));
    };
    for (std::size_t side = 0; side < comparison_.sides.size(); ++side) column(side_letter(side));
    for (std::size_t side = 1; side < comparison_.sides.size(); ++side) {
      const std::string letter = comparison_.sides.size() > 2 ? " " + side_letter(side) : "";
      column("change" + letter);
      column("", "wide");
      column("between" + letter, "wide");
      column("p" + letter, "wide");
      column("verdict" + letter);
    }
    sink_.write("</tr></thead><tbody>");
  }

  void row(const std::string& label, const std::string& counts, const ComparedValue& value, double most) {
    const auto cell = [&](const std::string& text, std::string_view style = "") {
      sink_.write(fmt::format("<td class=\"{}\">{}</td>", style, text));
    };
    sink_.write("<tr>");
    cell(markup_escaped(label));
    cell(markup_escaped(counts), "wide");
    for (std::size_t side = 0; side < value.values.size(); ++side) cell(markup_escaped(side_value(value, side)));
    for (std::size_t side = 1; side < value.values.size(); ++side) {
      const Change& change = value.changes[side - 1];
      const std::string_view style = style_of(change);
      cell(markup_escaped(change_text(value, side)), style);
      cell(whisker(change, most), "wide");
      cell(markup_escaped(between_text(change)), "wide dim");
      cell(markup_escaped(p_text(change)), "wide dim");
      sink_.write(fmt::format("<td class=\"{}\" title=\"{}\">{}</td>", style, markup_escaped(change.why),
                              markup_escaped(standing_text(value, side))));
    }
    sink_.write("</tr>\n");
  }

  /// The scale of the whiskers: the largest change shown, at most a factor of four.
  template <class Rows, class Value>
  static double scale(const Rows& rows, std::size_t count, Value value_of) {
    double most = std::log(1.02);
    for (std::size_t i = 0; i < count; ++i) {
      for (const Change& change : value_of(rows[i]).changes) {
        for (const auto& ratio : {change.ratio, change.low, change.high}) {
          if (ratio && *ratio > 0) most = std::max(most, std::abs(std::log(*ratio)));
        }
      }
    }
    return std::min(most, std::log(4.0));
  }

  void regions() {
    const auto& all = comparison_.regions;
    const std::size_t count = style_.top == 0 ? all.size() : std::min(style_.top, all.size());
    for (std::size_t v = 0; !all.empty() && v < all.front().values.size(); ++v) {
      sink_.write("<h2>" + markup_escaped(value_heading(all.front().values[v])) + "</h2>");
      head("range");
      const double most = scale(
          all, count, [&](const auto& region) -> const auto& { return region.values[v]; });
      for (std::size_t i = 0; i < count; ++i)
        row(region_label(all[i]), counts_text(all[i].occurrences), all[i].values[v], most);
      sink_.write("</tbody></table></div>");
      if (count < all.size())
        sink_.write("<p class=\"dim\">" + base::counted(all.size() - count, "more region") + " changed less.</p>");
    }
  }

  void missing() {
    if (comparison_.missing.empty() && comparison_.renames.empty()) return;
    sink_.write("<h2>Not on all sides</h2><ul>");
    for (const model::ComparedRegion& region : comparison_.missing) item(missing_sentence(region));
    for (const model::RenameOffer& offer : comparison_.renames) item(rename_sentence(offer));
    sink_.write("</ul>");
  }

  void functions() {
    const model::ComparedRegion* region = functions_shown(comparison_, style_.cpu);
    if (region == nullptr) return;
    const auto shown = functions_of(*region, style_.cpu);
    sink_.write("<h2>" + markup_escaped(functions_heading(*region)) + "</h2>");
    head("function", "of wall time");
    const double most = scale(
        shown, shown.size(), [](const auto& function) -> const auto& { return function.self; });
    for (const auto& function : shown) row(function.name, shares_text(function.share), function.self, most);
    sink_.write("</tbody></table></div>");
  }

  void kernels() {
    const std::size_t count = std::min(style_.top_kernels, comparison_.kernels.size());
    if (count == 0) return;
    sink_.write("<h2>Kernels, time a call</h2>");
    head("kernel");
    const double most = scale(
        comparison_.kernels, count, [](const auto& kernel) -> const auto& { return kernel.per_call; });
    for (std::size_t i = 0; i < count; ++i) {
      const model::ComparedKernel& kernel = comparison_.kernels[i];
      row(kernel.name + (kernel.folded ? " (folded)" : ""), counts_text(kernel.calls), kernel.per_call, most);
    }
    sink_.write("</tbody></table></div>");
  }

  const Comparison& comparison_;
  const Style& style_;
  Sink& sink_;
};

}  // namespace

void write_comparison_html(const Comparison& comparison, const Style& style, Sink& sink) {
  Page(comparison, style, sink).write();
}

}  // namespace rangescope::report
