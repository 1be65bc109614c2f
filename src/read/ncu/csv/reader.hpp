// CSV that Nsight Compute printed: details, raw and summary pages of 2020 to 2025, as they lie on
// people's disks.
//
//   anything                              ==PROF== lines and the program's own output, before,
//   between and behind "ID","Process ID",...                 header: columns go by name, never by
//   place
//   "","",...,"%","ns"                    raw page only: units
//   "0","4711","app","127.0.0.1",...      raw: a row is a result. details: a row is a metric of a
//   section, or a rule;
//                                         such rows are ragged. Summaries: "Process ID" or "Domain"
//                                         comes first
//
// All cells are quoted; a quote inside is doubled. NVTX cells hold names as the program gave them,
// so they may hold colons and quotes: they are split at the known words for types, from behind
// (nvtx_cell.hpp). Numbers follow the locale that ncu ran in: separators are learned from the
// whole file (read/number.hpp), and a file that can be read in two ways is refused. Units are read
// with every value, since ncu scales row by row. Bytes need not be UTF-8.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::ncu_csv {

extern const Reader kReader;

/// The same of text in memory; `path` is what errors call it.
[[nodiscard]] base::Result<model::Session> read_text(std::string_view text,
                                                     const std::string& path,
                                                     const Options& options);

}  // namespace rangescope::read::ncu_csv
