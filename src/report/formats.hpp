// The exporters, for registry.cpp. Formats for programs are written as a stream; those for people
// are laid out first.
#pragma once

#include "report/exporter.hpp"

namespace rangescope::report {

/// For people: the table of a terminal, and Markdown. Both render the report's document.
Write export_terminal;
Write export_markdown;
/// The whole report, schema rangescope.report/1 (docs/formats/report-json.md); jsonl has one object
/// a line.
Write export_json;
Write export_jsonl;
/// For spreadsheets and scripts (RFC 4180): a header row, a row for each region, base units, every
/// measure.
Write export_csv;
/// One offline file. The page is built from web/ by npm and embedded (template.html); the exporter
/// inserts the data as JSON. `<`, `>`, `&` and U+2028/9 are written as \uNNNN, so that no recorded
/// name can end the element.
Write export_html;
/// A timeline for ui.perfetto.dev, in Perfetto's native format. Needs memory for one 32-bit index
/// per event and one bit per name.
Write export_perfetto;
/// Every measure and metric of every region, for a node exporter's textfile folder or a push
/// gateway.
Write export_openmetrics;
/// Call chains: for flamegraph.pl a line "range;function;function COUNT" for each; and the JSON of
/// www.speedscope.app.
Write export_collapsed;
Write export_speedscope;
/// Ranges, functions and kernels with wall, CPU and GPU time, bytes and energy, for `go tool
/// pprof`.
Write export_pprof;
/// The functions with most CPU time, by source line: as GitHub's workflow commands, and as warnings
/// of a compiler.
Write export_annotations;
Write export_problems;

}  // namespace rangescope::report
