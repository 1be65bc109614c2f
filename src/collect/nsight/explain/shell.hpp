// A command line as a person writes it, cut into words as a POSIX shell would, without running or
// expanding anything.
//
// Quotes, backslashes and continued lines are undone; $variables, `commands`, ~ and * stay as they
// are written (`raw`), so that printing a word that nobody changed gives back what was typed. The
// first unquoted operator (| & ; < > or a parenthesis) or line end behind a word ends it; from
// there on the text is kept in `rest`. O(length).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::collect::command {

struct Word {
  std::string text;      ///< quotes and escapes undone
  std::string raw;       ///< as it was written
  bool expands = false;  ///< a shell would put something else in its place

  /// As it was written where the shell expands something in it, else the text, quoted.
  [[nodiscard]] std::string shown() const;
};
/// A word of exactly this text.
[[nodiscard]] Word literal(std::string_view text);

struct ShellLine {
  std::vector<Word> words;
  std::string rest;    ///< "; ./app", "> log 2>&1", ""
  bool glued = false;  ///< no blank before `rest`: `--nvtx-include A;B`
  /// A backslash with blanks behind it, at the end of a line: the shell makes a word of a blank and
  /// ends the command. It is read as the continued line that was meant.
  bool blank_after_backslash = false;
};

/// kUsage for a quote that is not closed. `operators` false: operators within a word are letters of
/// it.
[[nodiscard]] base::Result<ShellLine> split_shell(std::string_view text, bool operators = true);

}  // namespace rangescope::collect::command
