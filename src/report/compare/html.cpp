// The comparison as one offline page without scripts of others: side by side, what changed most first. Names are text
// wherever they stand. The only script filters the tables by what is typed.
#include "report/compare/document.hpp"
#include "report/compare/flame.hpp"
#include "report/compare/formats.hpp"
#include "report/compare/view.hpp"
#include "report/sink.hpp"

namespace rangescope::report {
namespace {

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
th,td{padding:.28rem .6rem;white-space:nowrap;border-bottom:1px solid var(--line)}
.n{text-align:right}
th{background:var(--head);font-weight:600;position:sticky;top:0;text-align:left}th.n{text-align:right}
th:first-child,td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:11rem}
tr:last-child td{border-bottom:0}.more{color:var(--worse);font-weight:600}.less{color:var(--better);font-weight:600}
.noise{color:var(--noise)}
td svg{vertical-align:middle;margin-right:.4rem}
svg line{stroke:var(--line)}svg .more{stroke:var(--worse)}svg .less{stroke:var(--better)}
svg .noise{stroke:var(--noise)}
svg circle{stroke:none}svg circle.more{fill:var(--worse)}svg circle.less{fill:var(--better)}
svg circle.noise{fill:var(--noise)}
input,button,select{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:6px;
padding:.3rem .6rem;max-width:100%;box-sizing:border-box}input{width:22rem}
@media(max-width:640px){.wide{display:none}th:first-child,td:first-child{min-width:7rem}th,td{padding:.28rem .35rem}}
@media print{.scroll{overflow:visible}label{display:none}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
</style></head><body>
)";

constexpr std::string_view kTail = R"(<script>
document.getElementById("find").addEventListener("input",e=>{const w=e.target.value.toLowerCase();
for(const r of document.querySelectorAll("tbody tr"))r.hidden=!r.cells[0].textContent.toLowerCase().includes(w)});
document.documentElement.dataset.ready="1"
</script></body></html>
)";

}  // namespace

void write_comparison_html(const model::Comparison& comparison, const Style& style, Sink& sink) {
  Document page = comparison_document(comparison, style);
  page.sections.front().blocks.emplace_back(
      Markup{"<p><label>Find <input id=\"find\" type=\"search\" placeholder=\"range or kernel\"></label></p>", "", ""});
  if (const model::ComparedRegion* region = chains_shown(comparison, style.cpu)) {
    StringSink flame;
    write_flame(comparison, *region, flame);
    if (!flame.text().empty())
      page.begin("flame graph of " + region_label(*region)).blocks.emplace_back(Markup{flame.text(), "", ""});
  }
  sink.write(kHead);
  render_html(page, sink);
  sink.write(kTail);
}

}  // namespace rangescope::report
