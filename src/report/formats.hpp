// The exporters, for registry.cpp. Each is written as a stream, but those for people, which are
// laid out.
#pragma once

#include "report/exporter.hpp"

namespace rangescope::report {

/// For people: the table of a terminal, and Markdown. Both render the report's document.
Write export_terminal;
Write export_markdown;
/// The whole report, schema rangescope.report/1 (docs/formats/report-json.md); and the same, one
/// object a line.
Write export_json;
Write export_jsonl;
/// RFC 4180, for spreadsheets and scripts: one header row, one row a region, base units, every
/// measure.
Write export_csv;
/// One offline file. The page is built by npm from web/ and embedded (template.html); the exporter
/// puts the data in as JSON, once: `<`, `>`, `&` and U+2028/9 are written as \uNNNN, so that no
/// recorded name can end the element.
Write export_html;
/// A timeline for ui.perfetto.dev, in Perfetto's native format. Beyond the session it needs one
/// 32-bit index an event and one bit a name.
Write export_perfetto;
/// Every measure and metric of every region, for a node exporter's textfile folder or a push
/// gateway.
Write export_openmetrics;
/// Call chains: a line a chain, "range;function;function COUNT", for flamegraph.pl; and the JSON of
/// www.speedscope.app.
Write export_collapsed;
Write export_speedscope;
/// Ranges, functions and kernels with wall, CPU and GPU time, bytes and energy, for `go tool pprof`
/// and what reads it.
Write export_pprof;
/// Functions that take most CPU time, by source line: GitHub's workflow commands, and lines as
/// compilers warn.
Write export_annotations;
Write export_problems;

}  // namespace rangescope::report
