// The data of the HTML report as JSON.
//
//   { schema, run, command, facts (the line below the command),
//     measures: [{tag, title, unit, formula, source}], processes, devices,
//     regions: [{id, parent, depth, path, domain, kind, process, thread,
//                v: [number or null for each measure], ...}],
//     rows: [{parent, depth, siblings, members: [region ids], region: sums of several members,
//             label and joined: [region ids] of a chain}]
//           (absent unless a row combines several regions; as in the terminal's table),
//     counter_heads: [title of each of a kernel's `counters`], kernels, total, unattributed,
//     losses, findings, notes, timeline or null, cpu or null, job or null,
//     verdict: [{kind, severity, path, region, text, try, saves, saves_share, next,
//                predicted (of a cure)}],
//     what_if: {changes: [{change, of}], run, regions: [{region, ...}]}
//              (absent without --what-if),
//     tables: [{title, heads, right, rows, more}] (functions and waits of a program without ranges)
//     }
//
// A prediction (of a cure, the run, a region) is { before, after, low, high, at_most }, in ns.
//
// Parts that the JSON report has too have its form (document/json_writer.hpp), except `stalls` of a
// kernel: its reasons are only waits, and each line has its place and source as texts, `at` and
// `text`.
//
// Timeline (times in ns since the start of the recording):
//   { duration, links,
//     lanes: [{title, pid, rank, kind, rows, items, full,
//              levels: [{r, chunks: [{s, e, n, d}]}]}],
//     names: [[text, region id or -1]],
//     counters: [{title, unit, most, step, d}] }
// Levels go from coarse to fine. In a level r > 0, neighbours closer than r and shorter than r are
// merged into blocks; the level r = 0 has every item (`full` says whether the lane has that level,
// which is left out if the file would exceed its budget). A chunk has n items between s and e. Its
// d is base64 of LEB128 numbers, for each item:
//   - start - start of the previous item (zigzag; of the first item 0: it starts at s)
//   - duration, row, name
//   - in a level r > 0: the number of merged items, and the busy share in percent
//   - in the level r = 0 on streams: 0, or 1 + the lane of the launching thread followed by
//     start - start of the call (zigzag)
//   - in the level r = 0 on threads: the sum of 1 for an API call and 2 for an item without end
// A counter's d is base64 of a byte for each `step` ns: 0 if unknown, else 1 + 254 times the mean
// divided by `most`.
//
// Job:
//   { ranks: [{rank, host, device}],
//     heat: [{region, own: [...], all: [...]}] (the largest regions; microseconds of each rank,
//           null for a rank without the range),
//     activity: [base64 for each rank: a byte each for compute, transfer and wait of each stretch
//     of
//               the run, 255 is all of it],
//     tables: [{title, heads, right (of each whether it is a number), rows, more}] }
//
// CPU samples:
//   { interval_ns, shortened, names: [[text, 0 native 1 Python 2 kernel 3 cut, file]],
//     nodes: [distance to the node of its caller or 0, index in names, ...],
//     regions: [{id, samples,
//                split: [[kind, name, ns, ns while the GPU was idle or null]] (the four parts),
//                parts: [...], stacks: [node or -1, samples outside child regions, ...]}],
//     outside: [node or -1, samples, ...] }
// A chain is drawn in one region: that over all processes, of one domain. The size of the tree is
// bounded (report/document/flame.hpp): `shortened` samples count at an ancestor.
#pragma once

#include "report/document/document.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

class JsonWriter;

/// Items that are written singly; of more, the finest levels are left out.
inline constexpr std::uint64_t kHtmlItems = 1'200'000;

[[nodiscard]] std::string html_base64(std::string_view bytes);
void write_html_data(const model::Report& report, const model::Session* session, JsonWriter& json);
void write_html_timeline(const model::Report& report,
                         const model::Session& session,
                         JsonWriter& json,
                         std::uint64_t max_items = kHtmlItems);
void write_html_job(const model::Report& report, JsonWriter& json);
/// "tables": the first grid of each section, as text.
void write_html_tables(const std::vector<Section>& sections, JsonWriter& json);
void write_html_cpu(const model::Report& report, const model::Session& session, JsonWriter& json);

}  // namespace rangescope::report
