// The rows of a CSV that lies between other output.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::read::ncu_csv {

/// Cells of one record; views into the text, or into `unescaped` where quotes were doubled.
struct Row {
  std::vector<std::string_view> cells;
  std::deque<std::string> unescaped;  // a deque: views into it stay valid
  std::uint64_t line = 0;             ///< of its first character, from 1
  bool torn = false;                  ///< the text ended inside a quoted cell
  std::string_view text;              ///< the whole record
};

/// Reads the record at `offset` and moves behind it; false at the end. A record that begins with a quote may run over
/// several lines; one that does not is a line of somebody else's output, given as one cell.
bool next_row(std::string_view text, std::size_t& offset, std::uint64_t& line, Row& row);

/// True for the first cells of a header that ncu prints.
[[nodiscard]] bool is_header(const Row& row);

}  // namespace rangescope::read::ncu_csv
