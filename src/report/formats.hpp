// The exporters, for registry.cpp. Each is written as a stream, but those for people, which are laid out.
#pragma once

#include <memory>

#include "report/exporter.hpp"

namespace rangescope::report {

/// For people: the table of a terminal, and Markdown. Both render the report's document.
[[nodiscard]] std::unique_ptr<Exporter> make_terminal();
[[nodiscard]] std::unique_ptr<Exporter> make_markdown();
/// The whole report, schema rangescope.report/1 (docs/formats/report-json.md); and the same, one object a line.
[[nodiscard]] std::unique_ptr<Exporter> make_json();
[[nodiscard]] std::unique_ptr<Exporter> make_jsonl();
/// RFC 4180, for spreadsheets and scripts: one header row, one row a region, base units, every measure.
[[nodiscard]] std::unique_ptr<Exporter> make_csv();
/// One offline file. The page is built by npm from web/ and embedded (template.html); the exporter puts the data in as
/// JSON, once: `<`, `>`, `&` and U+2028/9 are written as \uNNNN, so that no recorded name can end the element.
[[nodiscard]] std::unique_ptr<Exporter> make_html();
/// Timelines for other viewers: Perfetto's native format and Chrome's trace events. Beyond the session they need one
/// 32-bit index an event, and for Perfetto one bit a name.
[[nodiscard]] std::unique_ptr<Exporter> make_perfetto();
[[nodiscard]] std::unique_ptr<Exporter> make_chrome();
/// Every measure and metric of every region, for a node exporter's textfile folder or a push gateway.
[[nodiscard]] std::unique_ptr<Exporter> make_openmetrics();
/// Call chains: a line a chain, "range;function;function COUNT", for flamegraph.pl; and the JSON of www.speedscope.app.
[[nodiscard]] std::unique_ptr<Exporter> make_collapsed();
[[nodiscard]] std::unique_ptr<Exporter> make_speedscope();
/// Ranges, functions and kernels with wall, CPU and GPU time, bytes and energy, for `go tool pprof` and what reads it.
[[nodiscard]] std::unique_ptr<Exporter> make_pprof();

}  // namespace rangescope::report
