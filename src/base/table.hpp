// Lays out text tables: display widths (not bytes), numbers right-aligned, one column that shrinks,
// columns that give way.
//
// Titles and cells are made printable (base::printable): names in them may come from any file.
// O(cells).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rangescope::base {

enum class Tone : std::uint8_t { kPlain, kBold, kDim, kGood, kWarn, kBad };

/// `text` in that tone's ANSI colour; as it is when `color` is false.
[[nodiscard]] std::string toned(std::string text, Tone tone, bool color);

class Table {
 public:
  struct Column {
    std::string title;
    bool right = true;     ///< numbers
    bool shrinks = false;  ///< elided in the middle when the table is too wide; at most one column
    int importance = 0;  ///< columns of the lowest importance above 0 give way first; 0 never does
  };
  struct Cell {
    std::string text;
    Tone tone = Tone::kPlain;
  };

  explicit Table(std::vector<Column> columns);
  void add(std::vector<Cell> row);

  /// Lines with newlines, at most `width` columns wide as long as the shrinking column keeps
  /// `narrowest` (and 0: no limit). `dropped` gets the titles of columns that gave way.
  [[nodiscard]] std::string render(std::size_t width,
                                   bool color,
                                   std::vector<std::string>* dropped = nullptr,
                                   std::size_t narrowest = 16) const;

 private:
  [[nodiscard]] std::vector<std::size_t> content_widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace rangescope::base
