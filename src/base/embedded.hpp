// Files that become part of the program: the assembler puts them in as they are, since half a
// megabyte as a C++ literal costs seconds and standard C++20 has no #embed. A table NAME.tsv next
// to NAME.cpp is RANGESCOPE_TSV there (cmake/Room.cmake).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"

/// Declares rangescope_NAME, the file's text with a zero behind it. At global scope.
#define RANGESCOPE_EMBED(name, path)                                                      \
  __asm__(".pushsection .rodata\n.global rangescope_" #name "\n.hidden rangescope_" #name \
          "\nrangescope_" #name ":\n.incbin \"" path "\"\n.byte 0\n.popsection\n");       \
  extern "C" const char rangescope_##name[]

namespace rangescope::base {

/// The rows of a table: cells between tabs, those that a line lacks empty. Without blank lines and
/// those of comments
/// (//).
template <std::size_t Cells>
[[nodiscard]] std::vector<std::array<std::string_view, Cells>> rows(std::string_view table) {
  std::vector<std::array<std::string_view, Cells>> out;
  for (const std::string_view line : split(table, '\n')) {
    if (line.empty() || line.starts_with("//"))
      continue;
    auto& row = out.emplace_back();
    std::size_t cell = 0;
    for (const std::string_view text : split(line, '\t'))
      if (cell < Cells)
        row[cell++] = text;
  }
  return out;
}

/// The statements of a file of SQL by their names, each on a line "-- NAME" above.
[[nodiscard]] inline std::vector<std::pair<std::string_view, std::string_view>> statements(
    std::string_view file) {
  constexpr std::string_view kMark = "\n-- ";
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (std::size_t mark = file.find(kMark); mark != std::string_view::npos;) {
    const std::size_t name = mark + kMark.size(), end = file.find('\n', name);
    mark = file.find(kMark, end);
    out.emplace_back(file.substr(name, end - name), trim(file.substr(end, mark - end)));
  }
  return out;
}

/// The place of `word` among `words`; their number where it is none.
[[nodiscard]] constexpr std::size_t place_of(std::string_view word, const auto& words) {
  std::size_t place = 0;
  while (place < std::size(words) && std::string_view(words[place]) != word)
    ++place;
  return place;
}

}  // namespace rangescope::base
