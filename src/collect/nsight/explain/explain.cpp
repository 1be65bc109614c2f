#include "collect/nsight/explain/explain.hpp"

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"

namespace rangescope::collect::command {
namespace {

/// What a text processor makes of quotes and blanks: no shell and no tool takes it for them.
struct Lookalike {
  std::string_view glyph, meant;
};
constexpr Lookalike kLookalikes[] = {
    {"\u201c", "\""}, {"\u201d", "\""}, {"\u2018", "'"}, {"\u2019", "'"}, {"\u00a0", " "}};
constexpr std::string_view kDashes[] = {"\u2013", "\u2014", "\u2212", "\u2010", "\u2011"};

/// The line in the shell's own letters.
std::string plain(std::string_view command, Explaining& about) {
  std::string text(command), seen;
  const auto note = [&](std::string_view glyph) {
    if (seen.find(glyph) == std::string::npos)
      seen += (seen.empty() ? "" : " ") + std::string(glyph);
  };
  for (const Lookalike& each : kLookalikes) {
    if (text.find(each.glyph) == std::string::npos) continue;
    note(each.glyph);
    text = base::replace_all(text, each.glyph, each.meant);
  }
  // A dash that begins a word; within one it may be a letter of a name.
  for (const std::string_view dash : kDashes)
    for (std::size_t at = text.find(dash); at != std::string::npos; at = text.find(dash, at + 1)) {
      std::size_t begin = at, end = at + dash.size();
      while (begin > 0 && text[begin - 1] == '-') --begin;
      while (end < text.size() && text[end] == '-') ++end;
      if (begin > 0 && text[begin - 1] != ' ' && text[begin - 1] != '\n') continue;
      const bool letter = end + 1 >= text.size() || text[end + 1] == ' ';  // -k, of one letter
      note(dash);
      text.replace(begin, end - begin, letter ? "-" : "--");
    }
  if (!seen.empty())
    about.fail("lookalike", "characters of a word processor instead of the shell's own: " + seen);
  return text;
}

/// The words of the line that names a tool: among several commands, and over broken line ends.
base::Result<ShellLine> words_of(std::string text, Explaining& about) {
  for (;;) {
    auto shell = split_shell(text);
    if (!shell) return shell;
    const bool ends = shell->rest.starts_with('\n');
    const std::string_view next = base::trim(shell->rest);
    if (!ends || next.empty()) return shell;
    const std::size_t at = text.size() - shell->rest.size();
    auto line = parse_line(*shell, nullptr);
    if (!line) {  // `cd build`, and the tool in the next line
      text.erase(0, at + 1);
      continue;
    }
    if (!line->program.empty() && !next.starts_with('-')) return shell;
    about.fail("broken_line", "the shell ends the command at the end of its line, before '" +
                                  std::string(next.substr(0, next.find_first_of(" \n"))) + "'");
    text[at] = ' ';
  }
}

/// The command that a shell in front of it is given: bash -c "ncu ./app", docker exec c sh -lc
/// "nsys profile ./app". Empty where the line names no tool inside quotes behind such an option.
std::string command_of_inner_shell(const ShellLine& shell) {
  if (!tool_of(shell.words).empty()) return {};
  for (std::size_t i = 1; i < shell.words.size(); ++i) {
    const std::string_view option = shell.words[i - 1].text;
    const bool is_short = option.size() >= 2 && option.front() == '-' && option[1] != '-';
    const bool takes_command = is_short && option.ends_with('c');
    if (!takes_command) continue;
    const std::string& inner = shell.words[i].text;
    const bool mentions_tool =
        inner.find("ncu") != std::string::npos || inner.find("nsys") != std::string::npos;
    if (mentions_tool) return inner;
  }
  return {};
}

/// The command that runs a tool, without the text before it: the `!` of a notebook, `cd build
/// &&`, a shell.
std::string innermost_command(std::string text) {
  text = std::string(base::trim(text));
  if (text.starts_with('!') || text.starts_with('%')) text.erase(0, 1);
  for (std::size_t turn = 0; turn < 8; ++turn) {
    const auto shell = split_shell(text);
    if (!shell) return text;
    if (std::string inner = command_of_inner_shell(*shell); !inner.empty()) {
      text = std::move(inner);
      continue;
    }
    const std::string_view rest = base::trim(shell->rest);
    const std::size_t operators = std::min(rest.find_first_not_of("&|;"), rest.size());
    const std::string_view next = base::trim(rest.substr(operators));
    const bool is_other_command = tool_of(shell->words).empty() && operators > 0;
    if (!is_other_command || next.empty()) return text;
    text = std::string(next);
  }
  return text;
}

/// What was found before the words were a line: an operator of the shell in the middle of a value.
base::Result<ShellLine> cut(std::string_view command, Explaining& about) {
  const std::string text = innermost_command(plain(command, about));
  auto shell = words_of(text, about);
  if (shell && shell->blank_after_backslash)
    about.fail("blank_after_backslash", "a blank follows a backslash at the end of a line");
  if (!shell || !shell->glued || shell->rest.starts_with("<") || shell->rest.starts_with(">"))
    return shell;
  // `--nvtx-include A;B ./app`: the line ends in the middle of a word, before any program.
  auto line = parse_line(*shell, nullptr);
  if (!line || !line->program.empty()) return shell;
  auto whole = split_shell(text, false);
  if (!whole || whole->words.size() < shell->words.size()) return shell;
  about.fail("shell_operator", "the shell ends the command at '" + shell->rest.substr(0, 1) +
                                   "' of '" + whole->words[shell->words.size() - 1].text + "'");
  return whole;
}

}  // namespace

const std::vector<std::string>& Explaining::listed(const std::string& option) const {
  static const std::vector<std::string> none;
  if (!can) return none;
  const auto found = can->options.find(option);
  return found == can->options.end() ? none : found->second;
}

base::Result<Explained> explain(std::string_view command, const ExplainOptions& options) {
  Explaining about;
  about.can = options.tool;
  about.environment = options.environment;
  auto shell = TRY(cut(command, about));
  // Each turn mends one thing about the words; there are no more of those than words.
  const std::size_t most = shell.words.size() + 8;
  for (std::size_t turn = 0; turn <= most; ++turn) {
    about.line = TRY(parse_line(shell, about.can));
    if (!mend_words(about, shell.words)) break;
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
  Explained out;
  for (model::Finding& finding : about.findings)
    finding.question = "Is this line of " + about.line.tool + " right?";
  out.findings = std::move(about.findings);
  if (!about.lost) out.corrected = about.line.text();
  return out;
}

base::Result<NamedTool> named_tool(std::string_view command) {
  Explaining unused;
  auto shell = TRY(cut(command, unused));
  auto line = TRY(parse_line(shell, nullptr));
  return NamedTool{line.tool, line.executable.text};
}

}  // namespace rangescope::collect::command
