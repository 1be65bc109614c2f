// Reader of what `nsys stats --format csv` prints, nsys 2020.4 to 2026 (docs/formats/nsys-csv.md).
//
//   chatter   "Processing [x.sqlite] with [.../nvtx_sum.py]...", "Using ...", blank lines, the
//   program's own output header    one line of column names; "Total Time (ns)": the unit is in
//   brackets, also for columns without one (2020) rows      until a blank line or the next chatter;
//   fields with commas are quoted
//
// Several reports may follow each other in one file. They are distinguished by their columns, never
// by the file's name; only nvtx_pushpop_sum and nvtx_startend_sum have the same columns, and there
// the chatter or the name must tell which. Tables of sums have no times and become model::Summary;
// trace tables become a timeline (traces.hpp).
#pragma once

#include <span>

#include "read/reader.hpp"

namespace rangescope::read::nsys_csv {

extern const Reader kReader;

/// Whether two files hold tables of one recording: nsys names them "<recording>_<report>.csv", and
/// where a name does not say, they are taken together. Never when both have the same trace table.
/// Reads their first 4 KiB.
[[nodiscard]] bool same_recording(const std::filesystem::path& a, const std::filesystem::path& b);

/// Whether `table` was made of `whole`, by its name: "x_nvtx_sum.csv" of "x.sqlite" or
/// "x.nsys-rep".
[[nodiscard]] bool table_of(const std::filesystem::path& table, const std::filesystem::path& whole);

/// All tables of one recording as one session.
[[nodiscard]] base::Result<model::Session> read_files(std::span<const std::filesystem::path> paths);

/// What a file holds; `name` is used for errors and to tell push/pop from start/end.
struct Text {
  std::string_view text;
  std::string_view name;
};
/// kBadData when one of them has no table that is read (the place of the header that is not known,
/// and what would be), or times too coarse for a timeline.
[[nodiscard]] base::Result<model::Session> read_texts(std::span<const Text> texts);

}  // namespace rangescope::read::nsys_csv
