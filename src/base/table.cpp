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

/// Which columns are shown, and how wide.
class TableLayout {
 public:
  /// `widths`: of the columns' content.
  TableLayout(const std::vector<Table::Column>& columns, std::vector<std::size_t> widths)
      : columns_(columns), widths_(std::move(widths)), shown_(columns.size(), true) {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].shrinks)
        shrinking_ = i;
  }

  [[nodiscard]] bool shows(std::size_t column) const { return shown_[column]; }

  /// Leaves out columns until the others fit, the shrinking one no narrower than that.
  void fit(std::size_t width, std::size_t narrowest) {
    while (width_with(narrowest) > width && leave_one_out()) {
    }
    const std::size_t full = full_width();
    if (!shrinking_ || full <= width)
      return;
    std::size_t& shrunk = widths_[*shrinking_];
    const std::size_t excess = std::min(full - width, shrunk);
    shrunk = std::max(std::min(shrunk, narrowest), shrunk - excess);
  }

  /// A row of cells, without trailing blanks.
  [[nodiscard]] std::string line(const std::vector<Table::Cell>& row, bool color) const {
    std::string text;
    std::size_t pending = 0;  // spaces that are written only when something follows
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shown_[i])
        continue;
      const Table::Cell cell = i < row.size() ? row[i] : Table::Cell{};
      std::string shown = cell.text;
      if (display_width(shown) > widths_[i])
        shown = elide(shown, widths_[i]);
      if (shown.empty()) {
        pending += widths_[i] + kGap;
        continue;
      }
      const std::size_t fill = widths_[i] - std::min(widths_[i], display_width(shown));
      if (columns_[i].right)
        pending += fill;
      text.append(pending, ' ');
      text += toned(std::move(shown), cell.tone, color);
      pending = columns_[i].right ? kGap : fill + kGap;
    }
    return text + "\n";
  }

 private:
  [[nodiscard]] std::size_t full_width() const {
    std::size_t sum = 0, count = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (!shown_[i])
        continue;
      sum += widths_[i];
      ++count;
    }
    if (count == 0)
      return 0;
    return sum + (count - 1) * kGap;
  }
  /// Where the shrinking column is as narrow as it may get.
  [[nodiscard]] std::size_t width_with(std::size_t narrowest) const {
    if (!shrinking_ || !shown_[*shrinking_])
      return full_width();
    const std::size_t content = widths_[*shrinking_];
    return full_width() - content + std::min(content, narrowest);
  }
  /// The last column of the lowest importance. False where none gives way.
  bool leave_one_out() {
    std::optional<std::size_t> least_important;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shown_[i] || columns_[i].importance <= 0)
        continue;
      if (!least_important || columns_[i].importance <= columns_[*least_important].importance)
        least_important = i;
    }
    if (!least_important)
      return false;
    shown_[*least_important] = false;
    return true;
  }

  const std::vector<Table::Column>& columns_;
  std::vector<std::size_t> widths_;
  std::vector<bool> shown_;
  std::optional<std::size_t> shrinking_;
};

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
                          std::size_t narrowest) const {
  TableLayout layout(columns_, content_widths());
  if (width > 0)
    // A name that cannot be read is worth less than one more number.
    layout.fit(width, std::max(narrowest, width / 3));
  for (std::size_t i = 0; dropped != nullptr && i < columns_.size(); ++i)
    if (!layout.shows(i))
      dropped->push_back(columns_[i].title);

  std::string out;
  std::vector<Cell> titles;
  for (const Column& column : columns_)
    titles.push_back({column.title, Tone::kBold});
  out += layout.line(titles, color);
  for (const std::vector<Cell>& row : rows_)
    out += layout.line(row, color);
  return out;
}

std::vector<std::size_t> Table::content_widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_)
    widths.push_back(display_width(column.title));
  for (const std::vector<Cell>& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i].text));
  return widths;
}

}  // namespace rangescope::base
