#include "read/ncu_csv/table.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::read::ncu_csv {
namespace {

constexpr std::size_t kMostCells = 100'000;

}  // namespace

bool next_row(std::string_view text, std::size_t& offset, std::uint64_t& line, Row& row) {
  row.cells.clear();
  row.unescaped.clear();
  row.torn = false;
  row.line = line;
  if (offset >= text.size()) return false;
  const std::size_t begin = offset;
  if (text[offset] != '"') {
    const std::size_t end = std::min(text.find('\n', offset), text.size());
    row.cells.push_back(text.substr(offset, end - offset));
    if (row.cells[0].ends_with('\r')) row.cells[0].remove_suffix(1);
    row.text = row.cells[0];
    offset = std::min(end + 1, text.size());
    ++line;
    return true;
  }
  for (;;) {
    if (offset < text.size() && text[offset] == '"') {
      std::size_t from = ++offset;
      std::string* joined = nullptr;
      for (;;) {
        const std::size_t quote = text.find('"', offset);
        if (quote == std::string_view::npos) {
          row.torn = true;
          row.cells.push_back(text.substr(from));
          row.text = text.substr(begin);
          offset = text.size();
          return true;
        }
        if (quote + 1 < text.size() && text[quote + 1] == '"') {
          if (joined == nullptr) joined = &row.unescaped.emplace_back();
          joined->append(text.substr(from, quote + 1 - from));
          from = offset = quote + 2;
          continue;
        }
        if (joined != nullptr) {
          joined->append(text.substr(from, quote - from));
          row.cells.push_back(*joined);
        } else {
          row.cells.push_back(text.substr(from, quote - from));
        }
        offset = quote + 1;
        break;
      }
    } else {
      const std::size_t end = std::min(text.find_first_of(",\n", offset), text.size());
      std::string_view cell = text.substr(offset, end - offset);
      if (cell.ends_with('\r')) cell.remove_suffix(1);
      row.cells.push_back(cell);
      offset = end;
    }
    if (offset < text.size() && text[offset] == ',' && row.cells.size() < kMostCells) {
      ++offset;
      continue;
    }
    const std::size_t end = std::min(text.find('\n', offset), text.size());
    row.text = text.substr(begin, end - begin);
    line += static_cast<std::uint64_t>(std::ranges::count(row.text, '\n')) + 1;
    offset = std::min(end + 1, text.size());
    return true;
  }
}

bool is_header(const Row& row) {
  const auto has = [&](std::string_view name) { return std::ranges::find(row.cells, name) != row.cells.end(); };
  if (row.cells.size() < 5) return false;
  const std::string_view first = row.cells[0];
  if (first == "ID") return has("Process ID") && has("Kernel Name");
  if (first == "Process ID" || first == "Domain" || first == "Device") return has("Kernel Name") && has("Invocations");
  return false;
}

}  // namespace rangescope::read::ncu_csv
