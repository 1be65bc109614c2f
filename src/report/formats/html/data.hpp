// The data of the HTML report as JSON.
//
//   { schema, run, command, facts (the line below it), measures: [{tag, title, unit, formula,
//   source}], processes, devices,
//     regions: [{id, parent, depth, path, domain, kind, process, thread, v: [number or null for
//     each measure], ...}], rows: [{parent, depth, siblings, members: [region ids], region: sums
//     where they are several, label and joined: [region ids] of a chain}] (absent unless a row
//     combines several regions; as in the terminal's table),
//     counter_heads: [title of each of a kernel's `counters`], kernels, total, unattributed,
//     losses, findings, notes, timeline or null, cpu or null, job or null, verdict: [{kind,
//     severity, path, region, text, try, saves, saves_share, next, predicted (of a cure)}],
//     what_if: {changes: [{change, of}], run, regions: [{region, ...}]} (absent unless asked for),
//     tables: [{title, heads, right, rows, more}] (functions and waits of a program without ranges)
//     }
//
// A prediction (of a cure, the run, a region) is { before, after, low, high, at_most }, in ns.
//
// Parts that the JSON report has too are in its form (document/json_writer.hpp), but for `stalls`
// of a kernel: its reasons are waits alone, and each line has its place as a text, `at`, and what
// is written there, `text`.
//
// Timeline (times in ns since the begin of the recording):
//   { duration, links, lanes: [{title, pid, rank, kind, rows, items, full,
//                               levels: [{r, chunks: [{s, e, n, d}]}]}], names: [[text, region id
//                               or -1]],
//     counters: [{title, unit, most, step, d}] }
// Levels go from coarse to fine. In level r > 0, neighbours nearer than r and shorter than r are
// merged into blocks; r = 0 is every item (`full` says whether the lane has it: it is left out
// where the file would grow past its budget). A chunk holds n items between s and e; d is base64 of
// LEB128 numbers, for each item:
//   start - start of the item before (zigzag; 0 for the first: the smallest start of the chunk is
//   s), duration, row, name, then if r > 0: how many it stands for, and how much of it was busy,
//   percent, else on streams: 0, or 1 + the lane of the launching thread followed by start - start
//   of the call (zigzag); else on threads: 1 if it is an API call and 2 if it has no end, added up.
// A counter's d is base64 of a byte for each `step` ns: 0 unknown, else 1 + 254 times the mean over
// it, divided by `most`.
//
// Job: { ranks: [{rank, host, device}], heat: [{region, own: [...], all: [...]}] (microseconds a
// rank, null where it
//   did not open the range; the largest regions), activity: [base64 a rank: a byte each for
//   compute, transfer and wait of each stretch of the run, 255 is all of it], tables: [{title,
//   heads, right (of each whether it is a number), rows, more}] }
//
// CPU samples: { interval_ns, shortened, names: [[text, 0 native 1 Python 2 kernel 3 cut, file]],
//   nodes: [how far before it its caller stands or 0, index in names, ...],
//   regions: [{id, samples, split: [[kind, name, ns, ns while the GPU was idle or null]] (the four
//   parts), parts:
//   [...],
//              stacks: [node or -1, samples outside child regions, ...]}], outside: [node or -1,
//              samples, ...] }
// A chain is drawn in one region: that of the aggregate, and of one domain. The tree is bounded
// (report/document/flame.hpp); `shortened` samples stand where their chain leaves it.
#pragma once

#include "report/document/document.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

class JsonWriter;

/// Most items that are written one by one; more are merged, finest level first.
inline constexpr std::uint64_t kHtmlItems = 1'200'000;

[[nodiscard]] std::string html_base64(std::string_view bytes);
void write_html_data(const model::Report& report, const model::Session* session, JsonWriter& json);
void write_html_timeline(const model::Report& report, const model::Session& session,
                         JsonWriter& json, std::uint64_t most_items = kHtmlItems);
void write_html_job(const model::Report& report, JsonWriter& json);
/// `tables`: the first grid of each section, as text.
void write_html_tables(const std::vector<Section>& sections, JsonWriter& json);
void write_html_cpu(const model::Report& report, const model::Session& session, JsonWriter& json);

}  // namespace rangescope::report
