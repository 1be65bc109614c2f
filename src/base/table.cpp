#include "base/table.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.hpp"

namespace rangescope::base {
namespace {

constexpr std::size_t kGap = 2;

constexpr std::string_view kTones[] = {
    "", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};  // by Tone

}  // namespace

std::string toned(std::string text, Tone tone, bool color) {
  if (!color || tone == Tone::kPlain || text.empty())
    return text;
  return std::string(kTones[static_cast<std::size_t>(tone)]) + text + "\x1b[0m";
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_)
    column.title = printable(column.title);
}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row)
    cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::string Table::render(std::size_t width,
                          bool color,
                          std::vector<std::string>* dropped,
                          std::size_t least) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_)
    widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i].text));
  }
  std::vector<bool> shown(columns_.size(), true);
  std::optional<std::size_t> shrinking;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].shrinks)
      shrinking = i;
  }
  // A name that cannot be read is worth less than one more number.
  least = std::max(least, width / 3);
  // What the table needs when the shrinking column is as narrow as it may get.
  const auto needed = [&](bool narrow) {
    std::size_t sum = 0, count = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!shown[i])
        continue;
      sum += narrow && shrinking == i ? std::min(widths[i], least) : widths[i];
      ++count;
    }
    return sum + (count > 0 ? (count - 1) * kGap : 0);
  };
  while (width > 0 && needed(true) > width) {
    std::optional<std::size_t> victim;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shown[i] || columns_[i].importance <= 0)
        continue;
      if (!victim || columns_[i].importance <= columns_[*victim].importance)
        victim = i;
    }
    if (!victim)
      break;
    shown[*victim] = false;
  }
  for (std::size_t i = 0; dropped != nullptr && i < columns_.size(); ++i)
    if (!shown[i])
      dropped->push_back(columns_[i].title);
  if (width > 0 && shrinking && needed(false) > width) {
    const std::size_t excess = needed(false) - width;
    widths[*shrinking] = std::max(std::min(widths[*shrinking], least),
                                  widths[*shrinking] - std::min(excess, widths[*shrinking]));
  }

  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string text;
    std::size_t pending =
        0;  // spaces that are written only when something follows: no trailing blanks
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shown[i])
        continue;
      Cell cell = cell_of(i);
      if (display_width(cell.text) > widths[i])
        cell.text = elide(cell.text, widths[i]);
      const std::size_t fill = widths[i] - std::min(widths[i], display_width(cell.text));
      if (cell.text.empty()) {
        pending += widths[i] + kGap;
        continue;
      }
      text.append(pending + (columns_[i].right ? fill : 0), ' ');
      text += toned(std::move(cell.text), cell.tone, color);
      pending = (columns_[i].right ? 0 : fill) + kGap;
    }
    out += text + "\n";
  };
  line([&](std::size_t i) { return Cell{columns_[i].title, Tone::kBold}; });
  for (const auto& row : rows_)
    line([&](std::size_t i) { return i < row.size() ? row[i] : Cell{}; });
  return out;
}

}  // namespace rangescope::base
