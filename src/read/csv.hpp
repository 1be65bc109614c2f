// Comma-separated values (RFC 4180) that may lie between other output.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::read {

/// Cells of one record; views into the text, or into `unescaped` where quotes were doubled.
struct Row {
  std::vector<std::string_view> cells;
  std::deque<std::string> unescaped;  // a deque: views into it stay valid
  std::uint64_t line = 0;             ///< of its first character, from 1
  bool torn = false;                  ///< a quote never closes: its cell ends with its line
  std::string_view text;              ///< the whole record
};

/// A line that begins with no quote: cells like any other, or somebody else's output, given as one
/// cell.
enum class Unquoted : std::uint8_t { kCells, kWhole };

/// Reads the record at `offset` and moves behind it; false at the end. Quoted cells may run over
/// several lines; one of more than 256 KiB is taken for a stray quote in a program's output, which
/// must not swallow the table behind it.
bool next_row(std::string_view text,
              std::size_t& offset,
              std::uint64_t& line,
              Row& row,
              Unquoted unquoted = Unquoted::kCells);

}  // namespace rangescope::read
