#include "analyze/compare/series/shell_command.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

/// Words of a simple command of a POSIX shell; nothing where the shell does more than start a
/// program.
std::optional<std::vector<std::string>> words_of(std::string_view text) {
  constexpr std::string_view kOfTheShell = "$`\\;|&<>(){}[]*?~!#\n=";
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0 && c == quote) {
      quote = 0;
      continue;
    }
    const bool is_plain = quote == '\'' || kOfTheShell.find(c) == std::string_view::npos;
    if (!is_plain)
      return std::nullopt;
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      if (!in_word)
        words.emplace_back();
      in_word = true;
      continue;
    }
    if (quote == 0 && (c == ' ' || c == '\t')) {
      in_word = false;
      continue;
    }
    if (!in_word)
      words.emplace_back();
    in_word = true;
    words.back() += c;
  }
  if (quote != 0 || words.empty())
    return std::nullopt;
  return words;
}

}  // namespace

std::vector<std::string> command_without_shell(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "dash", "zsh", "ksh"};
  if (command.size() != 3 || command[1] != "-c")
    return command;
  if (std::ranges::find(kShells, base::file_name(command[0])) == kShells.end())
    return command;
  auto words = words_of(command[2]);
  if (!words)
    return command;
  if (words->front() == "exec")
    words->erase(words->begin());
  return words->empty() ? command : *words;
}

}  // namespace rangescope::analyze
