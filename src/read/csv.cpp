#include "read/csv.hpp"

#include <algorithm>

namespace rangescope::read {
namespace {

constexpr std::size_t kMostCells = 100'000;
constexpr std::size_t kLongestCell = 256 * 1024;

/// The quoted cell whose quote is just before `offset`, which moves behind the closing one; false
/// where none closes it.
bool quoted_cell(std::string_view text, std::size_t& offset, Row& row) {
  std::size_t begin = offset;  // of the part that is not in `joined` yet
  std::string* joined = nullptr;
  for (;;) {
    const std::size_t quote = text.find('"', begin);
    if (quote == std::string_view::npos || quote - offset > kLongestCell)
      return false;
    const bool doubled = quote + 1 < text.size() && text[quote + 1] == '"';
    if (doubled && joined == nullptr)
      joined = &row.unescaped.emplace_back();
    if (doubled) {
      joined->append(text.substr(begin, quote + 1 - begin));
      begin = quote + 2;
      continue;
    }
    std::string_view cell = text.substr(begin, quote - begin);
    if (joined != nullptr)
      cell = joined->append(cell);
    row.cells.push_back(cell);
    offset = quote + 1;
    return true;
  }
}

std::string_view without_return(std::string_view cell) {
  if (cell.ends_with('\r'))
    cell.remove_suffix(1);
  return cell;
}

}  // namespace

bool next_row(
    std::string_view text, std::size_t& offset, std::uint64_t& line, Row& row, Unquoted unquoted) {
  row.cells.clear();
  row.unescaped.clear();
  row.torn = false;
  row.line = line;
  if (offset >= text.size())
    return false;
  const std::size_t begin = offset;
  const bool is_one_cell = unquoted == Unquoted::kWhole && text[offset] != '"';
  for (;;) {
    const bool quote = !is_one_cell && offset < text.size() && text[offset] == '"';
    if (quote && quoted_cell(text, ++offset, row)) {
      offset = std::min(text.find_first_of(",\n", offset), text.size());
    } else {
      row.torn = quote;
      const std::size_t end =
          std::min(text.find_first_of(is_one_cell || row.torn ? "\n" : ",\n", offset), text.size());
      row.cells.push_back(without_return(text.substr(offset, end - offset)));
      offset = end;
    }
    if (offset < text.size() && text[offset] == ',' && row.cells.size() < kMostCells) {
      ++offset;
      continue;
    }
    const std::size_t end = std::min(text.find('\n', offset), text.size());
    row.text = without_return(text.substr(begin, end - begin));
    line += static_cast<std::uint64_t>(std::ranges::count(row.text, '\n')) + 1;
    offset = std::min(end + 1, text.size());
    return true;
  }
}

}  // namespace rangescope::read
