#include "cli/help_text.hpp"
#include "base/version.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/text.hpp"
#include "cli/app.hpp"

namespace rangescope::cli {
namespace {

constexpr std::string_view kWhat =
    "rangescope runs any program once and says what each of its NVTX ranges costs, and why.";
constexpr std::size_t kLeft = 30, kWidth = 96;

struct Line {
  std::string names;  ///< "-o, --to FILE"
  std::string text;
  std::string group;
  bool positional = false, required = false;
};

std::vector<const CLI::App*> children(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<Line> lines_of(const CLI::App& app) {
  std::vector<Line> lines;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    Line line;
    line.positional = option->get_lnames().empty() && option->get_snames().empty();
    line.required = option->get_required();
    if (line.positional) {
      line.names = option->get_name(true);
    } else {
      for (const std::string& name : option->get_snames()) line.names += (line.names.empty() ? "-" : ", -") + name;
      for (const std::string& name : option->get_lnames()) line.names += (line.names.empty() ? "--" : ", --") + name;
      if (option->get_items_expected_max() > 0)
        line.names += " " + std::string(base::split(option->get_type_name(), ':').front());
    }
    line.text = option->get_description();
    line.group = option->get_group();
    lines.push_back(std::move(line));
  }
  // A group stands where its first option was declared; free words come first.
  std::vector<std::string> groups;
  for (const Line& line : lines)
    if (std::find(groups.begin(), groups.end(), line.group) == groups.end()) groups.push_back(line.group);
  const auto place = [&](const Line& line) {
    return line.positional ? 0 : 1 + (std::find(groups.begin(), groups.end(), line.group) - groups.begin());
  };
  std::stable_sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) { return place(a) < place(b); });
  return lines;
}

std::string usage(Subcommand& command, const CLI::App& app, const std::string& name) {
  std::string text = "rangescope " + name + " [options]";
  for (const Line& line : lines_of(app)) {
    if (line.positional) text += line.required ? " " + line.names : " [" + line.names + "]";
  }
  if (command.takes_program()) text += " [--] program [arguments]";
  return text;
}

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (const std::string_view word : base::split(text, ' ')) {
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

/// `shown`: names of the options that are; empty for all.
std::string options_text(const CLI::App& app, const std::vector<std::string_view>& shown) {
  std::string out, group;
  for (const Line& line : lines_of(app)) {
    const auto names = [written = base::split(line.names, ' ')](std::string_view name) {
      return std::any_of(written.begin(), written.end(),
                         [&](std::string_view word) { return word.substr(0, word.find(',')) == name; });
    };
    if (!shown.empty() && !line.positional && line.group != "Talk" && std::none_of(shown.begin(), shown.end(), names))
      continue;
    if (line.group != group) {
      group = line.group;
      out += "\n" + (group == "Options" ? std::string("Options") : group) + ":\n";
    }
    std::string left = "  " + line.names;
    if (left.size() + 2 > kLeft)
      left += "\n" + std::string(kLeft, ' ');
    else
      left.append(kLeft - left.size(), ' ');
    out += left + wrapped(line.text, kLeft) + "\n";
  }
  return out;
}

std::string roff(std::string_view text) {
  std::string out = base::replace_all(text, "\\", "\\e");
  out = base::replace_all(out, "-", "\\-");
  std::string safe;
  for (const std::string_view line : base::split(out, '\n')) {
    if (!safe.empty()) safe += '\n';
    if (line.starts_with(".") || line.starts_with("'")) safe += "\\&";
    safe += line;
  }
  return safe;
}

std::string man_head(const std::string& name, std::string_view summary) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return fmt::format(".TH {} 1 \"\" \"{}\" \"rangescope\"\n.SH NAME\n{} \\- {}\n", roff(upper), base::tool_version(),
                     roff(name), roff(summary));
}

std::string man_options(const CLI::App& app) {
  std::string out, group;
  for (const Line& line : lines_of(app)) {
    if (line.group != group) {
      group = line.group;
      out += ".SS " + roff(group) + "\n";
    }
    out += ".TP\n.B " + roff(line.names) + "\n" + roff(line.text) + "\n";
  }
  return out;
}

constexpr std::string_view kManTail =
    ".SH EXIT STATUS\n"
    "The exit code of the program passes through, and its fatal signal likewise. Where rangescope has something to "
    "say: 64 usage, "
    "65 bad data, 66 no input, 69 tool missing, 70 internal error, 74 input or output error, 77 permission, 78 "
    "configuration, "
    "80 nothing captured, 81 regression, 82 not comparable, 83 data loss under \\-\\-strict.\n";

}  // namespace

std::string overview() {
  std::string out = std::string(kWhat) + "\n\nUsage: rangescope <command> [options]\n\nCommands:\n";
  for (const auto& command : subcommands()) out += fmt::format("  {:<12}{}\n", command->name(), command->summary());
  return out +
         "\nBegin with:  rangescope profile -- python train.py\n"
         "More about a command:  rangescope help <command>\n";
}

std::string help_text(Subcommand& command, const CLI::App& app, bool all) {
  const std::string name(command.name());
  std::string out = std::string(command.summary()) + "\n\n";
  const auto nested = children(app);
  if (nested.empty()) {
    out += "Usage: " + usage(command, app, name) + "\n" +
           options_text(app, all ? std::vector<std::string_view>{} : command.main_options());
  } else {
    out += "Usage: rangescope " + name + " <what> [options]\n";
    for (const CLI::App* child : nested) {
      out += "\n" + usage(command, *child, name + " " + child->get_name()) + "\n  " + child->get_description() + "\n" +
             options_text(*child, {});
    }
  }
  if (!command.details().empty()) out += "\n" + std::string(command.details()) + "\n";
  return out;
}

std::string man_overview() {
  std::string out = man_head("rangescope", "what each NVTX range of a GPU program costs, and why");
  out += ".SH SYNOPSIS\n.B rangescope\n.I command\n[options]\n.SH DESCRIPTION\n" + roff(kWhat) + "\n.SH COMMANDS\n";
  for (const auto& command : subcommands())
    out += ".TP\n.B " + roff(command->name()) + "\n" + roff(command->summary()) + "\n";
  out += kManTail;
  out +=
      ".SH ENVIRONMENT\n.TP\n.B RANGESCOPE_INJECT\nThe library that is loaded into the program, where it is not beside "
      "rangescope.\n"
      ".TP\n.B NO_COLOR\nNo colour, whatever its value.\n.SH SEE ALSO\n";
  std::string list;
  for (const auto& command : subcommands())
    list += (list.empty() ? "" : ", ") + std::string("rangescope-") + std::string(command->name()) + "(1)";
  return out + roff(list) + "\n";
}

std::string man_page(Subcommand& command, const CLI::App& app) {
  const std::string name(command.name());
  std::string out = man_head("rangescope-" + name, command.summary());
  out += ".SH SYNOPSIS\n";
  const auto nested = children(app);
  if (nested.empty()) out += ".B " + roff(usage(command, app, name)) + "\n";
  for (const CLI::App* child : nested)
    out += ".B " + roff(usage(command, *child, name + " " + child->get_name())) + "\n.br\n";
  if (!command.details().empty()) out += ".SH DESCRIPTION\n.nf\n" + roff(command.details()) + "\n.fi\n";
  out += ".SH OPTIONS\n";
  if (nested.empty()) out += man_options(app);
  for (const CLI::App* child : nested)
    out += ".SS " + roff(name + " " + child->get_name()) + "\n" + roff(child->get_description()) + "\n" +
           man_options(*child);
  out += kManTail;
  return out + ".SH SEE ALSO\nrangescope(1)\n";
}

std::string bash_completion() {
  std::string names, cases;
  for (const auto& command : subcommands()) {
    const auto parsed = declare(*command);
    names += (names.empty() ? "" : " ") + std::string(command->name());
    std::string words;
    const auto add = [&](const CLI::App& app) {
      for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) words += " --" + name;
      }
    };
    add(*parsed->app);
    for (const CLI::App* child : children(*parsed->app)) {
      words += " " + child->get_name();
      add(*child);
    }
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->name(), base::trim(words));
  }
  return fmt::format(
      "# bash completion for rangescope; made by `rangescope help --completion bash`\n"
      "_rangescope() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} words='' i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    if [[ ${{COMP_WORDS[i]}} == -- ]]; then\n"
      "      compopt -o default 2>/dev/null\n"
      "      return\n"
      "    fi\n"
      "  done\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  compopt -o default 2>/dev/null\n"
      "}}\n"
      "complete -F _rangescope rangescope\n",
      names, cases);
}

void print_overview() {
  print(overview());
}
void print_help(Subcommand& command, const CLI::App& app, bool all) {
  print(help_text(command, app, all));
}

}  // namespace rangescope::cli
