#include "collect/nsight/explain/explain.hpp"

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"

namespace rangescope::collect::command {
namespace {

/// Characters that a word processor writes for quotes and blanks. No shell and no tool reads them
/// so.
struct Lookalike {
  std::string_view glyph, meant;
};
constexpr Lookalike kLookalikes[] = {
    {"\u201c", "\""}, {"\u201d", "\""}, {"\u2018", "'"}, {"\u2019", "'"}, {"\u00a0", " "}};
constexpr std::string_view kDashes[] = {"\u2013", "\u2014", "\u2212", "\u2010", "\u2011"};

/// Replaces dashes of a word processor at the start of words; within a word, a dash may be a letter
/// of a name. Returns whether there was one.
bool replace_dashes(std::string& text, std::string_view dash) {
  bool is_replaced = false;
  for (std::size_t found = text.find(dash); found != std::string::npos;
       found = text.find(dash, found + 1)) {
    std::size_t begin = found, end = found + dash.size();
    while (begin > 0 && text[begin - 1] == '-')
      --begin;
    while (end < text.size() && text[end] == '-')
      ++end;
    const bool starts_word = begin == 0 || text[begin - 1] == ' ' || text[begin - 1] == '\n';
    if (!starts_word)
      continue;
    const bool is_short_option = end + 1 >= text.size() || text[end + 1] == ' ';  // -k
    text.replace(begin, end - begin, is_short_option ? "-" : "--");
    is_replaced = true;
  }
  return is_replaced;
}

/// The command with the characters of the shell.
std::string without_lookalikes(std::string_view command, Explaining& about) {
  std::string text(command);
  std::vector<std::string> replaced;
  for (const Lookalike& lookalike : kLookalikes) {
    if (text.find(lookalike.glyph) == std::string::npos)
      continue;
    replaced.emplace_back(lookalike.glyph);
    text = base::replace_all(text, lookalike.glyph, lookalike.meant);
  }
  for (const std::string_view dash : kDashes)
    if (replace_dashes(text, dash))
      replaced.emplace_back(dash);
  if (!replaced.empty())
    about.fail(
        "lookalike",
        "characters of a word processor instead of the shell's own: " + base::join(replaced, " "));
  return text;
}

/// The words of the line that names a tool, if there are several lines or a line is broken.
base::Result<ShellLine> words_of(std::string text, Explaining& about) {
  for (;;) {
    auto shell = split_shell(text);
    if (!shell)
      return shell;
    const bool has_next_line = shell->rest.starts_with('\n');
    const std::string_view next = base::trim(shell->rest);
    if (!has_next_line || next.empty())
      return shell;
    const std::size_t line_end = text.size() - shell->rest.size();
    auto line = parse_line(*shell, nullptr);
    if (!line) {  // `cd build`, and the tool in the next line
      text.erase(0, line_end + 1);
      continue;
    }
    if (!line->program.empty() && !next.starts_with('-'))
      return shell;
    about.fail("broken_line",
               "the shell ends the command at the end of its line, before '" +
                   std::string(next.substr(0, next.find_first_of(" \n"))) + "'");
    text[line_end] = ' ';
  }
}

/// The command that a shell in front of it is given: bash -c "ncu ./app", docker exec c sh -lc
/// "nsys profile ./app". Empty where the line names no tool inside quotes behind such an option.
std::string command_of_inner_shell(const ShellLine& shell) {
  if (!tool_of(shell.words).empty())
    return {};
  for (std::size_t i = 1; i < shell.words.size(); ++i) {
    const std::string_view option = shell.words[i - 1].text;
    const bool is_short = option.size() >= 2 && option.front() == '-' && option[1] != '-';
    const bool takes_command = is_short && option.ends_with('c');
    if (!takes_command)
      continue;
    const std::string& inner = shell.words[i].text;
    const bool mentions_tool =
        inner.find("ncu") != std::string::npos || inner.find("nsys") != std::string::npos;
    if (mentions_tool)
      return inner;
  }
  return {};
}

/// The command that runs a tool, without the text before it: the `!` of a notebook, `cd build
/// &&`, a shell.
std::string innermost_command(std::string text) {
  text = std::string(base::trim(text));
  if (text.starts_with('!') || text.starts_with('%'))
    text.erase(0, 1);
  for (std::size_t turn = 0; turn < 8; ++turn) {
    const auto shell = split_shell(text);
    if (!shell)
      return text;
    if (std::string inner = command_of_inner_shell(*shell); !inner.empty()) {
      text = std::move(inner);
      continue;
    }
    const std::string_view rest = base::trim(shell->rest);
    const std::size_t operators = std::min(rest.find_first_not_of("&|;"), rest.size());
    const std::string_view next = base::trim(rest.substr(operators));
    const bool is_other_command = tool_of(shell->words).empty() && operators > 0;
    if (!is_other_command || next.empty())
      return text;
    text = std::string(next);
  }
  return text;
}

/// Splits the command into words, and corrects what keeps a shell from reading them as meant.
base::Result<ShellLine> split_command(std::string_view command, Explaining& about) {
  const std::string text = innermost_command(without_lookalikes(command, about));
  auto shell = words_of(text, about);
  if (!shell)
    return shell;
  if (shell->blank_after_backslash)
    about.fail("blank_after_backslash", "a blank follows a backslash at the end of a line");
  const bool is_redirection = shell->rest.starts_with("<") || shell->rest.starts_with(">");
  if (!shell->glued || is_redirection)
    return shell;
  // `--nvtx-include A;B ./app`: an operator within a word ends the line before any program.
  auto line = parse_line(*shell, nullptr);
  if (!line || !line->program.empty())
    return shell;
  auto with_operators = split_shell(text, false);
  if (!with_operators || with_operators->words.size() < shell->words.size())
    return shell;
  const Word& word = with_operators->words[shell->words.size() - 1];
  about.fail(
      "shell_operator",
      "the shell ends the command at '" + shell->rest.substr(0, 1) + "' of '" + word.text + "'");
  return with_operators;
}

}  // namespace

const std::vector<std::string>& Explaining::listed(const std::string& option) const {
  static const std::vector<std::string> none;
  if (!can)
    return none;
  const auto values = can->options.find(option);
  if (values == can->options.end())
    return none;
  return values->second;
}

base::Result<Explained> explain(std::string_view command, const ExplainOptions& options) {
  Explaining about;
  about.can = options.tool;
  about.environment = options.environment;
  auto shell = TRY(split_command(command, about));
  // Each turn corrects one mistake in the words. The limit is far above what a line can have.
  const std::size_t max_turns = shell.words.size() + 8;
  for (std::size_t turn = 0; turn <= max_turns; ++turn) {
    about.line = TRY(parse_line(shell, about.can));
    if (!mend_words(about, shell.words))
      break;
  }
  if (about.line.records()) {
    judge_program(about);
    judge_options(about);
    judge_content(about);
    judge_ranges(about);
    judge_kernels(about);
    judge_modes(about);
    judge_capture(about);
    judge_launch(about);
  } else {
    judge_reports(about);
  }
  Explained explained;
  for (model::Finding& finding : about.findings)
    finding.question = "Is this line of " + about.line.tool + " right?";
  explained.findings = std::move(about.findings);
  if (!about.lost)
    explained.corrected = about.line.text();
  return explained;
}

base::Result<NamedTool> named_tool(std::string_view command) {
  Explaining unused;
  auto shell = TRY(split_command(command, unused));
  auto line = TRY(parse_line(shell, nullptr));
  return NamedTool{line.tool, line.executable.text};
}

}  // namespace rangescope::collect::command
