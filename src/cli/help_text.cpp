#include "cli/help_text.hpp"
#include "base/version.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "config/metric_groups.hpp"

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

namespace {

/// One option as a shell completes it.
struct Completed {
  std::vector<std::string> names;  ///< "-f", "--format"
  bool takes_value = false;
  std::string text;
  std::string values;  ///< with spaces between; "" for files and whatever else
};

struct CompletedCommand {
  std::string name, summary;
  std::vector<Completed> options;
  std::vector<std::string> words;  ///< runs: list, show ...
  bool runs = false;               ///< a free word may be a run
  bool program = false;
};

std::string values_of(const CLI::Option& option, const std::string& groups) {
  const auto& names = option.get_lnames();
  if (std::find(names.begin(), names.end(), "metrics") != names.end()) return groups;
  const std::string type = option.get_type_name();
  const bool words = type.find('|') != std::string::npos && std::all_of(type.begin(), type.end(), [](char c) {
                       return c == '|' || c == '-' || c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                     });
  return words ? base::replace_all(type, "|", " ") : std::string();
}

std::vector<CompletedCommand> completed_commands() {
  std::string groups;
  if (const auto shipped = config::shipped_groups())
    for (const auto& group : *shipped) groups += (groups.empty() ? "" : " ") + group.name;
  std::vector<CompletedCommand> all;
  for (const auto& command : subcommands()) {
    const auto parsed = declare(*command);
    CompletedCommand one{std::string(command->name()), std::string(command->summary()), {}, {}, false,
                         command->takes_program()};
    const auto add = [&](const CLI::App& app) {
      for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;
        Completed each;
        for (const std::string& name : option->get_snames()) each.names.push_back("-" + name);
        for (const std::string& name : option->get_lnames()) each.names.push_back("--" + name);
        if (each.names.empty()) {
          one.runs |= option->get_type_name().starts_with("RUN");
          if (const std::string words = values_of(*option, groups); !words.empty())
            for (const std::string_view word : base::split(words, ' ')) one.words.emplace_back(word);
          continue;
        }
        const bool known = std::any_of(one.options.begin(), one.options.end(),
                                       [&](const Completed& other) { return other.names == each.names; });
        if (known) continue;  // another word of `runs` has it too
        each.takes_value = option->get_items_expected_max() > 0;
        each.text = option->get_description();
        each.values = values_of(*option, groups);
        one.options.push_back(std::move(each));
      }
    };
    add(*parsed->app);
    for (const CLI::App* child : children(*parsed->app)) {
      one.words.push_back(child->get_name());
      add(*child);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string bash_completion(const std::vector<CompletedCommand>& commands) {
  std::string names, cases, values;
  for (const CompletedCommand& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    std::string words = base::join(command.words, " ");
    for (const Completed& option : command.options)
      for (const std::string& name : option.names) {
        if (name.starts_with("--")) words += (words.empty() ? "" : " ") + name;
        if (!option.values.empty())
          values += fmt::format("    '{} {}') values='{}' ;;\n", command.name, name, option.values);
      }
    cases += fmt::format("    {}) words=\"{}{}\" ;;\n", command.name, words, command.runs ? " $runs" : "");
  }
  return fmt::format(R"(# bash completion for rangescope; made by `rangescope help --completion bash`
_rangescope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words='' values='' i run runs=latest
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      compopt -o default 2>/dev/null
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{}" -- "$current"))
    return
  fi
  for run in rangescope-runs/*/manifest.json; do
    [[ -e $run ]] && run=${{run#*/}} && runs+=" ${{run%%/*}}"
  done
  if [[ $current == = ]]; then current=''; elif [[ $before == = ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  case "${{COMP_WORDS[1]}} $before" in
{}  esac
  if [[ -n $values ]]; then
    if [[ $before == --metrics && $current == *,* ]]; then
      COMPREPLY=($(compgen -P "${{current%,*}}," -W "$values" -- "${{current##*,}}"))
    else
      COMPREPLY=($(compgen -W "$values" -- "$current"))
    fi
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  compopt -o default 2>/dev/null
}}
complete -F _rangescope rangescope
)",
                     names, values, cases);
}

/// A text between single quotes, `marks` escaped for the shell's own grammar inside.
std::string quoted(std::string_view text, std::string_view marks) {
  std::string out = "'";
  for (const char c : text) {
    if (marks.find(c) != std::string_view::npos) out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

std::string zsh_completion(const std::vector<CompletedCommand>& commands) {
  std::string names, cases;
  for (const CompletedCommand& command : commands) {
    names += "      " + quoted(command.name + ":" + command.summary, "") + "\n";
    std::string specs;
    for (const Completed& option : command.options) {
      for (const std::string& name : option.names) {
        const std::string takes = !option.takes_value ? "" : name.starts_with("--") ? "=" : "+";
        std::string spec = quoted(name + takes, "");
        spec += quoted("[" + base::replace_all(base::replace_all(option.text, "[", "("), "]", ")") + "]", ":");
        if (option.takes_value)
          spec += option.values.empty() ? "':value:_files'"
                  : name == "--metrics" ? "':group:_sequence compadd - " + option.values + "'"
                                        : "':value:(" + option.values + ")'";
        specs += " \\\n        " + spec;
      }
    }
    if (!command.words.empty()) specs += " \\\n        '1:what:(" + base::join(command.words, " ") + ")'";
    specs += command.program ? " \\\n        '*:: :_normal'"
             : command.runs  ? " \\\n        \"*:input:_alternative 'runs:run:($runs)' 'files:file:_files'\""
                             : " \\\n        '*:file:_files'";
    cases += fmt::format("    {})\n      _arguments{} ;;\n", command.name, specs);
  }
  return fmt::format(R"(#compdef rangescope
# zsh completion for rangescope; made by `rangescope help --completion zsh`
_rangescope() {{
  if (( CURRENT == 2 )); then
    local -a commands=(
{}    )
    _describe command commands
    return
  fi
  local runs="latest ${{(j: :)${{(@)${{(@f)$(print -l rangescope-runs/*(N/))}}:t}}}}"
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
compdef _rangescope rangescope
)",
                     names, cases);
}

std::string fish_completion(const std::vector<CompletedCommand>& commands) {
  std::string out =
      "# fish completion for rangescope; made by `rangescope help --completion fish`\n"
      "function __rangescope_runs\n  echo latest\n  for run in rangescope-runs/*/\n    path basename $run\n  "
      "end\nend\n";
  for (const CompletedCommand& command : commands) {
    out += fmt::format("complete -c rangescope -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                       quoted(command.summary, "\\"));
    const std::string here = fmt::format("complete -c rangescope -n '__fish_seen_subcommand_from {}'", command.name);
    for (const std::string& word : command.words) out += here + " -f -a " + word + "\n";
    if (command.runs) out += here + " -a '(__rangescope_runs)'\n";
    for (const Completed& option : command.options) {
      out += here;
      for (const std::string& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.values.empty())
        out += " -x -a '" + option.values + "'";
      else if (option.takes_value)
        out += " -r";
      out += " -d " + quoted(option.text, "\\") + "\n";
    }
  }
  return out;
}

}  // namespace

std::string completion(std::string_view shell) {
  const auto commands = completed_commands();
  return shell == "zsh"    ? zsh_completion(commands)
         : shell == "fish" ? fish_completion(commands)
                           : bash_completion(commands);
}

void print_overview() {
  print(overview());
}
void print_help(Subcommand& command, const CLI::App& app, bool all) {
  print(help_text(command, app, all));
}

}  // namespace rangescope::cli
