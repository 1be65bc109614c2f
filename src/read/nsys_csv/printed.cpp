#include "read/nsys_csv/printed.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "read/nsys_csv/nvprof.hpp"

namespace rangescope::read::nsys_csv {
namespace {

using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

/// Where the groups of a line of dashes stand; empty for any other line. One column alone is no table.
Spans dashes(std::string_view line) {
  Spans spans;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find_first_not_of('-', at), line.size());
    if (end == at || (end < line.size() && line[end] != ' ')) return {};
    spans.emplace_back(at, end);
    at = end;
  }
  return spans.size() < 3 ? Spans{} : spans;
}

void add_row(std::string& out, std::string_view line, const Spans& spans) {
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const std::size_t from = std::min(spans[i].first, line.size()),
                      to = i + 1 == spans.size() ? line.size() : std::min(spans[i].second, line.size());
    const std::string_view cell = base::trim(line.substr(from, to - from));
    out += i == 0 ? "\"" : ",\"";
    out += base::replace_all(cell, "\"", "\"\"");
    out += '"';
  }
  out += '\n';
}

}  // namespace

std::string printed_as_csv(std::string_view text) {
  std::string out, report;
  std::string_view before;
  Spans spans;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (base::trim(line).empty()) {
      spans.clear();
    } else if (!spans.empty()) {
      add_row(out, line, spans);
    } else if (spans = dashes(line); !spans.empty()) {
      out += "\nProcessing [" + report + "]\n";
      add_row(out, before, spans);
    } else if (const std::size_t open = line.rfind('('); line.ends_with("):") && open != std::string_view::npos) {
      report = line.substr(open + 1, line.size() - open - 3);
    }
    before = line;
  }
  if (out.empty()) out = nvprof_as_csv(text);
  return out;
}

}  // namespace rangescope::read::nsys_csv
