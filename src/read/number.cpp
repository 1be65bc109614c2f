#include "read/number.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"

namespace rangescope::read {
namespace {

/// Blanks of every kind and apostrophes separate thousands in some locales: plain blank, no-break
/// space, narrow no-break space, right quote, and the lone byte that ncu 2020.3 leaves of a narrow
/// space. Bytes of it, 0 for none.
std::size_t blank_at(std::string_view text) {
  if (text.empty())
    return 0;
  if (text.front() == ' ' || text.front() == '\'')
    return 1;
  for (const std::string_view blank :
       {"\xe2\x80\xaf", "\xe2\x80\x89", "\xe2\x80\x99", "\xc2\xa0"}) {
    if (text.starts_with(blank))
      return blank.size();
  }
  const auto byte = static_cast<unsigned char>(text.front());
  if (byte == 0xe2 || byte == 0xa0)
    return 1;
  return 0;
}

/// Digits, points and commas only (blanks taken out), or nothing when the cell is no number.
std::optional<std::string> essence(std::string_view cell) {
  std::string out;
  bool digits = false, exponent = false;
  for (std::size_t i = 0; i < cell.size();) {
    const char c = cell[i];
    if (base::is_digit(c)) {
      digits = true;
    } else if (c == '.' || c == ',') {
      if (exponent)
        return std::nullopt;
    } else if ((c == '-' || c == '+') && (i == 0 || cell[i - 1] == 'e' || cell[i - 1] == 'E')) {
    } else if ((c == 'e' || c == 'E') && digits && !exponent) {
      exponent = true;
    } else if (const std::size_t blank = blank_at(cell.substr(i)); blank > 0 && digits) {
      i += blank;
      continue;
    } else {
      return std::nullopt;
    }
    out += c;
    ++i;
  }
  if (!digits)
    return std::nullopt;
  return out;
}

}  // namespace

void PointGuess::see(std::string_view cell, std::uint64_t line) {
  if (cell.find_first_of(".,") == std::string_view::npos ||
      (dot_line_ != 0 && comma_line_ != 0 && groups_line_ != 0))
    return;
  const auto number = essence(cell);
  if (!number)
    return;
  const auto dots = std::ranges::count(*number, '.'), commas = std::ranges::count(*number, ',');
  const auto decide = [&](char point) {
    std::uint64_t& first_line = point == '.' ? dot_line_ : comma_line_;
    if (first_line == 0)
      first_line = line;
  };
  if (dots > 0 && commas > 0)
    return decide(number->rfind('.') > number->rfind(',') ? '.' : ',');
  const char only = dots > 0 ? '.' : ',';
  if (dots > 1) {
    if (groups_line_ == 0)
      groups_line_ = line;
    return;
  }
  if (commas > 1)
    return decide('.');
  const std::size_t separator = number->find(only);
  const std::size_t first = number->find_first_of("0123456789");
  const std::size_t end = std::min(number->find_first_of("eE"), number->size());
  const std::size_t before = separator - std::min(first, separator), behind = end - separator - 1;
  if (behind != 3 || before == 0 || before > 3 || (*number)[first] == '0')
    return decide(only);
  if (open_line_ == 0) {
    open_line_ = line;
    open_cell_ = cell;
  }
}

Point PointGuess::point() const {
  if (dot_line_ != 0 && groups_line_ != 0)
    return Point::kMixed;
  if (dot_line_ != 0)
    return Point::kDot;
  if (comma_line_ != 0 || groups_line_ != 0)
    return Point::kComma;
  if (open_line_ != 0)
    return Point::kUnknown;
  return Point::kDot;
}

std::optional<double> parse_number(std::string_view cell, Point point) {
  if (point == Point::kMixed) {
    const auto number = essence(cell);
    if (!number)
      return std::nullopt;
    const auto dots = std::ranges::count(*number, '.'), commas = std::ranges::count(*number, ',');
    const std::size_t last = number->find_last_of(".,");
    const bool three = last != std::string::npos && number->size() - last == 4;
    if (commas > 1 || (commas == 1 && three))
      return std::nullopt;
    if (commas == 1)
      return parse_number(cell, Point::kComma);
    const bool group = dots == 1 && three && last > 0 && last <= 4 && number->front() != '0';
    if (dots > 1 || group)
      return parse_number(cell, Point::kComma);
    return parse_number(cell, Point::kDot);
  }
  const auto plain = plain_number(cell, point);
  if (!plain)
    return std::nullopt;
  return base::to_double(*plain);
}

std::optional<std::string> plain_number(std::string_view cell, Point point) {
  const auto number = essence(cell);
  if (!number)
    return std::nullopt;
  char decimal = '.', thousands = ',';
  if (point == Point::kComma)
    std::swap(decimal, thousands);
  const std::size_t whole_end = std::min(number->find(decimal), number->size());
  std::string plain;
  std::size_t group = 0;
  bool grouped = false;
  for (std::size_t i = 0; i < number->size(); ++i) {
    const char c = (*number)[i];
    if (c == thousands) {
      if (i > whole_end || (grouped && group != 3) || group == 0 || group > 3)
        return std::nullopt;
      grouped = true;
      group = 0;
    } else {
      if (i == whole_end && grouped && group != 3)
        return std::nullopt;
      if (i < whole_end && base::is_digit(c))
        ++group;
      plain += c == decimal ? '.' : c;
    }
  }
  if (grouped && whole_end == number->size() && group != 3)
    return std::nullopt;
  return plain;
}

}  // namespace rangescope::read
