// The rows of the table over all processes as people read them: a row and its only child that has
// the same numbers (model::TableRow::joins_child) are one row, `Model > model > layers.# x32`. Its
// numbers are those of the innermost. Shared by the terminal, Markdown and the HTML page.
#pragma once

#include <string>
#include <vector>

#include "model/report.hpp"

namespace rangescope::report {

struct ShownRow {
  const model::TableRow* row = nullptr;  ///< the innermost, which the numbers are of
  const model::Region* region = nullptr;
  std::vector<const model::TableRow*> joined;  ///< those around it that are not rows themselves
  std::string label;
  std::string siblings;  ///< " x32", the end of `label`
  std::size_t depth = 0;
  std::uint32_t parent = model::kNone;  ///< index of another shown row
  [[nodiscard]] std::size_t regions() const;
};

[[nodiscard]] std::vector<ShownRow> shown_rows(const model::Report& report);
/// Does any row combine several regions?
[[nodiscard]] bool has_folded_rows(const model::Report& report);

}  // namespace rangescope::report
