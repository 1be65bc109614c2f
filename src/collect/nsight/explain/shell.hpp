// Splits a command line into words as a POSIX shell does, without running or expanding anything.
//
// Quotes, backslashes and continued lines are removed; $variables, `commands`, ~ and * stay as they
// are written (`raw`), so that an unchanged word prints as it was typed. The first unquoted
// operator
// (| & ; < > or a parenthesis) or line end after a word ends the command; `rest` has the text from
// there. O(length).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::collect::command {

struct Word {
  std::string text;      ///< without quotes and escapes
  std::string raw;       ///< as written
  bool expands = false;  ///< a shell would expand it

  /// As written if a shell would expand it, else the quoted text.
  [[nodiscard]] std::string shown() const;
};
/// A word of exactly this text.
[[nodiscard]] Word literal(std::string_view text);

struct ShellLine {
  std::vector<Word> words;
  std::string rest;    ///< "; ./app", "> log 2>&1", ""
  bool glued = false;  ///< no blank before `rest`: `--nvtx-include A;B`
  /// There is a backslash with blanks after it at the end of a line. A shell ends the command
  /// there; here it is read as the continued line that was meant.
  bool blank_after_backslash = false;
};

/// kUsage for a quote that is not closed. Without `operators`, operators within a word are letters.
[[nodiscard]] base::Result<ShellLine> split_shell(std::string_view text, bool operators = true);

}  // namespace rangescope::collect::command
