#include "read/nsys/csv/printed.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace rangescope::read::nsys_csv {
namespace {

using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

/// Where the groups of a line of dashes stand; empty for any other line. One column alone is no table.
Spans dashes(std::string_view line, char between) {
  Spans spans;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == between) {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find_first_not_of('-', at), line.size());
    if (end == at || (end < line.size() && line[end] != between)) return {};
    spans.emplace_back(at, end);
    at = end;
  }
  return spans.size() < 3 ? Spans{} : spans;
}

/// A table whose header and columns are known. Numbers are written as the locale has them: nsys 2022.4 under a German
/// one prints "65,0" and "223.965" for 65.0 and 223965 (and as CSV always 223965).
class Printed {
 public:
  Printed() = default;
  Printed(Spans spans, bool framed, std::string_view header) : spans_(std::move(spans)), framed_(framed) {
    row(header);
  }

  [[nodiscard]] bool open() const { return !spans_.empty(); }

  /// Can this line be a row, judged by the columns that hold numbers? Behind blank lines, which people's logs have
  /// between rows, other text may follow.
  [[nodiscard]] bool fits(std::string_view line) {
    row(line);
    const std::vector<std::string> cells = std::move(rows_.back());
    rows_.pop_back();
    bool any = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!rows_.front()[i].ends_with(')')) continue;  // "Time (%)", "Avg (ns)"
      if (!is_number(cells[i]) && !cells[i].empty()) return false;
      any |= !cells[i].empty();
    }
    return any;
  }

  void row(std::string_view line) {
    std::string plain;  // one byte a character up to the last column, so that the dashes tell where columns are
    const std::size_t last = spans_.back().first;
    while (!line.empty() && plain.size() < last) {
      const std::string_view group = separator(line);
      plain += group.empty() ? line.front() : '\'';
      line.remove_prefix(std::max<std::size_t>(group.size(), 1));
    }
    plain += line;
    if (const std::size_t frame = plain.rfind('|'); framed_ && frame != std::string::npos) plain.resize(frame);
    std::vector<std::string>& cells = rows_.emplace_back();
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const std::size_t from = std::min(spans_[i].first, plain.size()),
                        to = i + 1 == spans_.size() ? plain.size() : std::min(spans_[i].second, plain.size());
      cells.emplace_back(base::trim(std::string_view(plain).substr(from, to - from)));
    }
  }

  void write(std::string& out) {
    const char point = point_of();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (std::size_t i = 0; i < rows_[r].size(); ++i) {
        std::string& cell = rows_[r][i];
        if (r > 0 && i + 1 < rows_[r].size() && is_number(cell)) {
          std::erase_if(cell, [&](char c) { return (c == '.' || c == ',' || c == '\'') && c != point; });
          std::replace(cell.begin(), cell.end(), point, '.');
        }
        out += i == 0 ? "\"" : ",\"";
        out += base::replace_all(cell, "\"", "\"\"");
        out += '"';
      }
      out += '\n';
    }
    *this = {};
  }

 private:
  /// What stands between thousands and is no byte of ASCII: a narrow or plain no-break space, an apostrophe.
  static std::string_view separator(std::string_view text) {
    for (const std::string_view group : {"\xe2\x80\xaf", "\xc2\xa0", "\xe2\x80\x99"})
      if (text.starts_with(group)) return text.substr(0, group.size());
    return {};
  }
  static bool is_number(std::string_view cell) {
    return !cell.empty() && cell.find_first_not_of("0123456789.,'-") == std::string_view::npos;
  }

  /// The first number that can be read in one way only decides: of two kinds of separators the last is the point, one
  /// that stands twice is none, and less than three digits stand behind a point alone.
  [[nodiscard]] char point_of() const {
    for (std::size_t r = 1; r < rows_.size(); ++r) {
      for (std::size_t i = 0; i + 1 < rows_[r].size(); ++i) {
        const std::string& cell = rows_[r][i];
        const std::size_t at = cell.find_last_of(".,");
        if (at == std::string::npos || !is_number(cell)) continue;
        const char last = cell[at], other = last == '.' ? ',' : '.';
        if (cell.find(other) < at || cell.size() - at - 1 < 3) return last;
        if (cell.find(last) < at) return other;
      }
    }
    return '.';
  }

  Spans spans_;
  bool framed_ = false;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

std::string printed_as_csv(std::string_view text) {
  std::string out, report;
  std::string_view before;
  bool gap = false;
  Printed table;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (base::trim(line).empty()) {
      gap = true;
      continue;
    }
    const bool framed = line.starts_with("+-");
    if (table.open() && (framed || (gap && !table.fits(line)))) table.write(out);
    gap = false;
    if (table.open()) {
      table.row(line);
    } else if (Spans spans = dashes(line, framed ? '+' : ' '); !spans.empty()) {
      if (!framed || before.starts_with('|')) {  // else it stands above the header
        out += "\nProcessing [" + report + "]\n";
        table = Printed(std::move(spans), framed, before);
      }
    } else if (const std::size_t open = line.rfind('('); line.ends_with("):") && open != std::string_view::npos) {
      report = line.substr(open + 1, line.size() - open - 3);
    } else if (const std::size_t quote = line.find("Executing '"); quote != std::string_view::npos) {
      report = line.substr(quote + 11, line.find('\'', quote + 11) - quote - 11);
    }
    before = line;
  }
  if (table.open()) table.write(out);
  return out;
}

}  // namespace rangescope::read::nsys_csv
