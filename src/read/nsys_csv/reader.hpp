// Reader of what `nsys stats --format csv` prints, nsys 2020.4 to 2026 (docs/formats/nsys-csv.md).
//
//   chatter   "Processing [x.sqlite] with [.../nvtx_sum.py]...", "Using ...", blank lines, the program's own output
//   header    one line of column names; "Total Time (ns)": the unit stands in brackets, also for columns without one
//   (2020) rows      until a blank line or the next chatter; fields with commas are quoted
//
// Several reports may follow each other in one file. They are told apart by their columns, never by the file's name;
// only nvtx_pushpop_sum and nvtx_startend_sum have the same columns, and there the chatter or the name must say which.
// Nothing in these tables has a time: they become model::Summary.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::nsys_csv {

class NsysCsvReader : public Reader {
 public:
  [[nodiscard]] std::string_view name() const override { return "nsys-csv"; }
  [[nodiscard]] bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) const override;
  [[nodiscard]] base::Result<model::Session> read(const std::filesystem::path& path,
                                                  const Options& options) const override;
};

/// The same of text; `name` is used for errors and to tell push/pop from start/end.
[[nodiscard]] base::Result<model::Session> read_text(std::string_view text, std::string_view name);

}  // namespace rangescope::read::nsys_csv
