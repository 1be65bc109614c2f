// Tables that tools print for people: a line of dashes marks the columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace rangescope::read {

/// The line that begins at `at`, which moves behind it; false at the end.
inline bool next_line(std::string_view text, std::size_t& at, std::string_view& line) {
  if (at >= text.size()) return false;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  line = text.substr(at, end - at);
  if (line.ends_with('\r')) line.remove_suffix(1);
  at = end + 1;
  return true;
}

/// Begin and end of columns.
using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

/// The places of the groups of a line of dashes; empty for any other line, and for one with less than three.
inline Spans dashes(std::string_view line, char between = ' ') {
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

}  // namespace rangescope::read
