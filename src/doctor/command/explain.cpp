#include "doctor/command/explain.hpp"

#include "doctor/command/rules.hpp"

namespace rangescope::doctor {
namespace {

/// What was found before the words were a line: an operator of the shell in the middle of a value.
base::Result<ShellLine> cut(std::string_view command, std::vector<model::Finding>& findings) {
  auto shell = split_shell(command);
  if (!shell || !shell->glued || shell->rest.starts_with("<") || shell->rest.starts_with(">")) return shell;
  // `--nvtx-include A;B ./app`: the line ends in the middle of a word, before any program.
  auto line = parse_line(*shell, nullptr);
  if (!line || !line->program.empty()) return shell;
  auto whole = split_shell(command, false);
  if (!whole) return shell;
  findings.push_back(finding_of("command.shell_operator", model::Grade::kFail,
                                "the shell ends the command at '" + shell->rest.substr(0, 1) + "' of '" +
                                    whole->words[shell->words.size() - 1].text + "'"));
  return whole;
}

base::Result<Explained> examine(const ShellLine& shell, std::vector<model::Finding> findings,
                                const ExplainOptions& options) {
  Explaining about;
  about.can = options.tool;
  about.environment = options.environment;
  about.findings = std::move(findings);
  ShellLine now = shell;
  // Each turn mends one thing about the words; there are no more of those than words.
  for (std::size_t turn = 0; turn <= shell.words.size() + 8; ++turn) {
    auto line = parse_line(now, about.can);
    if (!line) return base::fail(std::move(line));
    about.line = std::move(*line);
    if (!mend_words(about, now.words)) break;
  }
  // Of nsys, only the lines that record.
  if (about.line.tool == "ncu" || about.line.verb == "profile" || about.line.verb == "launch" ||
      about.line.verb == "start") {
    judge_program(about);
    judge_options(about);
    judge_content(about);
    judge_ranges(about);
    judge_kernels(about);
    judge_modes(about);
    judge_capture(about);
  }
  Explained out;
  for (model::Finding& finding : about.findings) finding.question = "Is this line of " + about.line.tool + " right?";
  out.findings = std::move(about.findings);
  if (!about.lost) out.corrected = about.line.text();
  return out;
}

}  // namespace

base::Result<Explained> explain(std::string_view command, const ExplainOptions& options) {
  std::vector<model::Finding> findings;
  auto shell = cut(command, findings);
  if (!shell) return base::fail(std::move(shell));
  return examine(*shell, std::move(findings), options);
}

base::Result<NamedTool> named_tool(std::string_view command) {
  std::vector<model::Finding> unused;
  auto shell = cut(command, unused);
  if (!shell) return base::fail(std::move(shell));
  auto line = parse_line(*shell, nullptr);
  if (!line) return base::fail(std::move(line));
  return NamedTool{line->tool, line->executable.text};
}

}  // namespace rangescope::doctor
